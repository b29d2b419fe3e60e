package cli

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"ndpip/api"
)

// configure parses a command line as a listening program does.
func configure(args ...string) (api.Config, error) {
	eal, opts, err := Split(args)
	if err != nil {
		return api.Config{}, err
	}
	var n Net
	f := NewFlags("prog")
	n.Register(f)
	if err := f.Parse(opts); err != nil {
		return api.Config{}, err
	}
	if err := f.NoArgs(); err != nil {
		return api.Config{}, err
	}
	return n.Config(eal, Listener)
}

func TestSplit(t *testing.T) {
	for _, c := range []struct{ args, eal, opts string }{
		{"--iface 0", "", "--iface 0"},
		{"-l 0-1 --vdev=net_null0 -- --iface 1", "-l 0-1 --vdev=net_null0", "--iface 1"},
		{"-- --iface 1", "", "--iface 1"},
		{"-l 0 --", "-l 0", ""},
		{"--wire memif:/x -l 0 -- --mss 64", "-l 0", "--mss 64 --wire memif:/x"},
		{"--wire=tap:t0 --no-huge -- --mss 64", "--no-huge", "--mss 64 --wire=tap:t0"},
		{"-l 0 -- --wire tap:t0", "-l 0", "--wire tap:t0"},
		{"-l 0 -- a -- b", "-l 0", "a -- b"},
	} {
		eal, opts, err := Split(strings.Fields(c.args))
		require.NoError(t, err, c.args)
		require.Equal(t, c.eal, strings.Join(eal, " "), c.args)
		require.Equal(t, c.opts, strings.Join(opts, " "), c.args)
	}
	_, _, err := Split([]string{"--wire", "--", "--iface", "0"})
	require.EqualError(t, err, "--wire needs a value, such as --wire memif:/tmp/ndpip.sock")
}

func TestConfig(t *testing.T) {
	cfg, err := configure("--wire", "memif:/tmp/x.sock")
	require.NoError(t, err)
	require.Equal(t, api.Config{
		Wire: "memif:/tmp/x.sock", Server: true, Addr: netip.MustParsePrefix("10.0.0.1/24"), Burst: 32, WinScale: -1,
		WorkerCPU: -1, Yield: runtime.NumCPU() < 4,
	}, cfg)

	cfg, err = configure("-l", "0-1", "--file-prefix=a", "--", "--iface", "1", "--bind-ip", "192.168.7.9", "--prefix-length", "16",
		"--gateway", "192.168.0.1", "--bind-eth", "02:00:00:00:00:09", "--arp", "192.168.0.2=02:00:00:00:00:02",
		"--arp=192.168.0.3=ff:ff:ff:ff:ff:ff", "--burst", "64", "--win-scale", "7", "--mss", "256", "--mtu", "1500",
		"--mbufs", "4096", "--rcvbuf", "4m", "--sndbuf", "65536", "--checksum", "off", "--no-huge", "--worker-cpu", "1",
		"--yield=false")
	require.NoError(t, err)
	mac := func(s string) net.HardwareAddr { m, _ := net.ParseMAC(s); return m }
	require.Equal(t, api.Config{
		EAL: []string{"-l", "0-1", "--file-prefix=a"}, Server: true, NoHuge: true, Port: 1, MAC: mac("02:00:00:00:00:09"),
		Addr: netip.MustParsePrefix("192.168.7.9/16"), Gateway: netip.MustParseAddr("192.168.0.1"),
		Neighbours: map[netip.Addr]net.HardwareAddr{
			netip.MustParseAddr("192.168.0.2"): mac("02:00:00:00:00:02"),
			netip.MustParseAddr("192.168.0.3"): mac("ff:ff:ff:ff:ff:ff"),
		},
		Burst: 64, Mbufs: 4096, MTU: 1500, Checksum: api.ChecksumOff, MSS: 256, WinScale: 7,
		RcvBuf: 4 << 20, SndBuf: 65536, WorkerCPU: 1,
	}, cfg)

	for args, want := range map[string]string{
		"--wire tap:t0 --bind-ip 10.1.2.3/30":                     "10.1.2.3/30",
		"--wire tap:t0 --bind-ip 10.1.2.3":                        "10.1.2.3/24",
		"--wire tap:t0 --bind-ip 10.1.2.3/8 --prefix-length 8":    "10.1.2.3/8",
		"--wire memif:/x --prefix-length 16":                      "10.0.0.1/16",
		"--vdev=net_tap0 -- --bind-ip 10.1.2.3 --prefix-length=9": "10.1.2.3/9",
	} {
		cfg, err := configure(strings.Fields(args)...)
		require.NoError(t, err, args)
		require.Equal(t, want, cfg.Addr.String(), args)
	}
}

