package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRootIsMount(t *testing.T) {
	const line = "24 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
	require.True(t, rootIsMount(line))
	require.True(t, rootIsMount("25 24 0:5 / /proc rw - proc proc rw\n"+line))
	require.False(t, rootIsMount("25 24 0:5 / /proc rw - proc proc rw\n"))
	require.True(t, rootIsMount(""), "without /proc nothing is known")
}

// TestOwnRoot changes root to a folder that is no mount point, with nothing in it but dev, and has dev say what its own root
// is like.
func TestOwnRoot(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "dev"), ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, d := range []string{"proc", "tmp", "here"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, d), 0o755))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "here", "go.mod"), []byte("module ndpip\n"), 0o644))
	proc := filepath.Join(dir, "proc")
	require.NoError(t, syscall.Mount("proc", proc, "proc", 0, ""))
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(proc, syscall.MNT_DETACH)) })

	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	require.NoError(t, os.Link(filepath.Join(dir, "dev"), filepath.Join(dir, "go"))) // the verb fails with that, after the note
	cmd := exec.CommandContext(ctx, "/dev", "vendorhash")
	cmd.Dir = "/here"
	cmd.Env = []string{"PATH=/"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: dir}
	out, _ = cmd.CombinedOutput()
	require.Contains(t, string(out), "runs in a namespace where it is one")
	require.NotContains(t, string(out), "go.mod", "the working folder stays")
	left, err := filepath.Glob(filepath.Join(dir, "tmp", "*"))
	require.NoError(t, err)
	require.Empty(t, left)
}
