package main

import (
	"errors"
	"strings"
	"testing"

	"ndpip/cmd/internal/cli"
)

// FuzzCommandLine reads any words as a command line: an error is one line that says what is wrong, and what is accepted is
// what the library accepts.
func FuzzCommandLine(f *testing.F) {
	for _, s := range []string{
		"recv --wire memif:/tmp/x --bind-port 7 --out f --sha256 --verify", "send --wire tap:t --bind-ip 10.0.0.2/24 --connect-ip 10.0.0.1 --udp",
		"send -l 0-1 -a 0000:3b:00.0 -- --iface 1 --bind-ip 10.0.0.2 --connect-ip 10.0.0.1 --connections 3 --bind-port 65533",
		"recv --wire null --bind-ip 10.0.0.1 --prefix-length 8 --gateway 10.9.9.9 --arp 10.0.0.3=02:00:00:00:00:03 --bind-eth 02:00:00:00:00:01",
		"recv --wire memif:x --burst 256 --mss 9176 --mtu 9216 --win-scale 14 --rcvbuf 4m --sndbuf 1g --checksum off --no-huge --inline --cpu 1",
		"send --wire memif:x --profile lossy --congestion fast",
		"recv --wire memif:x --worker-cpu 1 --timeout 1e3 --interval 0.01 --format json --zero-copy --yield=false --mbufs 512",
		"ping --wire memif:x --udp --size 8 --count 9 --hdr -", "conn --wire memif:x --parallel 32768 --size 0 --reset", "recv --wire memif:x --echo",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, " ") // and so words may be empty, or have other white space in them
		verb := "recv"
		if helpOf[args[0]] != "" {
			verb = args[0]
		}
		o, cfg, err := parse(verb, args[1:])
		if err != nil {
			var usage *cli.UsageError
			if s := err.Error(); !errors.Is(err, cli.ErrHelp) && (!errors.As(err, &usage) || s == "" || strings.ContainsAny(cli.OneLine(s), "\n\r\x1b")) {
				t.Errorf("%q: %T, %q", line, err, s)
			}
			return
		}
		switch {
		case cfg.Wire == "" && len(cfg.EAL) == 0, !cfg.Addr.IsValid(), !cfg.Addr.Addr().Is4(), cfg.Addr.Bits() < 1:
			t.Errorf("%q: %+v", line, cfg)
		case cfg.Burst < 1 || cfg.Burst > 256, cfg.MSS != 0 && (cfg.MSS < 48 || cfg.MSS > 9176), cfg.MTU != 0 && cfg.MTU < cfg.MSS+40, cfg.WinScale > 14:
			t.Errorf("%q: %+v", line, cfg)
		case cfg.MAC != nil && (len(cfg.MAC) != 6 || cfg.MAC[0]&1 != 0), cfg.Gateway.IsValid() && !cfg.Addr.Contains(cfg.Gateway):
			t.Errorf("%q: %+v", line, cfg)
		case verb == "send" && (!o.connectIP.Is4() || o.connections < 1 || o.connectPort < 1 || o.bindPort+o.connections > 65536):
			t.Errorf("%q: %+v", line, o)
		case verb == "ping" && o.size < 1, o.udp && verb == "ping" && o.size < 8, verb == "conn" && (o.parallel < 1 || o.udp):
			t.Errorf("%q: %+v", line, o)
		case o.interval < 0 || o.timeout < 0 || o.connectTimeout < 0:
			t.Errorf("%q: %+v", line, o)
		}
	})
}