// Each wrong option gives one line that names it and says what would be right.
func TestWrongOptions(t *testing.T) {
	const want = "memif:PATH, tap:NAME, af_packet:INTERFACE, af_xdp:INTERFACE or pci:ADDRESS"
	long := "/" + strings.Repeat("x", 109)
	for _, c := range []struct{ args, text string }{
		{"", "no port: give --wire " + want + ", or EAL arguments before a --"},
		{"--wire", "--wire needs a value (" + want + ")"},
		{"--wire ring:1", "--wire ring:1: want " + want},
		{"--wire memif", "--wire memif: want memif:PATH"},
		{"--wire tap:", "--wire tap:: want tap:NAME"},
		{"--wire null:1", "--wire null:1: want null alone"},
		{"--wire memif:" + long, "--wire memif: the path has 110 bytes, and a socket's path holds at most 107; choose a shorter one"},
		{"--wire tap:abcdefghijklmnop", "--wire tap:abcdefghijklmnop: want an interface name of 1 to 15 characters without spaces or slashes after tap:"},
		{"--wire af_packet:a/b", "--wire af_packet:a/b: want an interface name of 1 to 15 characters without spaces or slashes after af_packet:"},
		{"--wire tap:t0", "--bind-ip is missing: give this host's own address, such as --bind-ip 10.0.0.1/24"},
		{"-l 0 -- --iface 0", "--bind-ip is missing: give this host's own address, such as --bind-ip 10.0.0.1/24"},
		{"--wire null", "--bind-ip is missing: give this host's own address, such as --bind-ip 10.0.0.1/24"},
		{"--wire memif:/x --iface -1", "--iface -1: want a whole number from 0 to 65535"},
		{"--wire memif:/x --iface 1", "--iface 1 picks one of the ports that EAL arguments make: leave it out with --wire"},
		{"--wire memif:/x --bind-ip 10.0.0", "--bind-ip 10.0.0: want the IPv4 address of one host, such as 10.0.0.1 or 10.0.0.1/24"},
		{"--wire memif:/x --bind-ip ::1", "--bind-ip ::1: want the IPv4 address of one host, such as 10.0.0.1 or 10.0.0.1/24"},
		{"--wire memif:/x --bind-ip 0.0.0.0", "--bind-ip 0.0.0.0: want the IPv4 address of one host, such as 10.0.0.1 or 10.0.0.1/24"},
		{"--wire memif:/x --bind-ip 10.0.0.1/33", "--bind-ip 10.0.0.1/33: want the IPv4 address of one host, such as 10.0.0.1 or 10.0.0.1/24"},
		{"--wire memif:/x --bind-ip 10.0.0.1/0", "--bind-ip 10.0.0.1/0: want a prefix length from 1 to 32"},
		{"--wire memif:/x --bind-ip 10.0.0.1/8 --prefix-length 9", "--bind-ip 10.0.0.1/8 and --prefix-length 9 differ: give one of them"},
		{"--wire memif:/x --prefix-length 40", "--prefix-length 40: want a whole number from 1 to 32"},
		{"--wire memif:/x --gateway 224.0.0.1", "--gateway 224.0.0.1: want the IPv4 address of one host, such as 10.0.0.1"},
		{"--wire memif:/x --gateway 10.0.1.1", "--gateway 10.0.1.1 is not in 10.0.0.0/24: give a router on the own link, or a shorter --prefix-length"},
		{"--wire memif:/x --gateway 10.0.0.1", "--gateway 10.0.0.1 is the own address: give the router's"},
		{"--wire memif:/x --bind-eth 01:00:00:00:00:01", "--bind-eth 01:00:00:00:00:01: want the Ethernet address of one station (the lowest bit of its first byte is 0), such as 02:00:00:00:00:01"},
		{"--wire memif:/x --bind-eth x", "--bind-eth x: want the Ethernet address of one station (the lowest bit of its first byte is 0), such as 02:00:00:00:00:01"},
		{"--wire memif:/x --arp 10.0.0.2", "--arp 10.0.0.2: want IP=MAC, such as 10.0.0.2=02:00:00:00:00:02"},
		{"--wire memif:/x --arp 10.0.0.2=1", "--arp 10.0.0.2=1: want IP=MAC, such as 10.0.0.2=02:00:00:00:00:02"},
		{"--wire memif:/x --arp 10.0.0.2=00:00:00:00:00:00", "--arp 10.0.0.2=00:00:00:00:00:00: want IP=MAC, such as 10.0.0.2=02:00:00:00:00:02"},
		{"--wire memif:/x --burst 0", "--burst 0: want a whole number from 1 to 256 frames"},
		{"--wire memif:/x --burst 257", "--burst 257: want a whole number from 1 to 256 frames"},
		{"--wire memif:/x --burst many", "--burst many: want a whole number from 1 to 256 frames"},
		{"--wire memif:/x --burst=", "--burst \"\": want a whole number from 1 to 256 frames"},
		{"--wire memif:/x --win-scale 15", "--win-scale 15: want a whole number from 0 to 14"},
		{"--wire memif:/x --mss 47", "--mss 47: want a whole number from 48 to 9176 bytes"},
		{"--wire memif:/x --mss 1461 --mtu 1500", "--mss 1461 does not fit --mtu 1500: want at most 1460"},
		{"--wire memif:/x --mtu 575", "--mtu 575: want a whole number from 576 to 9216 bytes"},
		{"--wire memif:/x --mbufs 10", "--mbufs 10: want a whole number from 512 to 16777216 buffers"},
		{"--wire memif:/x --rcvbuf 1", "--rcvbuf 1: want bytes from 2k to 1g, such as 65536, 256k or 4m"},
		{"--wire memif:/x --rcvbuf 2g", "--rcvbuf 2g: want bytes from 2k to 1g, such as 65536, 256k or 4m"},
		{"--wire memif:/x --sndbuf k", "--sndbuf k: want bytes from 2k to 1g, such as 65536, 256k or 4m"},
		{"--wire memif:/x --sndbuf 4294967295g", "--sndbuf 4294967295g: want bytes from 2k to 1g, such as 65536, 256k or 4m"},
		{"--wire memif:/x --profile none", "--profile none: want one of lossless, lossy"},
		{"--wire memif:/x --congestion bbr", "--congestion bbr: want one of cubic, reno, highspeed, scalable, fast"},
		{"--wire memif:/x --profile lossless --congestion reno", "--congestion reno belongs to --profile lossy: leave --profile lossless out"},
		{"--wire memif:/x --checksum none", "--checksum none: want one of auto, software, off"},
		{"--wire memif:/x --no-huge=maybe", "--no-huge maybe: want true or false, or nothing"},
		{"--wire memif:/x --cpu -1", "--cpu -1: want a whole number from 0 to 4095"},
		{"--wire memif:/x --worker-cpu x", "--worker-cpu x: want a whole number from 0 to 4095"},
		{"--wire memif:/x --inline --worker-cpu 1", "--worker-cpu has no meaning with --inline, which has no worker: leave one of them out"},
		{"--wire memif:/x --inline --worker-sends", "--worker-sends has no meaning with --inline, which has no worker: leave one of them out"},
		{"--wire memif:/x --ifase 0", "unknown option --ifase; did you mean --iface?"},
		{"--wire memif:/x --vdev=net_null0", "unknown option --vdev; see 'prog --help', and put EAL arguments before a --"},
		{"-l 0-1 --wire memif:/x", "unknown option -l; EAL arguments stand before a --, as in 'prog -l 0-1 -- --iface 0'"},
		{"--wire memif:/x 10.0.0.1", "10.0.0.1 belongs to no option; options begin with --, see 'prog --help'"},
		{"--wire memif:/x ---x", "bad flag syntax: ---x; see 'prog --help'"},
	} {
		_, err := configure(strings.Fields(c.args)...)
		require.EqualError(t, err, c.text, c.args)
		require.Equal(t, StatusUsage, Status(err), c.args)
	}
}

