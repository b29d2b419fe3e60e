package main

import (
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func TestDefaults(t *testing.T) {
	o, cfg, err := parse("recv", []string{"--wire", "memif:/tmp/x"})
	require.NoError(t, err)
	require.Equal(t, "10.0.0.1/24", cfg.Addr.String())
	require.True(t, cfg.Server)
	require.Equal(t, 5001, o.bindPort)
	require.Equal(t, time.Second, o.interval)

	o, cfg, err = parse("send", []string{"--wire", "memif:/tmp/x"})
	require.NoError(t, err)
	require.Equal(t, "10.0.0.2/24", cfg.Addr.String())
	require.False(t, cfg.Server)
	require.Equal(t, "10.0.0.1:5001", netip.AddrPortFrom(o.connectIP, uint16(o.connectPort)).String())
	require.Equal(t, 1, o.connections)
	require.Equal(t, 30*time.Second, o.connectTimeout)

	o, _, err = parse("send", []string{"--wire", "memif:/tmp/x", "--timeout", "7"})
	require.NoError(t, err)
	require.Equal(t, 7*time.Second, o.connectTimeout, "--timeout bounds the attempts to connect too")

	o, cfg, err = parse("send", strings.Fields("-l 0-1 -a 0000:3b:00.0 -- --iface 0 --bind-ip 10.0.0.2 --connect-ip 10.0.0.1 --udp"))
	require.NoError(t, err)
	require.Equal(t, []string{"-l", "0-1", "-a", "0000:3b:00.0"}, cfg.EAL)
	require.True(t, o.udp)
}

func TestWrongOptions(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args, text string
		status     int
	}{
		{"", "ndpip-perf: give a verb: recv, send, ping, conn; 'ndpip-perf help' explains them", 2},
		{"receive", "ndpip-perf: receive is no verb; the first argument is recv, send, ping, conn or help, as in 'ndpip-perf recv --wire memif:/tmp/ndpip.sock'", 2},
		{"recv", "ndpip-perf recv: no port: give --wire memif:PATH, tap:NAME, af_packet:INTERFACE, af_xdp:INTERFACE or pci:ADDRESS, or EAL arguments before a --", 2},
		{"recv --wire memif:/x --connect-ip 10.0.0.2", "ndpip-perf recv: --connect-ip is an option of 'ndpip-perf send', not of 'ndpip-perf recv'", 2},
		{"recv --wire memif:/x --connections 2", "ndpip-perf recv: --connections is an option of 'ndpip-perf send', not of 'ndpip-perf recv'", 2},
		{"send --wire memif:/x --out f", "ndpip-perf send: --out is an option of 'ndpip-perf recv', not of 'ndpip-perf send'", 2},
		{"recv --wire memif:/x --bind-port 0", "ndpip-perf recv: --bind-port 0: want a whole number from 1 to 65535", 2},
		{"recv --wire memif:/x --tcp --udp", "ndpip-perf recv: --tcp and --udp exclude each other: give one of them", 2},
		{"recv --wire memif:/x --udp --out f", "ndpip-perf recv: --out needs --tcp: datagrams may be lost and have no end", 2},
		{"recv --wire memif:/x --udp --sha256", "ndpip-perf recv: --sha256 needs --tcp: datagrams may be lost and have no end", 2},
		{"recv --wire memif:/x --out=", "ndpip-perf recv: --out needs a file's name, or - for standard output", 2},
		{"recv --wire memif:/x --format xml", "ndpip-perf recv: --format xml: want one of text, json", 2},
		{"recv --wire memif:/x --interval 0.001", "ndpip-perf recv: --interval 0.001: want seconds of at least 0.01, such as 10 or 0.5, or 0 for none", 2},
		{"recv --wire memif:/x --timeout -1", "ndpip-perf recv: --timeout -1: want seconds, such as 10 or 0.5, or 0 for none", 2},
		{"recv --wire memif:/x --timeout", "ndpip-perf recv: --timeout needs a value (seconds until the end, such as 10)", 2},
		{"recv --wire memif:/x --timeuot 1", "ndpip-perf recv: unknown option --timeuot; did you mean --timeout?", 2},
		{"recv --wire memif:/x --out " + dir + "/no/such", "ndpip-perf recv: --out: open " + dir + "/no/such: no such file or directory", 1},
		{"send --wire tap:t0 --bind-ip 10.1.0.1", "ndpip-perf send: --connect-ip is missing: give the receiver's address, such as --connect-ip 10.0.0.1", 2},
		{"send --wire memif:/x --connect-ip 10.0.0.2", "ndpip-perf send: --connect-ip 10.0.0.2 is the own address: give the receiver's", 2},
		{"send --wire memif:/x --connect-ip 10.0.9.1", "ndpip-perf send: --connect-ip 10.0.9.1 is not in 10.0.0.0/24: give --gateway, or a shorter prefix in --bind-ip", 2},
		{"send --wire memif:/x --connect-port 70000", "ndpip-perf send: --connect-port 70000: want a whole number from 1 to 65535", 2},
		{"send --wire memif:/x --connections 0", "ndpip-perf send: --connections 0: want a whole number from 1 to 64512", 2},
		{"send --wire memif:/x --bind-port 65000 --connections 1000", "ndpip-perf send: --bind-port 65000 leaves 536 ports for --connections 1000: want a --bind-port of at most 64536", 2},
		{"send --wire memif:/x --file=", "ndpip-perf send: --file needs a file's name, or - for standard input", 2},
		{"send --wire memif:/x --file - --connections 2", "ndpip-perf send: --file - can be sent once: leave out --connections, or give a regular file", 2},
		{"send --wire memif:/x --file /dev/zero --connections 2", "ndpip-perf send: --file /dev/zero can be read once: leave out --connections and --repeat, or give a regular file", 2},
		{"send --wire memif:/x --worker-cpu 4000 --udp --connect-ip 10.0.0.3 --connect-timeout 0.1 --wire null --bind-ip 10.0.0.1", "ndpip-perf send: --worker-cpu: 4000: this process has " + strconv.Itoa(runtime.NumCPU()) + " CPUs, numbered from 0", 2},
		{"send --wire memif:/x --repeat 5", "ndpip-perf send: --repeat needs --file with a regular file: a stream without end does not come to a second one", 2},
		{"recv --wire memif:/x --echo --out f", "ndpip-perf recv: --echo and --out exclude each other: give one of them", 2},
		{"recv --wire memif:/x --udp --bidir", "ndpip-perf recv: --bidir needs --tcp: datagrams may be lost and have no end", 2},
		{"send --wire memif:/x --bidir --file f", "ndpip-perf send: --bidir and --file exclude each other: give one of them", 2},
		{"send --wire memif:/x --echo", "ndpip-perf send: --echo is an option of 'ndpip-perf recv', not of 'ndpip-perf send'", 2},
		{"ping --wire tap:t0 --bind-ip 10.1.0.1", "ndpip-perf ping: --connect-ip is missing: give the receiver's address, such as --connect-ip 10.0.0.1", 2},
		{"ping --wire memif:/x --parallel 2", "ndpip-perf ping: --parallel is an option of 'ndpip-perf conn', not of 'ndpip-perf ping'", 2},
		{"ping --wire memif:/x --size 0", "ndpip-perf ping: --size 0: a ping is at least 1 byte", 2},
		{"ping --wire memif:/x --udp --size 7", "ndpip-perf ping: --size 7: a datagram holds a number that tells when it is late, and is one frame: want 8 to 9176 bytes", 2},
		{"ping --wire memif:/x --hdr=", "ndpip-perf ping: --hdr needs a file's name, or - for standard output", 2},
		{"ping --wire memif:/x --hdr " + dir + "/no/such", "ndpip-perf ping: --hdr: open " + dir + "/no/such: no such file or directory", 1},
		{"conn --wire memif:/x --udp", "ndpip-perf conn: --udp is an option of 'ndpip-perf ping', not of 'ndpip-perf conn'", 2},
		{"conn --wire memif:/x --parallel 0", "ndpip-perf conn: --parallel 0: want a whole number from 1 to 32768", 2},
		{"recv --wire memif:/x --loss 2", "ndpip-perf recv: --loss 2: want a share from 0 to 1, such as 1% or 0.01", 2},
		{"recv --wire memif:/x --reorder -1%", "ndpip-perf recv: --reorder -1%: want a share from 0 to 1, such as 1% or 0.01", 2},
		{"send --wire memif:/x --duplicate nan", "ndpip-perf send: --duplicate nan: want a share from 0 to 1, such as 1% or 0.01", 2},
		{"send --wire memif:/x --fault-seed 2", "ndpip-perf send: --fault-seed needs a fault: give --loss, --duplicate or --reorder", 2},
		{"send --wire memif:/x --udp --file f", "ndpip-perf send: --file needs --tcp: datagrams may be lost and have no end", 2},
		{"send --wire memif:/x --file " + dir + "/none", "ndpip-perf send: --file: open " + dir + "/none: no such file or directory", 1},
		{"send --wire memif:/x --file " + dir, "ndpip-perf send: --file: " + dir + " is a directory; give a file", 1},
	} {
		var stdout, stderr strings.Builder
		status := run(strings.Fields(c.args), &stdout, &stderr)
		require.Equal(t, c.text+"\n", stderr.String(), c.args)
		require.Equal(t, c.status, status, c.args)
		require.Empty(t, stdout.String(), c.args)
	}
}

