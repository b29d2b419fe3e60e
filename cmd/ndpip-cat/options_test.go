package main

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		args, addr, own string
		listen, keep    bool
	}{
		{"--wire memif:/x listen 5001", "10.0.0.1:5001", "10.0.0.1/24", true, false},
		{"listen 5001 --wire memif:/x -k", "10.0.0.1:5001", "10.0.0.1/24", true, true},
		{"--wire memif:/x connect 10.0.0.1:80", "10.0.0.1:80", "10.0.0.2/24", false, false},
		{"--wire tap:t listen 10.1.0.1:80", "10.1.0.1:80", "10.1.0.1/24", true, false},
		{"--wire tap:t --bind-ip 10.1.0.1/16 listen 10.1.0.1:80", "10.1.0.1:80", "10.1.0.1/16", true, false},
		{"-l 0 --vdev=net_null0 -- connect 10.1.0.1:80 --bind-ip 10.1.0.2", "10.1.0.1:80", "10.1.0.2/24", false, false},
		{"--wire memif:/x -- listen 5001", "10.0.0.1:5001", "10.0.0.1/24", true, false},
	} {
		o, cfg, err := parse(strings.Fields(c.args))
		require.NoError(t, err, c.args)
		require.Equal(t, c.addr, o.addr.String(), c.args)
		require.Equal(t, c.own, cfg.Addr.String(), c.args)
		require.Equal(t, c.listen, o.listen, c.args)
		require.Equal(t, c.listen, cfg.Server, c.args)
		require.Equal(t, c.keep, o.keep, c.args)
	}
}

func TestWrongOptions(t *testing.T) {
	for _, c := range []struct{ args, text string }{
		{"", "give a verb and a port, as in 'ndpip-cat --wire memif:/tmp/ndpip.sock listen 5001'; 'ndpip-cat help' explains more"},
		{"--wire memif:/x", "the verb is missing: listen PORT, or connect IP:PORT"},
		{"--wire memif:/x serve 80", "serve is no verb: want listen [IP:]PORT, or connect IP:PORT"},
		{"--wire memif:/x listen", "listen needs an address: listen PORT, or connect IP:PORT"},
		{"--wire memif:/x listen 0", "listen 0: want a port from 1 to 65535, or IP:PORT"},
		{"--wire memif:/x listen 65536", "listen 65536: want a port from 1 to 65535, or IP:PORT"},
		{"--wire memif:/x listen host:80", "listen host:80: before the colon want the IPv4 address of one host, such as 10.0.0.1"},
		{"--wire memif:/x connect 80", "connect 80: want IP:PORT, such as 10.0.0.1:5001"},
		{"--wire memif:/x connect 10.0.0.1:http", "connect 10.0.0.1:http: want IP:PORT, such as 10.0.0.1:5001"},
		{"--wire memif:/x connect 10.0.0.2:80", "connect 10.0.0.2 is the own address: give the peer's"},
		{"--wire memif:/x connect 10.9.0.2:80", "connect 10.9.0.2 is not in 10.0.0.0/24: give --gateway, or a shorter prefix in --bind-ip"},
		{"--wire memif:/x connect 10.0.0.1:80 -k", "--keep-listening belongs to listen: leave it out"},
		{"--wire memif:/x listen 80 90", "90 is one too many: after listen comes one address"},
		{"--wire memif:/x --bind-ip 10.0.0.3 listen 10.0.0.1:80", "listen 10.0.0.1 differs from --bind-ip 10.0.0.3: give one of them"},
		{"listen 80", "no port: give --wire memif:PATH, tap:NAME, af_packet:INTERFACE, af_xdp:INTERFACE or pci:ADDRESS, or EAL arguments before a --"},
		{"--wire tap:t listen 80", "--bind-ip is missing: give this host's own address, such as --bind-ip 10.0.0.1/24"},
		{"--wire memif:/x listen 80 --kep-listening", "unknown option --kep-listening; did you mean --keep-listening?"},
	} {
		var stdout, stderr strings.Builder
		require.Equal(t, 2, run(strings.Fields(c.args), &stdout, &stderr), c.args)
		require.Equal(t, "ndpip-cat: "+c.text+"\n", stderr.String(), c.args)
		require.Empty(t, stdout.String(), c.args)
	}
}

func TestHelp(t *testing.T) {
	for _, args := range []string{"help", "--help", "-h", "--wire memif:/x listen 80 --help", "-l 0 -- --help"} {
		var stdout, stderr strings.Builder
		require.Equal(t, 0, run(strings.Fields(args), &stdout, &stderr), args)
		require.Equal(t, helpText(), stdout.String(), args)
		require.Empty(t, stderr.String(), args)
	}
	newFlags(new(options)).VisitAll(func(f *pflag.Flag) { require.Contains(t, helpText(), "--"+f.Name) })
	for _, line := range strings.Split(helpText(), "\n") {
		require.LessOrEqual(t, len(line), 120, line)
	}
}
