package cli

import (
	_ "embed"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"ndpip/api"
)

// NetHelp describes the options of Net, for the programs' help.
//
//go:embed net.txt
var NetHelp string

// Limits of the options.
const (
	maxBurst   = 256 // frames that one call to the port carries
	minMSS     = 48
	maxMSS     = 9176
	minMTU     = 576 // RFC 791 section 3.1: every host takes a datagram of 576 octets
	maxMTU     = 9216
	maxScale   = 14 // RFC 7323 section 2.3
	maxBuffer  = 1 << 30
	DefaultMSS = 1460

	DefaultBurst = 32
	DefaultPort  = 5001
	defaultLen   = 24
)

// Net holds the options that describe the wire and the host on it.
type Net struct {
	wire       string
	eal        []string
	iface      int
	bind       netip.Prefix
	length     int
	gateway    netip.Addr
	mac        net.HardwareAddr
	neighbours map[netip.Addr]net.HardwareAddr

	Burst, MSS            int
	mtu, winScale         int
	mbufs, rcvBuf, sndBuf int
	checksum              string
	profile, congestion   string
	noHuge, inline, yield bool
	workerSends           bool
	noCoalesce            bool
	rest                  time.Duration
	cpu, workerCPU        int // -1: not pinned

	// Attentive says that the program is in a call of the stack's nearly all the time. Then a machine that has no CPU for
	// a worker of its own is better off without one: --inline is the default there.
	Attentive bool

	observe observe
	flags   *pflag.FlagSet
}

// Register adds the options to f.
func (n *Net) Register(f *Flags) {
	*n = Net{Attentive: n.Attentive, length: defaultLen, Burst: DefaultBurst, winScale: -1, checksum: "auto", profile: "lossless", workerCPU: -1, cpu: -1, flags: f.FlagSet}
	f.StringVar(&n.wire, "wire", "", wireWant)
	f.Var(Words{&n.eal}, "eal", `arguments of DPDK's EAL, such as "-l 0-2 -a 0000:3b:00.0"`)
	f.Var(Number{&n.iface, 0, 65535, ""}, "iface", "the number of the DPDK port, from 0")
	f.Var(IPLen{&n.bind}, "bind-ip", "own address, such as 10.0.0.1/24")
	f.Var(Number{&n.length, 1, 32, ""}, "prefix-length", "bits of the on-link prefix, such as 24")
	f.Var(IP{&n.gateway}, "gateway", "the router's address, such as 10.0.0.254")
	f.Var(MAC{&n.mac}, "bind-eth", "own Ethernet address, such as 02:00:00:00:00:01")
	f.Var(Neighbours{&n.neighbours}, "arp", "a static neighbour, such as 10.0.0.2=02:00:00:00:00:02")
	f.Var(Number{&n.Burst, 1, maxBurst, "frames"}, "burst", "frames per turn, such as 32")
	f.Var(Number{&n.winScale, 0, maxScale, ""}, "win-scale", "bits that the window is scaled by, 0 to 14")
	f.Var(Number{&n.MSS, minMSS, maxMSS, "bytes"}, "mss", "bytes in a segment, such as 1460")
	f.Var(Number{&n.mtu, minMTU, maxMTU, "bytes"}, "mtu", "the port's MTU, such as 1500")
	f.Var(Number{&n.mbufs, 512, 1 << 24, "buffers"}, "mbufs", "packet buffers in each pool, such as 8192")
	f.Var(Size{&n.rcvBuf, 2048, maxBuffer}, "rcvbuf", "receive buffer of a connection, such as 4m")
	f.Var(Size{&n.sndBuf, 2048, maxBuffer}, "sndbuf", "send buffer of a connection, such as 4m")
	f.Var(Choice{&n.checksum, []string{"auto", "software", "off"}}, "checksum", "auto, software or off")
	f.Var(Choice{&n.profile, []string{"lossless", "lossy"}}, "profile", "lossless or lossy")
	f.Var(Choice{&n.congestion, api.CongestionControls()}, "congestion", "a congestion control, such as cubic")
	f.BoolVar(&n.noHuge, "no-huge", false, "run without hugepages")
	f.BoolVar(&n.inline, "inline", false, "no worker thread")
	f.BoolVar(&n.workerSends, "worker-sends", false, "the worker sends what the program writes")
	f.BoolVar(&n.noCoalesce, "no-coalesce", false, "take each received frame apart by itself")
	f.BoolVar(&n.yield, "yield", false, "give the CPU away on an empty poll")
	f.Var(Seconds{P: &n.rest}, "rest", "sleep when there was nothing to do for so many seconds, such as 0.001")
	f.Var(Number{&n.cpu, 0, 4095, ""}, "cpu", "the CPU of the application's thread, from 0")
	f.Var(Number{&n.workerCPU, 0, 4095, ""}, "worker-cpu", "the CPU of the worker, from 0")
	n.observe.register(f)
	f.registerConfig()
}

// control is the congestion control of all sockets; "" is the lossless profile.
func (n *Net) control() string {
	if n.congestion == "" && n.profile == "lossy" {
		return api.CongestionControls()[0]
	}
	return n.congestion
}

// Side is the part that a program plays on a wire with two equal ends (memif): who makes the socket, and the address
// that is taken when --bind-ip is not given.
type Side struct {
	Server bool
	Addr   netip.Prefix
}

