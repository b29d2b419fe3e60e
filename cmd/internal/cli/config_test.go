package cli

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ndpip/api"
)

// configureVerb parses the command line of "prog recv".
func configureVerb(args ...string) (api.Config, error) {
	var n Net
	f := NewFlags("prog recv")
	f.Verbs = []string{"recv", "send"}
	f.Elsewhere = map[string]string{"connect-ip": "prog send"}
	n.Register(f)
	if err := f.Parse(args); err != nil {
		return api.Config{}, err
	}
	cfg, err := n.Config(nil, Listener)
	if err != nil {
		return api.Config{}, err
	}
	return cfg, f.PrintConfig()
}

func configFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "c.toml")
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	return name
}

const goodConfig = `
# both sides
mtu = 1_500
checksum = "software"
no-huge = true
arp = ["10.0.0.8=02:00:00:00:00:08", "10.0.0.9=02:00:00:00:00:09"]
rest = 0.5
burst = 16

[recv]
wire = "memif:/tmp/x"
burst = 64
rcvbuf = "4m"

[send]
connect-ip = "10.0.0.1"
bla = 1
`

func TestConfigFile(t *testing.T) {
	cfg, err := configureVerb("--config", configFile(t, goodConfig), "--rcvbuf", "8m")
	require.NoError(t, err)
	require.Equal(t, "memif:/tmp/x", cfg.Wire)
	require.Equal(t, 1500, cfg.MTU)
	require.Equal(t, api.ChecksumSoftware, cfg.Checksum)
	require.True(t, cfg.NoHuge)
	require.Equal(t, "02:00:00:00:00:08", cfg.Neighbours[netip.MustParseAddr("10.0.0.8")].String())
	require.Len(t, cfg.Neighbours, 2)
	require.Equal(t, 64, cfg.Burst, "the verb's table comes before what stands in none")
	require.Equal(t, 8<<20, cfg.RcvBuf, "the command line comes first")
	require.InDelta(t, 0.5, cfg.IdleSleep.Seconds(), 1e-9)

	cfg, err = configureVerb("--config", configFile(t, `eal = ["-l", "0-2", "-a", "0000:3b:00.0"]`+"\nbind-ip = '10.1.0.1/16'\n"))
	require.NoError(t, err)
	require.Equal(t, []string{"-l", "0-2", "-a", "0000:3b:00.0"}, cfg.EAL)
	require.Equal(t, "10.1.0.1/16", cfg.Addr.String())
}

// What --print-config prints is a file that says the same.
func TestPrintConfig(t *testing.T) {
	_, err := configureVerb("--config", configFile(t, goodConfig), "--print-config", "--eal", "", "--win-scale", "3")
	var printed *Printed
	require.True(t, errors.As(err, &printed))
	require.Equal(t, StatusOK, Status(err))
	for _, line := range []string{`wire = "memif:/tmp/x"`, "burst = 64", "rcvbuf = 4194304", "win-scale = 3", "no-huge = true", "# inline = false",
		`arp = ["10.0.0.8=02:00:00:00:00:08", "10.0.0.9=02:00:00:00:00:09"]`} {
		require.Contains(t, strings.Split(printed.Text, "\n"), line)
	}
	first, err := configureVerb("--config", configFile(t, goodConfig), "--win-scale", "3")
	require.NoError(t, err)
	second, err := configureVerb("--config", configFile(t, printed.Text))
	require.NoError(t, err)
	require.Equal(t, first, second)
}

func TestWrongConfig(t *testing.T) {
	for text, want := range map[string]string{
		"\nburst = 0":               `:2: burst 0: want a whole number from 1 to 256 frames`,
		"burst = [1, 2]":            `:1: burst: want one value`,
		"burst = {a = 1}":           `:1: burst: want a text, a number, true or false, or an array of these`,
		"\n\nbrust = 1":             `:3: brust is no option; did you mean burst?`,
		"zzzzzz = 1":                `:1: zzzzzz is no option; 'prog recv --help' lists them`,
		"connect-ip = '10.0.0.2'":   `:1: connect-ip is an option of 'prog send': put it under [send]`,
		"[bla]\nx = 1":              `:1: [bla]: want options in no table, or in one of [recv], [send]`,
		"[[recv]]\nburst = 1":       `:1: [[recv]]: want options, NAME = VALUE`,
		"burst = 1\nburst = 2":      `:2: `,
		"burst = ":                  `:1: `,
		"config = 'x'":              `:1: config stands on the command line alone`,
		"no-huge = 3":               `:1: no-huge 3: want true or false`,
		"arp = '10.0.0.2'":          `:1: arp 10.0.0.2: want IP=MAC`,
		"a.b = 1":                   `:1: a.b is no option`,
		"wire = 'memif:/x'\nmss=-1": `:2: mss -1: want a whole number from 48`,
	} {
		file := configFile(t, text)
		_, err := configureVerb("--config", file)
		require.Error(t, err, text)
		require.True(t, strings.HasPrefix(err.Error(), file+want), "%s: %v", text, err)
		require.NotContains(t, err.Error(), "\n")
		require.Equal(t, StatusUsage, Status(err), text)
	}
	_, err := configureVerb("--config", "/nowhere/x.toml")
	require.EqualError(t, err, "--config: open /nowhere/x.toml: no such file or directory")
}
