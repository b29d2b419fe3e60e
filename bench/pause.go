package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"ndpip/dpdk"
)

//go:embed spin/spin.c
var spinSource []byte

const pauseHelp = `usage: go run ./cmd/dev bench pause [options]

A worker under the load of an application at full speed: how long its turns take, and how long a C program on the same
CPU is kept from reading the clock. What only the worker's turns show is Go's doing. The two take the CPU in turns, five
to one, or run side by side where a third CPU is there.

  --time TIME          length of the run (30s)
  --mss N              bytes in a segment (1460)
  --connections N      connections, written to in turn (64)
  --garbage MB         megabytes per second that the application leaves to the collector (64)
  --format text|json   json: one object (text)
`

type pauseOptions struct {
	time        time.Duration
	mss         int
	connections int
	garbage     int
	format      string
}

func parsePause(args []string) (*pauseOptions, error) {
	o := &pauseOptions{}
	fs := flag.NewFlagSet("bench pause", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.DurationVar(&o.time, "time", 30*time.Second, "")
	fs.IntVar(&o.mss, "mss", 1460, "")
	fs.IntVar(&o.connections, "connections", 64, "")
	fs.IntVar(&o.garbage, "garbage", 64, "")
	fs.StringVar(&o.format, "format", "text", "")
	switch err := fs.Parse(args); {
	case err == flag.ErrHelp:
		return nil, err
	case err != nil:
		return nil, usagef("pause: %v (--help lists the options)", err)
	case fs.NArg() > 0:
		return nil, usagef("pause: %q is no option (--help lists them)", fs.Arg(0))
	case o.time < time.Second || o.time > 24*time.Hour:
		return nil, usagef("pause: --time %s: want 1s to 24h", o.time)
	case o.mss < 48 || o.mss > 1460 || o.connections < 1 || o.connections > 4096 || o.garbage < 0 || o.garbage > 4096:
		return nil, usagef("pause: want --mss from 48 to 1460, --connections from 1 to 4096, --garbage from 0 to 4096")
	case o.format != "text" && o.format != "json":
		return nil, usagef("pause: --format %s: want text or json", o.format)
	}
	return o, nil
}

// pressure is an application at full speed on the main thread: sender, the sender's stack, and the receiver's reads. The
// receiver's stack is the worker's, or in its absence this thread's too.
type pressure struct {
	*lockstep
	garbage int // bytes per segment, in thousandths
	owed    int
	sink    []byte
	rounds  uint64
}

func (l *pressure) round(inline bool) {
	x, y := l.flow()
	n, _ := l.a.Send(x, l.out)
	l.owed += n / l.mss * l.garbage
	for l.owed >= 4096000 {
		l.owed -= 4096000
		l.sink = make([]byte, 4096)
	}
	l.a.Turn()
	if inline {
		l.b.Turn()
	}
	_, _ = l.b.Recv(y, l.in)
	l.rounds++
}

// slices: how long the worker and the spinning program have the CPU in turns.
const (
	workSlice = 5 * time.Second
	spinSlice = time.Second
)

func pause(ctx context.Context, args []string) error {
	o, err := parsePause(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Print(pauseHelp)
		return nil
	}
	if err != nil {
		return err
	}
	use := cpus()
	if len(use) < 2 {
		return errors.New("pause needs two CPUs: one for the worker, one for the application")
	}
	e := &env{ctx: ctx, out: newScreen(os.Stderr)}
	defer e.out.status("")
	if e.dir, err = os.MkdirTemp("", "ndpip-bench-"); err != nil {
		return err
	}
	defer atEnd.add(func() { os.RemoveAll(e.dir) })()
	e.out.status("compiling the C program")
	spin, err := compileSpin(e)
	if err != nil {
		return err
	}
	if err := e.start(); err != nil {
		return err
	}
	defer e.stop()
	w, err := e.stackPair("off", 0)
	if err != nil {
		return err
	}
	defer w.close()
	f, err := w.connect(o.connections, o.mss)
	if err != nil {
		return err
	}
	back, err := pinned(use[0])
	if err != nil {
		return err
	}
	defer back()
	defer moreProcs()()
	r := &pauseRun{env: e, o: o, w: w, spin: spin, cpu: use[1], load: &pressure{lockstep: newLockstep(w, f, o.mss)},
		obs: newObserver(w.b.Stack), machine: newHistogram()}
	if len(use) > 2 {
		r.spinCPU, r.beside = use[2], true
	} else {
		r.spinCPU = use[1]
	}
	if err := r.run(); err != nil {
		return err
	}
	return r.report()
}

// pauseRun is one run of it.
type pauseRun struct {
	*env
	o       *pauseOptions
	w       *pair
	load    *pressure
	obs     *observer
	machine *hdrhistogram.Histogram // the C program's gaps
	spin    string
	cpu     int // the worker's
	spinCPU int
	beside  bool // the C program has a CPU of its own

	worked, spun time.Duration
	before       goPauses
	after        goPauses
}

func (r *pauseRun) run() error {
	// How much garbage a segment leaves: measured once, since the rate is given in bytes per second.
	start := time.Now()
	for range 2000 {
		r.load.round(true)
	}
	perSecond := 2000 * burst / time.Since(start).Seconds()
	r.load.garbage = int(float64(r.o.garbage) * 1e6 / perSecond * 1000)
	r.load.rounds = 0
	r.before = readPauses()
	defer func() { r.after = readPauses() }()
	for r.worked < r.o.time {
		slice := min(workSlice, r.o.time-r.worked)
		r.out.status("%.0f of %.0f s; turns: %s", r.worked.Seconds(), r.o.time.Seconds(), short3(r.obs.turns))
		var spinning <-chan error
		if r.beside {
			spinning = r.startSpin(slice)
		}
		if err := r.workerSlice(slice); err != nil {
			return err
		}
		if spinning == nil {
			spinning = r.startSpin(spinSlice)
		}
		if err := r.untilSpun(spinning); err != nil {
			return err
		}
	}
	return nil
}

func (r *pauseRun) startSpin(d time.Duration) <-chan error {
	done := make(chan error, 1)
	var b strings.Builder
	p, err := startProcess(r.ctx, d+grace, func(s string) { b.WriteString(s + "\n") }, "", r.spin, strconv.Itoa(r.spinCPU), strconv.FormatInt(d.Milliseconds(), 10))
	if err != nil {
		done <- err
		return done
	}
	r.spun += d
	go func() {
		if err := p.wait(); err != nil {
			done <- err
			return
		}
		done <- readSpin(r.machine, b.String())
	}()
	return done
}

// untilSpun keeps the application's CPU as busy as before, until the C program has ended.
func (r *pauseRun) untilSpun(done <-chan error) error {
	for {
		select {
		case err := <-done:
			return err
		default:
		}
		if r.ctx.Err() != nil {
			return context.Cause(r.ctx)
		}
		for range 64 {
			r.load.round(true)
		}
	}
}

// workerSlice is the worker at work for d.
func (r *pauseRun) workerSlice(d time.Duration) error {
	st := r.w.b.Stack
	st.Observe(r.obs.turn)
	st.Start()
	up := make(chan error, 1)
	var over atomic.Bool
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the worker
		if _, err := dpdk.RegisterLcore(r.cpu); err != nil {
			up <- err
		} else {
			defer dpdk.UnregisterLcore()
			up <- r.obs.start()
		}
		st.Run(false)
		r.obs.end()
		over.Store(true)
	}()
	err := <-up
	start := time.Now()
	for i := 0; err == nil && time.Since(start) < d; i++ {
		if r.ctx.Err() != nil {
			err = context.Cause(r.ctx)
		}
		for range 64 {
			r.load.round(false)
		}
	}
	r.worked += time.Since(start)
	st.Stop()
	for !over.Load() {
		runtime.Gosched()
	}
	return err
}