func TestSeconds(t *testing.T) {
	var d time.Duration
	v := Seconds{P: &d, Min: 10 * time.Millisecond}
	for s, want := range map[string]time.Duration{"1": time.Second, "0.5": time.Second / 2, "2m": 2 * time.Minute, "0": 0, "1e2": 100 * time.Second} {
		require.NoError(t, v.Set(s), s)
		require.Equal(t, want, d, s)
	}
	for _, s := range []string{"", "-1", "-1s", "0.001", "NaN", "Inf", "1e300", "soon"} {
		require.EqualError(t, v.Set(s), "seconds of at least 0.01, such as 10 or 0.5, or 0 for none", s)
	}
}

func TestPolling(t *testing.T) {
	cpus := runtime.NumCPU()
	for _, c := range []struct {
		wire string
		need int // threads that poll, or a CPU for the kernel's side
		solo int // the same without a worker
	}{{"memif", 4, 2}, {"tap", 3, 2}, {"af_xdp", 3, 2}, {"pci", 2, 1}} {
		w := Wire{Kind: c.wire}
		for _, attentive := range []bool{false, true} {
			n := Net{Attentive: attentive}
			f := NewFlags("prog")
			n.Register(f)
			inline, need := attentive && cpus < c.need, c.need
			if inline {
				need = c.solo
			}
			require.Equal(t, inline, n.inlines(w), "%+v", c)
			require.Equal(t, cpus < need, n.yields(w), "%+v", c)
			require.NoError(t, f.Parse([]string{"--inline=false", "--yield=false"}))
			require.False(t, n.inlines(w) || n.yields(w), "%+v", c)
			require.NoError(t, f.Parse([]string{"--inline", "--yield"}))
			require.True(t, n.inlines(w) && n.yields(w), "%+v", c)
		}
		n := Net{Attentive: true}
		f := NewFlags("prog")
		n.Register(f)
		require.NoError(t, f.Parse([]string{"--worker-cpu", "0"}))
		require.False(t, n.inlines(w), "a worker was asked for")
	}
}

