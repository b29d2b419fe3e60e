package main

import (
	_ "embed"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"ndpip/api"
	"ndpip/cmd/internal/cli"
)

const program = "ndpip-cat"

//go:embed help.txt
var ownHelp string

func helpText() string { return ownHelp + "\n" + cli.NetHelp }

// options are what the command line says.
type options struct {
	cli.Net
	listen         bool
	addr           netip.AddrPort // where to listen, or whom to connect to
	keep           bool
	connectTimeout time.Duration
}

func newFlags(o *options) *cli.Flags {
	*o = options{connectTimeout: 30 * time.Second}
	f := cli.NewFlags(program)
	o.Net.Register(f)
	f.BoolVarP(&o.keep, "keep-listening", "k", false, "take the next connection when one has ended")
	f.Var(cli.Seconds{P: &o.connectTimeout, Min: time.Millisecond}, "connect-timeout", "seconds to wait for the peer, such as 30")
	return f
}

// parse reads the command line. The verb and its address may stand before, between and after the options.
func parse(args []string) (*options, api.Config, error) {
	fail := func(err error) (*options, api.Config, error) { return nil, api.Config{}, err }
	if len(args) == 0 {
		return fail(cli.Usagef("give a verb and a port, as in '%s --wire memif:/tmp/ndpip.sock listen 5001'; '%s help' explains more", program, program))
	}
	if args[0] == "help" || cli.WantsHelp(args) {
		return fail(cli.ErrHelp)
	}
	eal, opts, err := cli.Split(args)
	if err != nil {
		return fail(err)
	}
	o := new(options)
	f := newFlags(o)
	if err := f.Parse(opts); err != nil {
		return fail(err)
	}
	side, err := o.verb(f)
	if err != nil {
		return fail(err)
	}
	cfg, err := o.Net.Config(eal, side)
	if err != nil {
		return fail(err)
	}
	switch own := cfg.Addr.Addr(); {
	case o.listen && o.addr.Addr() == netip.IPv4Unspecified():
		o.addr = netip.AddrPortFrom(own, o.addr.Port())
	case o.listen && o.addr.Addr() != own:
		return fail(cli.Usagef("listen %s differs from --bind-ip %s: give one of them", o.addr.Addr(), own))
	case !o.listen && o.addr.Addr() == own:
		return fail(cli.Usagef("connect %s is the own address: give the peer's", o.addr.Addr()))
	case !o.listen && !cfg.Addr.Contains(o.addr.Addr()) && !cfg.Gateway.IsValid():
		return fail(cli.Usagef("connect %s is not in %s: give --gateway, or a shorter prefix in --bind-ip", o.addr.Addr(), cfg.Addr.Masked()))
	}
	return o, cfg, f.PrintConfig()
}

// verb reads "listen [IP:]PORT" or "connect IP:PORT" and says which side of the wire that is.
func (o *options) verb(f *cli.Flags) (cli.Side, error) {
	none := cli.Side{}
	switch f.Arg(0) {
	case "listen":
		o.listen = true
	case "connect":
	case "":
		return none, cli.Usagef("the verb is missing: listen PORT, or connect IP:PORT")
	default:
		return none, cli.Usagef("%s is no verb: want listen [IP:]PORT, or connect IP:PORT", f.Arg(0))
	}
	if f.NArg() < 2 {
		return none, cli.Usagef("%s needs an address: listen PORT, or connect IP:PORT", f.Arg(0))
	}
	if f.NArg() > 2 {
		return none, cli.Usagef("%s is one too many: after %s comes one address", f.Arg(2), f.Arg(0))
	}
	ip, port, both := strings.Cut(f.Arg(1), ":")
	if !both {
		ip, port = "", f.Arg(1)
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil || number == 0 || !o.listen && !both {
		if o.listen {
			return none, cli.Usagef("listen %s: want a port from 1 to 65535, or IP:PORT", f.Arg(1))
		}
		return none, cli.Usagef("connect %s: want IP:PORT, such as 10.0.0.1:5001", f.Arg(1))
	}
	addr := netip.IPv4Unspecified()
	if both {
		if err := (cli.IP{P: &addr}).Set(ip); err != nil {
			return none, cli.Usagef("%s %s: before the colon want %s", f.Arg(0), f.Arg(1), err)
		}
	}
	o.addr = netip.AddrPortFrom(addr, uint16(number))
	if !o.listen {
		if f.Changed("keep-listening") {
			return none, cli.Usagef("--keep-listening belongs to listen: leave it out")
		}
		return cli.Connector, nil
	}
	if both && !f.Changed("bind-ip") { // listen IP:PORT says the own address
		if err := f.Set("bind-ip", ip); err != nil {
			return none, err
		}
	}
	return cli.Listener, nil
}
