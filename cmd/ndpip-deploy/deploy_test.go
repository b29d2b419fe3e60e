package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ndpip/cmd/internal/hosts"
)

// example is the host file that the documentation shows.
var example = filepath.Join("..", "..", "docs", "hosts.toml")

const store = "/nix/store/00000000000000000000000000000000-ndpip-0.1.0"

func call(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	status = run(t.Context(), args, &out, &err)
	return status, out.String(), err.String()
}

func TestDryRun(t *testing.T) {
	status, out, _ := call(t, "--hosts", example, "--programs", store, "--dry-run", "--out", "/r", "--tree", "/t", "--", "--runs", "5")
	require.Zero(t, status)
	want := ""
	for _, h := range []struct{ name, ssh, addr string }{{"receiver", "root@beta", "10.0.0.2"}, {"sender", "root@alpha", "10.0.0.1"}} {
		want += fmt.Sprintf("%s: %s, %s/24 on pci:0000:3b:00.0 (vfio-pci), CPUs 2,3, checksums: auto\n", h.name, h.ssh, h.addr) +
			fmt.Sprintf("  nix --extra-experimental-features nix-command copy --to ssh://%s %s\n", h.ssh, store) +
			fmt.Sprintf("  ssh %s %s/bin/ndpip-doctor doctor --runtime --cpus 2,3 --pci 0000:3b:00.0 --driver vfio-pci\n", h.ssh, store)
	}
	want += "here, with the results in /r\n" +
		"  cd /t && ndpip-exp exp1 --hosts /r/hosts.toml --out /r/exp1 --runs 5\n" +
		"  cd /t && ndpip-exp exp2 --hosts /r/hosts.toml --out /r/exp2 --runs 5\n"
	require.Equal(t, want, out)
}

// fakes puts programs in the PATH that write down how they were called. One whose name is in broken fails.
func fakes(t *testing.T, broken string) (log string) {
	t.Helper()
	dir := t.TempDir()
	log = filepath.Join(dir, "log")
	for _, name := range []string{"nix", "ssh", "ndpip-exp"} {
		text := fmt.Sprintf("#!/bin/sh\necho %s \"$@\" >> %s\n", name, log)
		if name == broken {
			text += "echo lack: hugepages >&2\nexit 1\n"
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return log
}

// TestSteps runs what the dry run shows, and nothing else.
func TestSteps(t *testing.T) {
	log := fakes(t, "")
	out := filepath.Join(t.TempDir(), "results")
	args := []string{"--hosts", example, "--programs", store, "--out", out}
	status, planned, _ := call(t, append(args, "--dry-run")...)
	require.Zero(t, status)
	require.NoFileExists(t, log)
	require.NoDirExists(t, out)

	status, _, stderr := call(t, args...)
	require.Zero(t, status, stderr)
	var commands []string
	for line := range strings.Lines(planned) {
		if s, ok := strings.CutPrefix(line, "  "); ok {
			commands = append(commands, s)
		}
	}
	did, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, strings.Join(commands, ""), string(did))
	p, err := hosts.Read(filepath.Join(out, "hosts.toml"))
	require.NoError(t, err)
	require.Equal(t, store+"/bin/ndpip-perf", p.Sender.Program("ndpip-perf"))
}

// TestNotReady stops at the host that is not ready.
func TestNotReady(t *testing.T) {
	log := fakes(t, "ssh")
	status, _, stderr := call(t, "--hosts", example, "--programs", store, "--out", t.TempDir(), "--check")
	require.Equal(t, 1, status)
	require.Equal(t, "lack: hugepages\nndpip-deploy: receiver: the host is not ready, as said above (docs/testbed.md): exit status 1\n", stderr)
	did, err := os.ReadFile(log)
	require.NoError(t, err)
	require.NotContains(t, string(did), "alpha")
}

func TestWrongUse(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.toml")
	require.NoError(t, os.WriteFile(bad, []byte("[sender]\nssh = 'a'\nlcore = 1\n"), 0o600))
	for _, c := range []struct {
		status int
		want   string
		args   []string
	}{
		{2, "--hosts FILE is missing", []string{"--dry-run"}},
		{2, "want the store path", []string{"--hosts", example}},
		{2, "--experiments exp3: want some of exp1, exp2", []string{"--hosts", example, "--programs", store, "--experiments", "exp3"}},
		{2, `"exp1": want options only`, []string{"exp1", "--hosts", example, "--programs", store}},
		{2, "unknown flag: --bogus", []string{"--bogus"}},
		{1, "bad.toml:3:1: sender.lcore is no field", []string{"--hosts", bad, "--programs", store, "--dry-run"}},
	} {
		status, out, stderr := call(t, c.args...)
		require.Equal(t, c.status, status, c.args)
		require.Contains(t, stderr, c.want)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		require.Empty(t, out)
	}
	status, out, _ := call(t, "--help")
	require.Zero(t, status)
	require.Equal(t, help, out)
}
