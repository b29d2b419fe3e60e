// Command links repeats in the simulator what the studies of TCP stacks on production links did (H. Bullot, R. L. Cottrell,
// R. Hughes-Jones, Evaluation of advanced TCP stacks on fast long-distance production networks, 2003): streams of several
// congestion controls, alone and side by side, over one long path. It prints tables. 'ndpip-exp links' runs it.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"ndpip/stack/link"
	"ndpip/tcp"
)

// lab is the path, and how long each run is.
type lab struct {
	out      io.Writer
	path     link.Path
	warm, d  time.Duration
	window   int
	controls []string
	csv      io.Writer
}

func main() {
	var (
		rate  = flag.Int64("rate", 622e6, "bits per second of the link")
		rtt   = flag.Duration("rtt", 200*time.Millisecond, "round trip without queues")
		loss  = flag.Float64("loss", 1e-5, "share of the frames that is lost at random")
		queue = flag.Int("queue", 2500, "frames that wait for the link at most; further ones are lost")
		d     = flag.Duration("time", 60*time.Second, "how long each run is measured, in virtual time")
		warm  = flag.Duration("warmup", 10*time.Second, "how long it runs before")
		only  = flag.String("only", "", "one of versus, crowd, window, sharing; all if empty")
		win   = flag.Int("window", 32<<20, "receive window of each stream in bytes, where it is not what varies")
		names = flag.String("controls", "cubic,highspeed,scalable,fast", "the congestion controls that are compared with Reno")
		csv   = flag.String("csv", "", "a file for the figures")
	)
	flag.Parse()
	l := &lab{out: os.Stdout, path: link.Path{Rate: *rate, Delay: *rtt / 2, Loss: *loss, Queue: *queue}, warm: *warm, d: *d,
		window: *win, controls: strings.Split(*names, ","), csv: io.Discard}
	for _, c := range l.controls {
		if _, ok := tcp.ControlNamed(c); !ok {
			fmt.Fprintf(os.Stderr, "links: --controls %s: want some of %s\n", c, strings.Join(tcp.ControlNames(), ", "))
			os.Exit(2)
		}
	}
	if *csv != "" {
		f, err := os.Create(*csv)
		if err != nil {
			fmt.Fprintln(os.Stderr, "links:", err)
			os.Exit(1)
		}
		defer f.Close()
		l.csv = f
	}
	fmt.Fprintf(l.out, "%d Mb/s, %v, %d frames of queue, %g of the frames lost; %v after %v; Mb/s of payload\n",
		*rate/1e6, *rtt, *queue, *loss, *d, *warm)
	fmt.Fprintln(l.csv, "experiment,control,beside,number,window,stream,mbps")
	all := []struct {
		name string
		run  func()
	}{{"versus", l.versus}, {"crowd", l.crowd}, {"window", l.windows}, {"sharing", l.sharing}}
	found := false
	for _, e := range all {
		if *only == "" || *only == e.name {
			found = true
			e.run()
		}
	}
	if !found {
		fmt.Fprintf(os.Stderr, "links: --only %s: want one of versus, crowd, window, sharing\n", *only)
		os.Exit(2)
	}
}

// many is n streams of a control.
func many(control string, n int) []string { return strings.Fields(strings.Repeat(control+" ", n)) }

// run measures streams side by side and keeps the figures.
func (l *lab) run(experiment string, window int, controls ...string) []float64 {
	r := newRun(l.path, window, controls)
	got := r.measure(l.warm, l.d)
	for i, c := range controls {
		fmt.Fprintf(l.csv, "%s,%s,%s,%d,%d,%d,%.1f\n", experiment, c, controls[len(controls)-1], len(controls), window, i, got[i])
	}
	return got
}

// versus is one stream of each against one of Reno.
func (l *lab) versus() {
	fmt.Fprint(l.out, "\nOne stream against one Reno stream (published: Scalable up to 3 times what Reno has alone)\n")
	alone := l.run("alone", l.window, "reno")[0]
	fmt.Fprintf(l.out, "%-10s %8s %8s %8s\n%-10s %8.0f\n", "control", "alone", "stream", "Reno", "reno", alone)
	for _, c := range l.controls {
		own := l.run("alone", l.window, c)[0]
		got := l.run("versus", l.window, c, "reno")
		fmt.Fprintf(l.out, "%-10s %8.0f %8.0f %8.0f\n", c, own, got[0], got[1])
	}
}

// crowd is one stream of each against 1 to 8 of Reno.
func (l *lab) crowd() {
	fmt.Fprint(l.out, "\nOne stream against n Reno streams: the stream, and the sum of the others\n"+
		"(published: FAST 215 ± 15 while Reno grows from 87 with one stream to 150 with 8; 5 Reno streams ahead of one Scalable)\n")
	fmt.Fprintf(l.out, "%-10s", "control")
	for n := 1; n <= 8; n++ {
		fmt.Fprintf(l.out, " %11d", n)
	}
	fmt.Fprintln(l.out)
	for _, c := range l.controls {
		fmt.Fprintf(l.out, "%-10s", c)
		for n := 1; n <= 8; n++ {
			got := l.run("crowd", l.window, append([]string{c}, many("reno", n)...)...)
			fmt.Fprintf(l.out, " %5.0f %5.0f", got[0], sum(got[1:]))
		}
		fmt.Fprintln(l.out)
	}
}

// windows has windows from 1 to 64 MB, alone and against Reno.
func (l *lab) windows() {
	fmt.Fprint(l.out, "\nWindow in MB: alone, and the stream with Reno beside it\n"+
		"(published at 16 MB: Reno 220 ± 60 alone, FAST 295 ± 64 alone, FAST 285 ± 77 against Reno 45 ± 30)\n")
	fmt.Fprintf(l.out, "%-10s", "control")
	for mb := 1; mb <= 64; mb *= 2 {
		fmt.Fprintf(l.out, " %15d", mb)
	}
	fmt.Fprintln(l.out)
	for _, c := range append([]string{"reno"}, l.controls...) {
		fmt.Fprintf(l.out, "%-10s", c)
		for mb := 1; mb <= 64; mb *= 2 {
			own := l.run("window alone", mb<<20, c)[0]
			got := l.run("window", mb<<20, c, "reno")
			fmt.Fprintf(l.out, " %5.0f %4.0f/%4.0f", own, got[0], got[1])
		}
		fmt.Fprintln(l.out)
	}
}

// sharing is two of a kind, and two kinds.
func (l *lab) sharing() {
	fmt.Fprint(l.out, "\nTwo streams, row and column, and how fairly they share (Jain's index: 1 is equal, 0.5 all for one)\n")
	all := append([]string{"reno"}, l.controls...)
	fmt.Fprintf(l.out, "%-10s", "")
	for _, c := range all {
		fmt.Fprintf(l.out, " %14s", c)
	}
	fmt.Fprintln(l.out)
	for i, a := range all {
		fmt.Fprintf(l.out, "%-10s%s", a, strings.Repeat(" ", 15*i))
		for _, b := range all[i:] {
			got := l.run("sharing", l.window, a, b)
			s := sum(got)
			fmt.Fprintf(l.out, " %4.0f %4.0f %.2f", got[0], got[1], s*s/2/max(got[0]*got[0]+got[1]*got[1], 1))
		}
		fmt.Fprintln(l.out)
	}
}

func sum(v []float64) (s float64) {
	for _, x := range v {
		s += x
	}
	return s
}

// control is the number of a congestion control that there is.
func control(name string) uint8 {
	id, ok := tcp.ControlNamed(name)
	if !ok {
		panic("no control " + name)
	}
	return id
}
