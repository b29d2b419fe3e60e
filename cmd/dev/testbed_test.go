package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// marked are the commands of docs/testbed.md that the document says are run here, by their first words.
func marked(t *testing.T, d *dev) map[string]string {
	t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(readText(filepath.Join(d.root, "docs", "testbed.md"))) {
		if command, _, ok := strings.Cut(line, "# ✓"); ok {
			words := strings.Fields(command)
			out[strings.Join(words[:2], " ")+" "+words[len(words)-1]] = strings.Join(words, " ")
		}
	}
	return out
}

// TestTestbedCommands runs what docs/testbed.md marks, with a folder of the test's in the place of bin and /opt/ndpip/bin.
// The one for Nix is run by the step "nix".
func TestTestbedCommands(t *testing.T) {
	d := testDev(t)
	commands := marked(t, d)
	const perf, doctor, look, nix = "go build ./cmd/linux-perf", "go build ./cmd/dev", "ssh root@alpha 2,3", "nix run --dry-run"
	require.Len(t, commands, 4, "%q", commands)
	bin := t.TempDir()
	for _, name := range []string{perf, doctor} {
		require.Contains(t, commands, name)
		if testing.Short() && name == perf {
			continue // links DPDK, as other tests do
		}
		argv := strings.Fields(strings.ReplaceAll(commands[name], "-o bin/", "-o "+bin+"/"))
		require.NoError(t, d.run(t.Context(), d.goJob(4*time.Minute, argv[1:]...)))
	}
	if !testing.Short() {
		for _, name := range []string{"ndpip-perf", "linux-perf"} {
			require.FileExists(t, filepath.Join(bin, name))
		}
	}
	require.Contains(t, commands, look)
	_, there, _ := strings.Cut(commands[look], "root@alpha ")
	cmd := exec.Command("sh", "-c", strings.ReplaceAll(there, "/opt/ndpip/bin/", bin+"/"))
	cmd.Dir = t.TempDir() // a host has no source tree
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "there is no such card here")
	require.Equal(t, 1, cmd.ProcessState.ExitCode(), "%s", out)
	require.Contains(t, string(out), "has to be mended")

	require.Contains(t, commands, nix)
	_, options, _ := strings.Cut(commands[nix], " -- ")
	step, err := os.ReadFile(filepath.Join(d.root, "cmd", "dev", "nix.go"))
	require.NoError(t, err)
	for o := range strings.FieldsSeq(options) {
		if strings.HasPrefix(o, "--") {
			require.Contains(t, string(step), `"`+o+`"`)
		}
	}
}

// TestVersions: the flake's packages have the version that ndpip.pc gives.
func TestVersions(t *testing.T) {
	d := testDev(t)
	require.Contains(t, readText(filepath.Join(d.root, ".nix", "packages.nix")), `version = "`+libraryVersion+`";`)
}
