package main

import (
	"math"
	"net/netip"
	"time"

	"ndpip/api"
	"ndpip/cmd/internal/cli"
)

// maxConnections is the number of ports that one address can connect from, without the well-known ones.
const maxConnections = 64512

// Limits of ping and conn.
const (
	maxAsk      = 1 << 20
	maxDatagram = 9176
	maxParallel = 32768
)

// defaultConnect is how long send tries to connect when neither --connect-timeout nor --timeout says.
const defaultConnect = 30 * time.Second

// options are those of all verbs; each verb sets its own.
type options struct {
	cli.Net
	verb string

	tcp, udp                           bool
	bindPort, connectPort, connections int
	connectIP                          netip.Addr
	timeout, interval, connectTimeout  time.Duration
	repeat                             time.Duration
	format, file, out                  string
	sha256, verify, zeroCopy           bool
	bidir, echo                        bool

	size, count, parallel int // ping, conn
	hdr                   string
	reset                 bool
	yields                bool // its threads share CPUs

	faults    api.Faults
	faultSeed int
}

// newFlags makes the set of the options of one verb, which are parsed into o.
func newFlags(verb string, o *options) *cli.Flags {
	*o = options{verb: verb}
	f := cli.NewFlags("ndpip-perf " + verb)
	o.Attentive = true
	o.Net.Register(f)
	if verb != "conn" {
		f.BoolVar(&o.tcp, "tcp", false, "TCP, which is the default")
		f.BoolVar(&o.udp, "udp", false, "UDP datagrams of --mss bytes")
	}
	f.Var(cli.Seconds{P: &o.timeout}, "timeout", "seconds until the end, such as 10")
	o.interval = time.Second
	f.Var(cli.Seconds{P: &o.interval, Min: 10 * time.Millisecond}, "interval", "seconds between lines, such as 1")
	o.format = "text"
	f.Var(cli.Choice{P: &o.format, Words: []string{"text", "json"}}, "format", "text or json")
	f.Var(cli.Share{P: &o.faults.Loss}, "loss", "the share of received frames that is dropped, such as 1%")
	f.Var(cli.Share{P: &o.faults.Duplicate}, "duplicate", "the share of received frames that comes twice, such as 1%")
	f.Var(cli.Share{P: &o.faults.Reorder}, "reorder", "the share of received frames that comes late, such as 1%")
	o.faultSeed = 1
	f.Var(cli.Number{P: &o.faultSeed, Min: 0, Max: math.MaxInt32}, "fault-seed", "where the choice of these frames begins, such as 1")
	switch verb {
	case "recv":
		streamFlags(f, o)
		o.bindPort = cli.DefaultPort
		f.Var(cli.Number{P: &o.bindPort, Min: 1, Max: 65535}, "bind-port", "the port to listen on, such as 5001")
		f.StringVar(&o.out, "out", "", "the file that takes what arrives, or - for standard output")
		f.BoolVar(&o.verify, "verify", false, "compare what arrives with what send makes")
		f.BoolVar(&o.echo, "echo", false, "send back what arrives, for ping and conn")
	case "send":
		peerFlags(f, o)
		streamFlags(f, o)
		f.Var(cli.Number{P: &o.bindPort, Min: 1, Max: 65535}, "bind-port", "the first source port, such as 40000")
		o.connections = 1
		f.Var(cli.Number{P: &o.connections, Min: 1, Max: maxConnections}, "connections", "how many connections to open")
		f.StringVar(&o.file, "file", "", "the file to send, or - for standard input")
		f.Var(cli.Seconds{P: &o.repeat}, "repeat", "seconds in which to begin again with new connections, such as 60")
	case "ping":
		peerFlags(f, o)
		askFlags(f, o)
	case "conn":
		peerFlags(f, o)
		askFlags(f, o)
		o.parallel = 64
		f.Var(cli.Number{P: &o.parallel, Min: 1, Max: maxParallel}, "parallel", "connections at a time, such as 64")
		f.BoolVar(&o.reset, "reset", false, "close with a reset")
	}
	f.Elsewhere, f.Verbs = make(map[string]string), []string{"recv", "send", "ping", "conn"}
	for _, name := range f.Verbs {
		for _, flag := range special[name] {
			if f.Lookup(flag) == nil {
				f.Elsewhere[flag] = "ndpip-perf " + name
			}
		}
	}
	return f
}

// special are the options that not every verb has, by a verb that has them.
var special = map[string][]string{
	"recv": {"bind-port", "out", "verify", "echo", "sha256", "zero-copy", "bidir"},
	"send": {"connect-ip", "connect-port", "connect-timeout", "connections", "file", "repeat"},
	"ping": {"size", "count", "hdr", "tcp", "udp"},
	"conn": {"parallel", "reset"},
}

// streamFlags are the options of recv and send.
func streamFlags(f *cli.Flags, o *options) {
	f.BoolVar(&o.sha256, "sha256", false, "print the SHA-256 of each stream at its end")
	f.BoolVar(&o.zeroCopy, "zero-copy", false, "use the zero-copy calls")
	f.BoolVar(&o.bidir, "bidir", false, "both sides send")
}