// The file that --out names is not touched by a command line that is wrong elsewhere.
func TestOutKept(t *testing.T) {
	name := filepath.Join(t.TempDir(), "kept")
	require.NoError(t, os.WriteFile(name, []byte("old"), 0o644))
	var stdout, stderr strings.Builder
	require.Equal(t, 2, run([]string{"recv", "--wire", "memif:/x", "--mss", "1", "--out", name}, &stdout, &stderr))
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "old", string(b))
}

func TestHelp(t *testing.T) {
	for args, verb := range map[string]string{
		"help": "", "--help": "", "-h": "", "help recv": "recv", "recv --help": "recv", "recv -h": "recv", "recv help": "recv",
		"send --wire memif:/x --help": "send", "send -l 0 -- --help": "send", "help send": "send",
		"ping --help": "ping", "help conn": "conn",
	} {
		var stdout, stderr strings.Builder
		require.Equal(t, 0, run(strings.Fields(args), &stdout, &stderr), args)
		require.Equal(t, help(verb), stdout.String(), args)
		require.Empty(t, stderr.String(), args)
	}
	for _, verb := range []string{"recv", "send", "ping", "conn"} {
		newFlags(verb, new(options)).VisitAll(func(f *pflag.Flag) {
			require.Contains(t, help(verb), "--"+f.Name, verb)
		})
	}
	for _, verb := range []string{"", "recv", "send", "ping", "conn"} {
		for _, line := range strings.Split(help(verb), "\n") {
			require.LessOrEqual(t, len(line), 120, line)
		}
	}
}

func TestPattern(t *testing.T) {
	p := newPattern(1000)
	require.Equal(t, p.at(0, 1000), p.at(period, 1000))
	require.NotEqual(t, p.at(0, 1000), p.at(1460, 1000))
	for _, pos := range []uint64{0, 1, period - 1, 5 * period, 1 << 40} {
		piece := append([]byte(nil), p.at(pos, 1000)...)
		require.Equal(t, -1, p.differs(pos, piece))
		require.GreaterOrEqual(t, p.differs(pos+1, piece), 0)
		piece[700] ^= 1
		require.Equal(t, 700, p.differs(pos, piece))
	}
	long := append(append([]byte(nil), p[:period]...), p[:2500]...)
	require.Equal(t, -1, p.differs(0, long), "pieces longer than the pattern's margin")
	long[period+2400]++
	require.Equal(t, period+2400, p.differs(0, long))
}
