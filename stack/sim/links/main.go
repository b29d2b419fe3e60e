// Command links repeats in the simulator what the studies of TCP stacks on production links did (H. Bullot, R. L. Cottrell,
// R. Hughes-Jones, Evaluation of advanced TCP stacks on fast long-distance production networks, 2003): streams of several
// congestion controls, alone and side by side, over one long path. It prints tables, and with --out it keeps them, the
// figures of each run, and plots. 'ndpip-exp links' runs it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"ndpip/stack/link"
	"ndpip/tcp"
)

// lab is the path, and how long and how often each cell is run.
type lab struct {
	path     link.Path
	warm, d  time.Duration
	window   int // bytes, where it is not what varies
	controls []string
	seeds    int
	crowd    int // most Reno streams beside another one
	windows  []int
	workers  int
	progress io.Writer
}

// options are those of the command line that are not the lab's.
type options struct {
	only, out, root string
}

// usageError is a fault in the command line: exit status 2.
type usageError struct{ error }

func main() {
	err := run(os.Args[1:], os.Stdout, os.Stderr)
	var usage usageError
	switch {
	case errors.Is(err, flag.ErrHelp):
	case errors.As(err, &usage):
		fmt.Fprintln(os.Stderr, "links:", err)
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "links:", err)
		os.Exit(1)
	}
}

func parse(args []string, stderr io.Writer) (*lab, options, error) {
	var o options
	f := flag.NewFlagSet("ndpip-exp links", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	var (
		rate  = f.Int64("rate", 622e6, "bits per second of the link")
		rtt   = f.Duration("rtt", 200*time.Millisecond, "round trip without queues")
		loss  = f.Float64("loss", 1e-5, "share of the frames that is lost at random")
		queue = f.Int("queue", 2500, "frames that wait for the link at most; further ones are lost")
		d     = f.Duration("time", 20*time.Second, "how long each run is measured, in virtual time")
		warm  = f.Duration("warmup", 10*time.Second, "how long it runs before")
		win   = f.Int("window", 32<<20, "receive window of each stream in bytes, where it is not what varies")
		names = f.String("controls", "cubic,highspeed,scalable,fast", "the congestion controls that are compared with Reno")
		seeds = f.Int("seeds", 3, "how often each run is made, with other frames lost; figures are mean ± standard deviation")
	)
	f.StringVar(&o.only, "only", "", "experiments to run, of "+strings.Join(experimentNames(), ",")+"; all if empty")
	f.StringVar(&o.out, "out", "", "a folder for tables.txt, figures.csv and the plots")
	f.StringVar(&o.root, "root", "", "ndpip's source tree, whose bench/plot draws")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		f.SetOutput(stderr)
		f.PrintDefaults()
		return nil, o, err
	} else if err != nil {
		return nil, o, usageError{err}
	}
	l := &lab{path: link.Path{Rate: *rate, Delay: *rtt / 2, Loss: *loss, Queue: *queue}, warm: *warm, d: *d, window: *win,
		controls: strings.Split(*names, ","), seeds: *seeds, crowd: 8, windows: []int{1, 2, 4, 8, 16, 32, 64}, workers: runtime.GOMAXPROCS(0), progress: stderr}
	switch {
	case f.NArg() > 0:
		return nil, o, usageError{fmt.Errorf("%q is no option", f.Arg(0))}
	case *rate < 1e6 || *rtt < time.Microsecond || *loss < 0 || *loss >= 1 || *queue < 1:
		return nil, o, usageError{fmt.Errorf("--rate %d --rtt %v --loss %g --queue %d: want a rate from 1000000, an RTT above 1us, a loss below 1, a queue from 1",
			*rate, *rtt, *loss, *queue)}
	case *d <= 0 || *warm < 0 || *seeds < 1:
		return nil, o, usageError{fmt.Errorf("--time %v --warmup %v --seeds %d: want a time above 0, a warm-up from 0, seeds from 1", *d, *warm, *seeds)}
	case *win < 1<<16 || *win > 1<<30:
		return nil, o, usageError{fmt.Errorf("--window %d: want 65536 to 1073741824", *win)}
	}
	for _, c := range l.controls {
		if _, ok := tcp.ControlNamed(c); !ok {
			return nil, o, usageError{fmt.Errorf("--controls %s: want some of %s", c, strings.Join(tcp.ControlNames(), ", "))}
		}
	}
	if o.only != "" {
		for name := range strings.SplitSeq(o.only, ",") {
			if !slices.Contains(experimentNames(), name) {
				return nil, o, usageError{fmt.Errorf("--only %s: want some of %s", name, strings.Join(experimentNames(), ", "))}
			}
		}
	}
	return l, o, nil
}

func run(args []string, stdout, stderr io.Writer) error {
	l, o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	var k keeper
	if o.out != "" {
		if err := k.open(o.out); err != nil {
			return err
		}
		stdout = io.MultiWriter(stdout, &k.tables)
	}
	fmt.Fprintf(stdout, "%d Mb/s, %v, %d frames of queue, %g of the frames lost; %v after %v; Mb/s of payload, mean ± deviation of %d runs\n",
		l.path.Rate/1e6, 2*l.path.Delay, l.path.Queue, l.path.Loss, l.d, l.warm, l.seeds)
	for _, e := range experiments {
		if o.only != "" && !slices.Contains(strings.Split(o.only, ","), e.name) {
			continue
		}
		cells := e.cells(l)
		got := l.measure(cells)
		e.table(l, got, stdout)
		k.keep(cells, got)
		if o.out != "" && o.root != "" {
			p := e.picture(l, got)
			p.Notes = append(p.Notes, e.published)
			if err := p.draw(o.root, o.out, e.name); err != nil {
				fmt.Fprintf(stderr, "links: no plot of %s: %v\n", e.name, err)
			}
		}
	}
	return k.close()
}
