package main

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// minMaxseg is the least that the kernel takes as TCP_MAXSEG.
const minMaxseg = 88

const (
	defaultPort    = 5001
	defaultConnect = 30 * time.Second
	maxConnections = 64512
	maxDatagram    = 9176
)

type options struct {
	verb                         string
	bind, peer                   netip.Addr
	bindPort, port, connections  int
	burst, mss, rcvBuf, sndBuf   int
	cpu                          int // -1: not pinned
	timeout, interval, connectIn time.Duration
	format                       string
	tcp, udp, bidir, echo        bool

	size, count, parallel int // ping, conn
	hdr                   string
	reset                 bool
}

// number is a whole number within limits.
type number struct {
	p        *int
	min, max int
}

func (v number) String() string { return "" }
func (v number) Type() string   { return "N" }
func (v number) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < v.min || n > v.max {
		return fmt.Errorf("want a whole number from %d to %d", v.min, v.max)
	}
	*v.p = n
	return nil
}

// seconds is a span of time.
type seconds struct{ p *time.Duration }

func (v seconds) String() string { return "" }
func (v seconds) Type() string   { return "SECONDS" }
func (v seconds) Set(s string) error {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(f) || f < 0 || f > 1e9 {
		return fmt.Errorf("want seconds, such as 10 or 0.5")
	}
	*v.p = time.Duration(f * 1e9)
	return nil
}

// host is an IPv4 address.
type host struct{ p *netip.Addr }

func (v host) String() string { return "" }
func (v host) Type() string   { return "IP" }
func (v host) Set(s string) error {
	a, err := netip.ParseAddr(s)
	if err != nil || !a.Is4() {
		return fmt.Errorf("want an IPv4 address, such as 10.0.0.1")
	}
	*v.p = a
	return nil
}

// parse reads the command line. pflag.ErrHelp asks for the help.
func parse(args []string) (*options, error) {
	if len(args) == 0 {
		return nil, usagef("give a verb: recv, send, ping or conn; 'linux-perf help' explains them")
	}
	o := &options{
		verb: args[0], bind: netip.IPv4Unspecified(), port: defaultPort, connections: 1, burst: 32, mss: 1460, cpu: -1,
		interval: time.Second, connectIn: defaultConnect, format: "text", size: 64, parallel: 64,
	}
	switch o.verb {
	case "recv":
		o.bindPort = defaultPort
	case "send", "ping", "conn":
	case "help", "--help", "-h":
		return o, pflag.ErrHelp
	default:
		return nil, usagef("%s is no verb; the first argument is recv, send, ping, conn or help", oneLine(o.verb))
	}
	f := newFlags(o)
	err := f.Parse(args[1:])
	if !f.Changed("connect-timeout") && o.timeout > 0 {
		o.connectIn = o.timeout
	}
	switch {
	case err == pflag.ErrHelp:
		return o, err
	case err != nil:
		return nil, usagef("%s; see 'linux-perf help'", oneLine(err.Error()))
	case f.NArg() > 0:
		return nil, usagef("%s belongs to no option; options begin with --", oneLine(f.Arg(0)))
	case o.format != "text" && o.format != "json":
		return nil, usagef("--format %s: want text or json", oneLine(o.format))
	case o.tcp && o.udp:
		return nil, usagef("--tcp and --udp exclude each other: give one of them")
	case o.bidir && o.udp:
		return nil, usagef("--bidir needs --tcp: datagrams may be lost and have no end")
	case o.bidir && o.echo:
		return nil, usagef("--bidir and --echo exclude each other: give one of them")
	case o.verb == "ping" && o.size == 0:
		return nil, usagef("--size 0: a ping is at least 1 byte")
	case o.udp && o.verb == "ping" && (o.size < 8 || o.size > maxDatagram):
		return nil, usagef("--size %d: a datagram holds a number that tells when it is late: want 8 to %d bytes", o.size, maxDatagram)
	case f.Changed("hdr") && o.hdr == "":
		return nil, usagef("--hdr needs a file's name, or - for standard output")
	case o.verb != "recv" && !o.peer.IsValid():
		return nil, usagef("--connect-ip is missing: give the receiver's address, such as --connect-ip 10.0.0.1")
	}
	return o, nil
}

// newFlags are the options of a verb.
func newFlags(o *options) *pflag.FlagSet {
	f := pflag.NewFlagSet("linux-perf "+o.verb, pflag.ContinueOnError)
	f.Usage = func() {}
	f.Var(host{&o.bind}, "bind-ip", "")
	f.Var(number{&o.bindPort, 1, 65535}, "bind-port", "")
	f.Var(number{&o.burst, 1, 256}, "burst", "")
	f.Var(number{&o.mss, 24, 9176}, "mss", "")
	f.Var(number{&o.rcvBuf, 2048, 1 << 30}, "rcvbuf", "")
	f.Var(number{&o.sndBuf, 2048, 1 << 30}, "sndbuf", "")
	f.Var(number{&o.cpu, 0, 1023}, "cpu", "")
	f.Var(seconds{&o.timeout}, "timeout", "")
	f.Var(seconds{&o.interval}, "interval", "")
	f.StringVar(&o.format, "format", "text", "")
	if o.verb != "conn" {
		f.BoolVar(&o.tcp, "tcp", false, "")
		f.BoolVar(&o.udp, "udp", false, "")
	}
	if o.verb != "recv" {
		f.Var(host{&o.peer}, "connect-ip", "")
		f.Var(number{&o.port, 1, 65535}, "connect-port", "")
		f.Var(seconds{&o.connectIn}, "connect-timeout", "")
	}
	switch o.verb {
	case "recv":
		f.BoolVar(&o.echo, "echo", false, "")
		f.BoolVar(&o.bidir, "bidir", false, "")
	case "send":
		f.Var(number{&o.connections, 1, maxConnections}, "connections", "")
		f.BoolVar(&o.bidir, "bidir", false, "")
	case "conn":
		f.Var(number{&o.parallel, 1, 32768}, "parallel", "")
		f.BoolVar(&o.reset, "reset", false, "")
	}
	if o.verb == "ping" || o.verb == "conn" {
		f.Var(number{&o.size, 0, 1 << 20}, "size", "")
		f.Var(number{&o.count, 0, math.MaxInt32}, "count", "")
		f.StringVar(&o.hdr, "hdr", "", "")
	}
	return f
}