// The two sides. A listening program and a connecting one find each other with nothing but --wire memif:PATH.
var (
	Listener  = Side{true, netip.MustParsePrefix("10.0.0.1/24")}
	Connector = Side{false, netip.MustParsePrefix("10.0.0.2/24")}
)

// Defaults says whether addresses may be left out: only over memif, where both ends are ours.
func (n *Net) Defaults() bool { return strings.HasPrefix(n.wire, "memif:") }

// Config turns the parsed options into what api.Open takes. eal are the arguments before "--".
func (n *Net) Config(eal []string, side Side) (api.Config, error) {
	if len(n.eal) > 0 {
		if len(eal) > 0 {
			return api.Config{}, Usagef("--eal and arguments before a -- say the same: give one of them")
		}
		eal = n.eal
	}
	if n.wire == "" && len(eal) == 0 {
		return api.Config{}, Usagef("no port: give --wire %s, or EAL arguments before a --", wireWant)
	}
	var wire Wire
	if n.wire != "" || n.flags.Changed("wire") {
		var err error
		if wire, err = ParseWire(n.wire); err != nil {
			return api.Config{}, err
		}
	}
	if n.iface != 0 && n.wire != "" {
		return api.Config{}, Usagef("--iface %d picks one of the ports that EAL arguments make: leave it out with --wire", n.iface)
	}
	addr, err := n.address(side)
	if err != nil {
		return api.Config{}, err
	}
	if err := n.consistent(addr); err != nil {
		return api.Config{}, err
	}
	cfg := api.Config{
		Wire: wire.String(), Server: side.Server, EAL: eal, NoHuge: n.noHuge, Port: n.iface,
		MAC: n.mac, Addr: addr, Gateway: n.gateway, Neighbours: n.neighbours,
		Burst: n.Burst, Mbufs: n.mbufs, MTU: n.mtu, MSS: n.MSS, WinScale: n.winScale,
		RcvBuf: n.rcvBuf, SndBuf: n.sndBuf, Congestion: n.control(),
		Inline: n.inlines(wire), WorkerSends: n.workerSends, NoCoalesce: n.noCoalesce, WorkerCPU: n.workerCPU, Yield: n.yields(wire), IdleSleep: n.rest,
		Control: n.observe.control, Log: n.observe.logger(),
	}
	switch n.checksum {
	case "software":
		cfg.Checksum = api.ChecksumSoftware
	case "off":
		cfg.Checksum = api.ChecksumOff
	}
	return cfg, nil
}

func (n *Net) address(side Side) (netip.Prefix, error) {
	if !n.flags.Changed("bind-ip") {
		if !n.Defaults() {
			return netip.Prefix{}, Usagef("--bind-ip is missing: give this host's own address, such as --bind-ip 10.0.0.1/24")
		}
		return netip.PrefixFrom(side.Addr.Addr(), n.length), nil
	}
	length := n.length
	if bits := n.bind.Bits(); bits >= 0 {
		if n.flags.Changed("prefix-length") && bits != length {
			return netip.Prefix{}, Usagef("--bind-ip %s and --prefix-length %d differ: give one of them", n.bind, length)
		}
		length = bits
	}
	if length == 0 {
		return netip.Prefix{}, Usagef("--bind-ip %s: want a prefix length from 1 to 32", n.bind)
	}
	return netip.PrefixFrom(n.bind.Addr(), length), nil
}

// consistent checks options against each other.
func (n *Net) consistent(addr netip.Prefix) error {
	if n.gateway.IsValid() && !addr.Contains(n.gateway) {
		return Usagef("--gateway %s is not in %s: give a router on the own link, or a shorter --prefix-length", n.gateway, addr.Masked())
	}
	if n.gateway == addr.Addr() {
		return Usagef("--gateway %s is the own address: give the router's", n.gateway)
	}
	if n.mtu != 0 && n.MSS > n.mtu-40 {
		return Usagef("--mss %d does not fit --mtu %d: want at most %d", n.MSS, n.mtu, n.mtu-40)
	}
	if err := n.observe.consistent(n.flags); err != nil {
		return err
	}
	if n.congestion != "" && n.profile == "lossless" && n.flags.Changed("profile") {
		return Usagef("--congestion %s belongs to --profile lossy: leave --profile lossless out", n.congestion)
	}
	if n.inline && n.flags.Changed("worker-cpu") {
		return Usagef("--worker-cpu has no meaning with --inline, which has no worker: leave one of them out")
	}
	if n.inline && n.workerSends {
		return Usagef("--worker-sends has no meaning with --inline, which has no worker: leave one of them out")
	}
	return nil
}

// inlines is the default of --inline.
func (n *Net) inlines(w Wire) bool {
	if n.flags.Changed("inline") {
		return n.inline
	}
	return n.Attentive && !n.flags.Changed("worker-cpu") && !n.workerSends && runtime.NumCPU() < polling(w, 2)
}

// yields is the default of --yield: on when this machine has fewer CPUs than threads that poll.
func (n *Net) yields(w Wire) bool {
	if n.flags.Changed("yield") {
		return n.yield
	}
	threads := 2
	if n.inlines(w) {
		threads = 1
	}
	return runtime.NumCPU() < polling(w, threads)
}

// polling is how many threads of this machine poll when this program has so many. Over memif the peer most likely polls
// here too; over the kernel's wires the kernel needs a CPU for its end.
func polling(w Wire, threads int) int {
	switch {
	case w.Kind == "memif":
		threads *= 2
	case w.kernelEnd():
		threads++
	}
	return threads
}
