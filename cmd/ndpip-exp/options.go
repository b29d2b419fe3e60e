package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// options are the command line.
type options struct {
	verb                 string
	local, netns, resume bool
	dryRun               bool
	hosts, ssh           string
	fstack, mtcp         string
	paper, plots         bool
	out                  string
	plan                 plan
}

// planFlags are those that say what is measured: with --resume they come from the stored results.
var planFlags = []string{"local", "netns", "stacks", "mss", "connections", "window", "burst", "protocol", "runs", "time", "warmup", "seed", "mbufs",
	"hosts", "ssh", "f-stack", "mtcp", "bidir"}

// parse reads the command line.
func parse(args []string) (*options, error) {
	if len(args) == 0 {
		return nil, usagef("give a verb: exp1, exp2, sweep or report; 'ndpip-exp help' explains them")
	}
	o := &options{verb: args[0]}
	switch o.verb {
	case "help", "--help", "-h":
		return nil, errHelp
	case "links":
		return o, nil // its options are those of stack/sim/links
	case "exp1", "exp2", "sweep", "report":
	default:
		return nil, usagef("%q is no verb; want exp1, exp2, sweep, links or report", o.verb)
	}
	f := pflag.NewFlagSet("ndpip-exp "+o.verb, pflag.ContinueOnError)
	f.Usage = func() {}
	p := &o.plan
	p.Experiment = o.verb
	*p = plan{Experiment: o.verb, MSS: []int{1460}, Connections: []int{1}, Window: []int{0}, Burst: []int{32}, Protocol: []string{"tcp"},
		Runs: 3, Seconds: 3, Warmup: 1, Seed: 1, Mbufs: 8192}
	switch o.verb {
	case "exp1":
		p.MSS = []int{64, 256, 512, 1460}
	case "exp2":
		p.Connections = []int{1, 1024, 2048, 4096}
		p.Mbufs = 65536 // a write of each connection may be on its way
	}
	f.BoolVar(&o.paper, "paper", true, "")
	f.BoolVar(&o.plots, "plots", true, "")
	if o.verb != "report" {
		f.BoolVar(&o.local, "local", false, "")
		f.BoolVar(&o.netns, "netns", false, "")
		f.BoolVar(&o.resume, "resume", false, "")
		f.StringVar(&o.out, "out", "", "")
		f.BoolVar(&o.dryRun, "dry-run", false, "")
		f.StringVar(&o.hosts, "hosts", "", "")
		f.StringVar(&o.ssh, "ssh", "ssh -o BatchMode=yes", "")
		f.StringVar(&o.fstack, "f-stack", "", "")
		f.StringVar(&o.mtcp, "mtcp", "", "")
		f.BoolVar(&p.Bidir, "bidir", false, "")
		f.Var(words{&p.Stacks, append(stackNames(), foreignNames()...)}, "stacks", "")
		f.Var(seconds{&p.Seconds, 0.2}, "time", "")
		f.Var(seconds{&p.Warmup, 0}, "warmup", "")
		f.Var(number{&p.Runs, 1, 1000}, "runs", "")
		f.Var(number{&p.Seed, 0, math.MaxInt32}, "seed", "")
		f.Var(number{&p.Mbufs, 512, 1 << 20}, "mbufs", "")
	}
	if o.verb == "sweep" {
		f.Var(numbers{&p.MSS, 48, 9176}, "mss", "")
		f.Var(numbers{&p.Connections, 1, 32768}, "connections", "")
		f.Var(numbers{&p.Window, 0, 1 << 30}, "window", "")
		f.Var(numbers{&p.Burst, 1, 256}, "burst", "")
		f.Var(words{&p.Protocol, []string{"tcp", "udp"}}, "protocol", "")
	}
	switch err := f.Parse(args[1:]); {
	case errors.Is(err, pflag.ErrHelp):
		return nil, errHelp
	case err != nil:
		return nil, usagef("%s: %w; see 'ndpip-exp help'", o.verb, err)
	case o.verb == "report" && f.NArg() == 1:
		o.out = f.Arg(0)
		return o, nil
	case o.verb == "report":
		return nil, usagef("report: want one folder with results, as in 'ndpip-exp report .cache/exp/exp1-20260102-030405'")
	case f.NArg() > 0:
		return nil, usagef("%s: %q belongs to no option; options begin with --", o.verb, f.Arg(0))
	}
	return o, o.consistent(f)
}

