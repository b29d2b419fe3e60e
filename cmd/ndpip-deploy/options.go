package main

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

type options struct {
	hosts       string
	programs    string
	tree        string
	out         string
	experiments []string
	dryRun      bool
	rest        []string // for ndpip-exp
}

var errHelp = errors.New("help asked for")

// experiments are those of ndpip-exp that need no further options.
var experiments = []string{"exp1", "exp2"}

func parse(args []string) (*options, error) {
	o := &options{}
	f := pflag.NewFlagSet("ndpip-deploy", pflag.ContinueOnError)
	f.Usage = func() {}
	var check bool
	f.StringVar(&o.hosts, "hosts", "", "")
	f.StringVar(&o.programs, "programs", "", "")
	f.StringVar(&o.tree, "tree", "", "")
	f.StringVar(&o.out, "out", "ndpip-"+time.Now().Format("20060102-150405"), "")
	f.StringSliceVar(&o.experiments, "experiments", experiments, "")
	f.BoolVar(&check, "check", false, "")
	f.BoolVar(&o.dryRun, "dry-run", false, "")
	if err := f.Parse(args); errors.Is(err, pflag.ErrHelp) {
		return nil, errHelp
	} else if err != nil {
		return nil, usagef("%w (ndpip-deploy --help lists the options)", err)
	}
	o.rest = f.Args()
	if n := f.ArgsLenAtDash(); n > 0 || n < 0 && len(o.rest) > 0 {
		return nil, usagef("%q: want options only, and those of ndpip-exp behind --", o.rest[0])
	}
	switch {
	case o.hosts == "":
		return nil, usagef("--hosts FILE is missing: want a file that describes both hosts, such as docs/hosts.toml")
	case !filepath.IsAbs(o.programs):
		return nil, usagef("--programs %q: want the store path of the programs, which 'nix run .#deploy' gives by itself", o.programs)
	}
	for _, e := range o.experiments {
		if !slices.Contains(experiments, e) {
			return nil, usagef("--experiments %s: want some of %s", e, strings.Join(experiments, ", "))
		}
	}
	if check {
		o.experiments = nil
	}
	var err error
	o.out, err = filepath.Abs(o.out)
	return o, err
}