// goPauses is what Go's runtime says of the pauses that it has made.
type goPauses struct {
	cycles uint64
	stops  *metrics.Float64Histogram
}

func readPauses() goPauses {
	s := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}, {Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(s)
	return goPauses{s[0].Value.Uint64(), s[1].Value.Float64Histogram()}
}

// since gives the number of pauses since p, and the longest.
func (g goPauses) since(p goPauses) (n uint64, longest time.Duration) {
	for i, c := range g.stops.Counts {
		if d := c - p.stops.Counts[i]; d > 0 {
			n += d
			edge := g.stops.Buckets[i+1]
			if math.IsInf(edge, 1) {
				edge = g.stops.Buckets[i]
			}
			longest = time.Duration(edge * 1e9)
		}
	}
	return n, longest
}

// short3 is a histogram in a few words.
func short3(h *hdrhistogram.Histogram) string {
	if h.TotalCount() == 0 {
		return "none yet"
	}
	return fmt.Sprintf("median %s, 99.99%% %s, longest %s", nanos(h.ValueAtQuantile(50)), nanos(h.ValueAtQuantile(99.99)), nanos(h.Max()))
}

func nanos(v int64) string {
	d := time.Duration(v)
	switch {
	case d < 10*time.Microsecond:
		return fmt.Sprintf("%d ns", d)
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.0f µs", float64(d)/1e3)
	}
	return fmt.Sprintf("%.1f ms", float64(d)/1e6)
}

// The sizes of turns that are counted.
var pauseSizes = []time.Duration{20e3, 50e3, 100e3, 500e3, 1e6, 10e6}