// peerFlags are the options of those that connect.
func peerFlags(f *cli.Flags, o *options) {
	f.Var(cli.IP{P: &o.connectIP}, "connect-ip", "the receiver's address, such as 10.0.0.1")
	o.connectPort = cli.DefaultPort
	f.Var(cli.Number{P: &o.connectPort, Min: 1, Max: 65535}, "connect-port", "the receiver's port, such as 5001")
	f.Var(cli.Seconds{P: &o.connectTimeout, Min: time.Millisecond}, "connect-timeout", "seconds to wait for the receiver, such as 30")
}

// askFlags are the options of ping and conn.
func askFlags(f *cli.Flags, o *options) {
	o.size = 64
	f.Var(cli.Number{P: &o.size, Min: 0, Max: maxAsk, Unit: "bytes"}, "size", "bytes there and back, such as 64")
	f.Var(cli.Number{P: &o.count, Min: 0, Max: math.MaxInt32}, "count", "how many, such as 1000000")
	f.StringVar(&o.hdr, "hdr", "", "the file for the HdrHistogram log, or - for standard output")
}

// parse reads the command line after the verb.
func parse(verb string, args []string) (*options, api.Config, error) {
	o := new(options)
	eal, opts, err := cli.Split(args)
	if err != nil {
		return nil, api.Config{}, err
	}
	f := newFlags(verb, o)
	if err := f.Parse(opts); err != nil {
		return nil, api.Config{}, err
	}
	if err := f.NoArgs(); err != nil {
		return nil, api.Config{}, err
	}
	side := cli.Connector
	if verb == "recv" {
		side = cli.Listener
	}
	cfg, err := o.Net.Config(eal, side)
	if err != nil {
		return nil, api.Config{}, err
	}
	if err := o.consistent(f, cfg); err != nil {
		return nil, api.Config{}, err
	}
	o.yields = cfg.Yield
	cfg.Faults = o.faults
	cfg.Faults.Seed = uint64(o.faultSeed)
	return o, cfg, f.PrintConfig()
}

// consistent fills what is left to the other options and checks them against each other.
func (o *options) consistent(f *cli.Flags, cfg api.Config) error {
	if o.tcp && o.udp {
		return cli.Usagef("--tcp and --udp exclude each other: give one of them")
	}
	if o.verb != "recv" {
		if err := o.consistentPeer(f, cfg); err != nil {
			return err
		}
	} else if f.Changed("out") && o.out == "" {
		return cli.Usagef("--out needs a file's name, or - for standard output")
	}
	if o.verb == "ping" || o.verb == "conn" {
		if err := o.consistentAsk(f); err != nil {
			return err
		}
	}
	if f.Changed("fault-seed") && !o.faults.Any() {
		return cli.Usagef("--fault-seed needs a fault: give --loss, --duplicate or --reorder")
	}
	if o.udp {
		for _, name := range []string{"file", "out", "sha256", "bidir"} {
			if f.Changed(name) {
				return cli.Usagef("--%s needs --tcp: datagrams may be lost and have no end", name)
			}
		}
	}
	for _, both := range []string{"bidir", "echo"} {
		for _, name := range []string{"file", "out", "sha256", "zero-copy", "echo", "bidir"} {
			if both != name && f.Changed(both) && f.Changed(name) {
				return cli.Usagef("--%s and --%s exclude each other: give one of them", both, name)
			}
		}
	}
	return nil
}

func (o *options) consistentPeer(f *cli.Flags, cfg api.Config) error {
	switch {
	case !f.Changed("connect-ip") && o.Defaults():
		o.connectIP = cli.Listener.Addr.Addr()
	case !f.Changed("connect-ip"):
		return cli.Usagef("--connect-ip is missing: give the receiver's address, such as --connect-ip 10.0.0.1")
	}
	switch {
	case o.connectIP == cfg.Addr.Addr():
		return cli.Usagef("--connect-ip %s is the own address: give the receiver's", o.connectIP)
	case !cfg.Addr.Contains(o.connectIP) && !cfg.Gateway.IsValid():
		return cli.Usagef("--connect-ip %s is not in %s: give --gateway, or a shorter prefix in --bind-ip", o.connectIP, cfg.Addr.Masked())
	case o.bindPort != 0 && o.bindPort+o.connections-1 > 65535:
		return cli.Usagef("--bind-port %d leaves %d ports for --connections %d: want a --bind-port of at most %d", o.bindPort, 65536-o.bindPort, o.connections, 65536-o.connections)
	case f.Changed("file") && o.file == "":
		return cli.Usagef("--file needs a file's name, or - for standard input")
	case o.file == "-" && o.connections > 1:
		return cli.Usagef("--file - can be sent once: leave out --connections, or give a regular file")
	case o.repeat > 0 && (o.file == "" || o.file == "-"):
		return cli.Usagef("--repeat needs --file with a regular file: a stream without end does not come to a second one")
	}
	if !f.Changed("connect-timeout") {
		if o.connectTimeout = o.timeout; o.timeout == 0 {
			o.connectTimeout = defaultConnect
		}
	}
	return nil
}

func (o *options) consistentAsk(f *cli.Flags) error {
	switch {
	case f.Changed("hdr") && o.hdr == "":
		return cli.Usagef("--hdr needs a file's name, or - for standard output")
	case o.verb == "ping" && o.size == 0:
		return cli.Usagef("--size 0: a ping is at least 1 byte")
	case o.udp && (o.size < 8 || o.size > maxDatagram):
		return cli.Usagef("--size %d: a datagram holds a number that tells when it is late, and is one frame: want 8 to %d bytes", o.size, maxDatagram)
	}
	return nil
}
