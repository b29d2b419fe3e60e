// Command ndpip-stat looks at a process that runs the stack, while it runs: what it does, its sockets, port, pools and
// neighbours. 'ndpip-stat help' explains the options.
package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"ndpip/cmd/internal/cli"
)

const program = "ndpip-stat"

//go:embed help.txt
var help string

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the program; it returns the exit status. Help goes to stdout, a fault to stderr.
func run(args []string, stdout, stderr io.Writer) int {
	err := perform(args, stdout)
	if errors.Is(err, cli.ErrHelp) {
		fmt.Fprint(stdout, help)
	}
	return cli.Report(stderr, program, err)
}

// The views, and what each asks of the process.
var views = []string{"summary", "sockets", "ports", "pools", "neighbours", "counters", "metrics", "capture", "trace", "list"}

// options are what the command line says.
type options struct {
	who      string // a process's number, or a socket's path; "": the only one that there is
	view     string
	format   string
	interval time.Duration
	live     bool
	count    int
	filter   string // of capture
	snap     int
}

func parse(args []string) (*options, error) {
	if cli.WantsHelp(args) || len(args) > 0 && args[0] == "help" {
		return nil, cli.ErrHelp
	}
	o := &options{view: "summary", format: "table", interval: time.Second}
	f := cli.NewFlags(program)
	f.Var(cli.Choice{P: &o.format, Words: []string{"table", "json"}}, "format", "table or json")
	f.Var(cli.Seconds{P: &o.interval, Min: time.Millisecond}, "interval", "seconds that rates are taken over, such as 1")
	f.BoolVarP(&o.live, "live", "l", false, "look again and again")
	f.Var(cli.Number{P: &o.count, Min: 1, Max: 1 << 30}, "count", "how many times to look, such as 10")
	f.StringVar(&o.filter, "filter", "", `frames to capture, such as "host 10.0.0.2 port 80"`)
	f.Var(cli.Number{P: &o.snap, Min: 14, Max: 1 << 18, Unit: "bytes"}, "snap", "bytes to keep of a captured frame, such as 96")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	for _, a := range f.Args() {
		switch {
		case isView(a):
			o.view = a
		case o.who == "" && isProcess(a):
			o.who = a
		default:
			return nil, cli.Usagef("%s is neither the number of a process, nor the path of a socket, nor a view: want one of %s", a, strings.Join(views, ", "))
		}
	}
	if o.view != "capture" && (f.Changed("snap") || f.Changed("filter") && o.view != "trace") {
		return nil, cli.Usagef("--filter belongs to capture and trace, and --snap to capture")
	}
	if o.count == 0 && !o.live {
		o.count = 1
	}
	return o, nil
}

func isView(s string) bool {
	for _, v := range views {
		if v == s {
			return true
		}
	}
	return false
}

func isProcess(s string) bool {
	_, err := strconv.ParseUint(s, 10, 31)
	return err == nil || strings.Contains(s, "/")
}

func perform(args []string, w io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.view == "list" {
		return list(w, o.format)
	}
	c, err := dial(o.who)
	if err != nil {
		return err
	}
	defer c.Close()
	if o.view == "metrics" {
		return c.copyMetrics(w)
	}
	stop := cli.Signals(program)
	if o.view == "trace" {
		return c.follow(w, "trace "+o.filter, stop)
	}
	if o.view == "capture" {
		return c.capture(w, o, stop)
	}
	show, err := newShow(c, o)
	if err != nil {
		return err
	}
	for i := 0; o.count == 0 || i < o.count; i++ {
		if show.rates() || i > 0 {
			select {
			case <-stop.Done():
				return nil
			case <-time.After(o.interval):
			}
		}
		if err := show.next(w); err != nil {
			return err
		}
	}
	return nil
}