// pauseSum is the run in numbers. Counts are per minute.
type pauseSum struct {
	Bench          string           `json:"bench"`
	Seconds        float64          `json:"seconds"`
	Segments       uint64           `json:"segments"`
	Turns          int64            `json:"turns"`
	TurnMedianNs   int64            `json:"turn_median_ns"`
	TurnMaxNs      int64            `json:"turn_max_ns"`
	Over100us      int64            `json:"turns_over_100us"`
	OverByGo100us  int64            `json:"turns_over_100us_by_go"`
	GoMaxNs        int64            `json:"go_max_ns"`
	SpinMaxNs      int64            `json:"spin_max_ns"`
	SpinOver100us  int64            `json:"spin_over_100us"`
	SpinSeconds    float64          `json:"spin_seconds"`
	GCCycles       uint64           `json:"gc_cycles"`
	GCPauses       uint64           `json:"gc_pauses"`
	GCPauseMaxNs   int64            `json:"gc_pause_max_ns"`
	AbovePerMinute map[string]int64 `json:"turns_over_per_minute"`
}

func (r *pauseRun) report() error {
	n, longest := r.after.since(r.before)
	h := r.obs
	s := pauseSum{Bench: "pause", Seconds: r.worked.Seconds(), Segments: r.w.b.Counters().RxData, Turns: h.turns.TotalCount(),
		TurnMedianNs: h.turns.ValueAtQuantile(50), TurnMaxNs: h.turns.Max(),
		Over100us: above(h.turns, 100e3), OverByGo100us: above(h.slept, 100e3), GoMaxNs: h.slept.Max(),
		SpinMaxNs: r.machine.Max(), SpinOver100us: above(r.machine, 100e3), SpinSeconds: r.spun.Seconds(),
		GCCycles: r.after.cycles - r.before.cycles, GCPauses: n, GCPauseMaxNs: int64(longest), AbovePerMinute: map[string]int64{}}
	for _, d := range pauseSizes {
		s.AbovePerMinute[d.String()] = int64(perMinute(above(h.turns, d), r.worked))
	}
	r.out.status("")
	if r.o.format == "json" {
		return json.NewEncoder(os.Stdout).Encode(s)
	}
	fmt.Printf("%.0f s of a worker's turns on CPU %d, %d connections of MSS %d, %.1f M segments/s; %.0f s of the C program on CPU %d\n",
		s.Seconds, r.cpu, r.o.connections, r.o.mss, float64(s.Segments)/(r.worked+r.spun).Seconds()/1e6, s.SpinSeconds, r.spinCPU)
	r.table(os.Stdout)
	fmt.Printf("Go's collector: %d cycles, %d pauses, none longer than %s by its own account\n", s.GCCycles, n, nanos(int64(longest)))
	fmt.Printf("Turns in which Go's runtime kept the worker for more than 100 µs: %d (longest %s)\n", s.OverByGo100us, nanos(s.GoMaxNs))
	return nil
}

func perMinute(n int64, over time.Duration) float64 { return float64(n) / over.Minutes() }

// table shows the turns beside the C program's gaps, and what the long turns were spent with.
func (r *pauseRun) table(w io.Writer) {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	h := r.obs
	columns := []struct {
		name string
		h    *hdrhistogram.Histogram
		over time.Duration
		all  bool // quantiles make sense
	}{
		{"turns", h.turns, r.worked, true}, {"busy turns", h.busy, r.worked, true}, {"C program", r.machine, r.spun, true},
		{"asleep (Go)", h.slept, r.worked, false}, {"other threads", h.queue, r.worked, false}, {"on the CPU", h.other, r.worked, false},
	}
	head := table.Row{""}
	var align []table.ColumnConfig
	for i, c := range columns {
		head = append(head, c.name)
		align = append(align, table.ColumnConfig{Number: i + 2, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.AppendHeader(head)
	t.SetColumnConfigs(align)
	for _, q := range []float64{50, 99, 99.9, 99.99, 99.999, 100} {
		name := strconv.FormatFloat(q, 'f', -1, 64) + "%"
		if q == 100 {
			name = "longest"
		}
		row := table.Row{name}
		for _, c := range columns {
			if !c.all && q < 100 {
				row = append(row, "")
			} else {
				row = append(row, nanos(c.h.ValueAtQuantile(q)))
			}
		}
		t.AppendRow(row)
	}
	t.AppendSeparator()
	for _, d := range pauseSizes {
		row := table.Row{fmt.Sprintf("over %s, per minute", nanos(int64(d)))}
		for _, c := range columns {
			row = append(row, fmt.Sprintf("%.1f", perMinute(above(c.h, d), max(c.over, time.Millisecond))))
		}
		t.AppendRow(row)
	}
	t.Render()
}
