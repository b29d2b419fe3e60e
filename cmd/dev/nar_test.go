package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNarHash compares with what "nix hash path" of Nix 2.8 says of the same folder.
func TestNarHash(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "b", "empty"), 0o755))
	for name, text := range map[string]string{"b/12345678": "12345678", "B": "", "b.txt": "one\ntwo\n", "run": "#!/bin/sh\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	require.NoError(t, os.Chmod(filepath.Join(dir, "run"), 0o755))
	require.NoError(t, os.Symlink("b/12345678", filepath.Join(dir, "link")))
	hash, err := narHash(dir)
	require.NoError(t, err)
	require.Equal(t, "sha256-UAKYIKNKef+IfRQVKmkjVHY0TjqLV4L91xPLrjHaWVA=", hash)

	_, err = narHash(filepath.Join(dir, "nothing"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestVendorHash fails when go.mod, or what is imported, has moved on and the flake has not.
func TestVendorHash(t *testing.T) {
	d := testDev(t)
	want, err := d.vendorHash(t.Context())
	require.NoError(t, err)
	require.Equal(t, want, strings.TrimSpace(readText(filepath.Join(d.root, vendorHashFile))),
		"%s is of other modules than go.mod names now: go run ./cmd/dev vendorhash", vendorHashFile)
}

// TestVendorHashMoves changes a dependency and sees the hash change.
func TestVendorHashMoves(t *testing.T) {
	dir := t.TempDir()
	d := testDev(t)
	d.root = dir
	file := filepath.Join(dir, "vendor", "modules.txt")
	require.NoError(t, os.Mkdir(filepath.Dir(file), 0o755))
	hashOf := func(text string) string {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		hash, err := d.vendorHash(t.Context())
		require.NoError(t, err)
		return hash
	}
	before := hashOf("# golang.org/x/sys v0.41.0\n")
	require.NotEqual(t, before, hashOf("# golang.org/x/sys v0.41.1\n"))
	require.Equal(t, before, hashOf("# golang.org/x/sys v0.41.0\n"))
}
