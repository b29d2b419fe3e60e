package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// options are the command line of a run of rows.
type options struct {
	only        []string
	mss         []int
	connections []int
	checksum    string
	quick, list bool
	time        time.Duration // per row; 0: by kind
	format      string
	save        string
	compare     string
	profile     string
}

const help = `usage: go run ./cmd/dev bench [options]           rows: ns per segment, beside the floor loop
       go run ./cmd/dev bench pause [options]     turn times of a worker under load (bench pause --help)
       go run ./cmd/dev bench counters [options]  what the counters cost (bench counters --help)

  --only NAMES         rows of these names, or whose names begin so, such as lockstep,memif
  --mss SIZES          only these segment sizes, such as 64,1460
  --connections N      only these numbers of connections, such as 1,4096
  --checksum KIND      only rows with checksums off, or in software
  --quick              fewer rows and less time for each: under 45 s in all
  --time TIME          time for each row, such as 2s (300ms; 3s where processes are started)
  --format KIND        text; markdown: the same table for a document; json: one object per row (text)
  --save FILE          keep the figures, in the format of benchstat
  --compare FILE       compare with figures that were kept
  --cpuprofile FILE    write a CPU profile of this process, for go tool pprof
  --list               list the rows and end
`

func printHelp(w io.Writer) {
	fmt.Fprint(w, help)
	fmt.Fprintf(w, "\nNames:\n")
	for _, k := range kinds {
		fmt.Fprintf(w, "  %-20s %s\n", k.name, k.what)
	}
}

func parse(args []string) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	only := fs.String("only", "", "")
	mss := fs.String("mss", "", "")
	connections := fs.String("connections", "", "")
	fs.StringVar(&o.checksum, "checksum", "", "")
	fs.BoolVar(&o.quick, "quick", false, "")
	fs.BoolVar(&o.list, "list", false, "")
	fs.DurationVar(&o.time, "time", 0, "")
	fs.StringVar(&o.format, "format", "text", "")
	fs.StringVar(&o.save, "save", "", "")
	fs.StringVar(&o.compare, "compare", "", "")
	fs.StringVar(&o.profile, "cpuprofile", "", "")
	if err := fs.Parse(args); err == flag.ErrHelp {
		return nil, err
	} else if err != nil {
		return nil, usagef("%v (--help lists the options)", err)
	}
	if fs.NArg() > 0 {
		return nil, usagef("%q is no option: only options are taken (--help lists them)", fs.Arg(0))
	}
	var err error
	if o.mss, err = numbers("mss", *mss); err != nil {
		return nil, err
	}
	if o.connections, err = numbers("connections", *connections); err != nil {
		return nil, err
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	for _, name := range o.only {
		if !slices.ContainsFunc(kinds, func(k kind) bool { return named(k.name, name) }) {
			return nil, usagef("--only %s: there is no such row; the names are %s", name, kindNames())
		}
	}
	switch {
	case o.checksum != "" && o.checksum != "off" && o.checksum != "software":
		return nil, usagef("--checksum %s: want off or software", o.checksum)
	case o.format != "text" && o.format != "markdown" && o.format != "json":
		return nil, usagef("--format %s: want text, markdown or json", o.format)
	case o.time < 0 || o.time > time.Hour:
		return nil, usagef("--time %s: want a time up to one hour, such as 500ms", o.time)
	}
	return o, nil
}

func numbers(option, text string) ([]int, error) {
	if text == "" {
		return nil, nil
	}
	var out []int
	for f := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil || n < 1 || n > 1<<20 {
			return nil, usagef("--%s %s: want numbers with commas between them, such as 64,1460", option, text)
		}
		out = append(out, n)
	}
	return out, nil
}

// named says whether a row's name is meant by what --only says: lockstep means lockstep-copy too.
func named(row, only string) bool { return row == only || strings.HasPrefix(row, only+"-") }

// choose gives the rows that the options leave.
func (o *options) choose(rows []row) []row {
	return slices.DeleteFunc(rows, func(r row) bool {
		switch {
		case len(o.only) > 0 && !slices.ContainsFunc(o.only, func(name string) bool { return named(r.kind.name, name) }):
			return true
		case len(o.mss) > 0 && r.MSS != 0 && !slices.Contains(o.mss, r.MSS):
			return true
		case len(o.connections) > 0 && r.Connections != 0 && !slices.Contains(o.connections, r.Connections):
			return true
		case o.checksum != "" && r.Checksum != "" && r.Checksum != o.checksum:
			return true
		}
		return o.quick && !r.quick
	})
}