func (o *options) consistent(f *pflag.FlagSet) error {
	p := &o.plan
	if o.resume {
		for _, name := range planFlags {
			if name != "local" && name != "netns" && f.Changed(name) {
				return usagef("--%s: --resume goes on with the plan that is stored with the results: leave --%s out, or --resume", name, name)
			}
		}
		return nil
	}
	where := 0
	for _, given := range []bool{o.local, o.netns, o.hosts != ""} {
		if given {
			where++
		}
	}
	if where != 1 {
		return usagef("%s: say where, with one of --local (two processes over shared memory), --netns (with the kernel as a peer, as root) and --hosts (two hosts)", o.verb)
	}
	if p.Bidir && slices.Contains(p.Protocol, "udp") {
		return usagef("--bidir needs --protocol tcp: datagrams may be lost and have no end")
	}
	if err := o.foreign(); err != nil {
		return err
	}
	if p.Stacks == nil {
		p.Stacks = []string{"ndpip"}
		if o.netns {
			p.Stacks = append(p.Stacks, "linux")
		}
		for _, name := range foreignNames() {
			if p.Programs[name] != "" {
				p.Stacks = append(p.Stacks, name)
			}
		}
	}
	if o.hosts != "" {
		if p.SSH = strings.Fields(o.ssh); len(p.SSH) == 0 {
			return usagef("--ssh: want a command that takes a destination and a command line, such as ssh")
		}
		var err error
		p.Hosts, err = readHosts(o.hosts, p.SSH)
		return err
	}
	if f.Changed("ssh") {
		return usagef("--ssh needs --hosts")
	}
	if slices.Contains(p.Stacks, "linux") && os.Geteuid() != 0 {
		return usagef("the stack linux needs network namespaces, and so root; as another user give --local --stacks ndpip")
	}
	return nil
}

// foreign notes the programs that are given by path.
func (o *options) foreign() error {
	p := &o.plan
	for name, path := range map[string]string{"f-stack": o.fstack, "mtcp": o.mtcp} {
		switch wanted := slices.Contains(p.Stacks, name); {
		case path == "" && wanted:
			return usagef("--stacks %s: give the path of its program with --%s", name, name)
		case path == "":
			continue
		case o.hosts == "":
			return usagef("--%s needs --hosts: on one machine there is no wire for it", name)
		case p.Stacks != nil && !wanted:
			return usagef("--%s: the stack is not among those of --stacks: add it, or leave the path out", name)
		}
		if p.Programs == nil {
			p.Programs = make(map[string]string)
		}
		p.Programs[name] = path
	}
	return nil
}

// store opens the folder of the results: a new one, or with --resume one that is there.
func (o *options) store(ctx context.Context, root string) (*store, error) {
	home := filepath.Join(root, ".cache", "exp")
	if o.resume {
		dir := o.out
		if dir == "" {
			all, _ := filepath.Glob(filepath.Join(home, o.verb+"-*"))
			if len(all) == 0 {
				return nil, usagef("--resume: there are no results of %s in %s; say with --out where they are", o.verb, home)
			}
			dir = slices.Max(all)
		}
		st, err := openStore(dir)
		if err == nil && st.about.Plan.Experiment != o.verb {
			st.close()
			return nil, usagef("--resume: %s holds results of %s, not of %s", dir, st.about.Plan.Experiment, o.verb)
		}
		if err == nil && st.about.Plan.Hosts != nil && !o.dryRun {
			err = st.about.inspect(ctx)
		}
		return st, err
	}
	dir := o.out
	if dir == "" {
		dir = filepath.Join(home, o.verb+"-"+stamp(time.Now()))
	}
	a := describe(root, o.plan)
	if o.plan.Hosts != nil {
		if err := a.inspect(ctx); err != nil {
			return nil, err
		}
	}
	return newStore(dir, a)
}

// The values of options.

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

type numbers struct {
	p        *[]int
	min, max int
}

func (v numbers) String() string { return "" }
func (v numbers) Type() string   { return "LIST" }
func (v numbers) Set(s string) error {
	var out []int
	for w := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(w)
		if err != nil || n < v.min || n > v.max || slices.Contains(out, n) {
			return fmt.Errorf("want different whole numbers from %d to %d with commas between them", v.min, v.max)
		}
		out = append(out, n)
	}
	*v.p = out
	return nil
}

type words struct {
	p     *[]string
	known []string
}

func (v words) String() string { return "" }
func (v words) Type() string   { return "LIST" }
func (v words) Set(s string) error {
	var out []string
	for w := range strings.SplitSeq(s, ",") {
		if !slices.Contains(v.known, w) || slices.Contains(out, w) {
			return fmt.Errorf("want one or more of %s with commas between them", strings.Join(v.known, ", "))
		}
		out = append(out, w)
	}
	*v.p = out
	return nil
}

type seconds struct {
	p   *float64
	min float64
}

func (v seconds) String() string { return "" }
func (v seconds) Type() string   { return "SECONDS" }
func (v seconds) Set(s string) error {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= v.min && f <= 86400) {
		return fmt.Errorf("want seconds of at least %g, such as 3", v.min)
	}
	*v.p = f
	return nil
}