func TestStatus(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		line   string
	}{
		{nil, 0, ""},
		{ErrHelp, 0, ""},
		{Usagef("--x %d", 1), 2, "prog: --x 1\n"},
		{&api.ConfigError{}, 2, ""},
		{fmt.Errorf("open: %w", &api.EnvError{}), 1, ""},
		{errors.New("two\n  lines"), 1, "prog: two lines\n"},
	} {
		var b strings.Builder
		require.Equal(t, c.status, Report(&b, "prog", c.err), "%v", c.err)
		if c.line != "" || c.status == 0 {
			require.Equal(t, c.line, b.String())
		}
		require.LessOrEqual(t, strings.Count(b.String(), "\n"), 1)
	}
}

func TestHelpNamesEveryOption(t *testing.T) {
	var n Net
	f := NewFlags("prog")
	n.Register(f)
	f.VisitAll(func(flag *pflag.Flag) {
		require.Contains(t, NetHelp, "--"+flag.Name)
		require.NotEmpty(t, flag.Usage, flag.Name)
	})
	for _, line := range strings.Split(NetHelp, "\n") {
		require.LessOrEqual(t, len(line), 120, line)
	}
	require.ErrorIs(t, f.Parse([]string{"--help"}), ErrHelp)
	require.True(t, WantsHelp([]string{"-l", "0", "--", "-h"}))
	require.False(t, WantsHelp([]string{"-l", "0", "--", "--hosts"}))
}

func TestStop(t *testing.T) {
	s := NewStop()
	require.Nil(t, s.After(0))
	require.False(t, s.Asked())
	s.After(time.Millisecond)
	<-s.Done()
	require.True(t, s.Asked())
	require.True(t, s.Expired())

	s = NewStop()
	s.Ask()
	s.Ask()
	s.After(time.Millisecond)
	time.Sleep(20 * time.Millisecond)
	require.False(t, s.Expired(), "the time came after the end was asked for")
}

func TestInOptions(t *testing.T) {
	err := inOptions(&api.ConfigError{Field: "WorkerCPU", Problem: "9: want less"})
	require.EqualError(t, err, "--worker-cpu: 9: want less")
	require.Equal(t, StatusUsage, Status(err))
	require.EqualError(t, inOptions(&api.ConfigError{Field: "Other", Problem: "bad"}), "Other: bad")
	require.NoError(t, inOptions(nil))
	fields := reflect.TypeFor[api.Config]()
	for names := range optionOf {
		for name := range strings.SplitSeq(names, ", ") {
			_, ok := fields.FieldByName(name)
			require.True(t, ok, name)
		}
	}
}

func TestEALHas(t *testing.T) {
	eal := []string{"-l", "0", "--no-huge", "--file-prefix=x"}
	require.True(t, ealHas(eal, "--no-huge"))
	require.True(t, ealHas(eal, "--file-prefix"))
	require.False(t, ealHas(eal, "--in-memory"))
}
