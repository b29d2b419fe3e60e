package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"ndpip/stack"
)

// Times in a histogram: from 1 ns to a minute, three digits.
func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, int64(time.Minute), 3) }

// observer records a worker's turns, on the worker's thread, and for each long one what took the time.
type observer struct {
	st    *stack.Stack
	turns *hdrhistogram.Histogram // of all turns
	busy  *hdrhistogram.Histogram // of those that had something to do
	slept *hdrhistogram.Histogram // long turns: how long the thread slept. Nobody but Go's runtime puts it to sleep
	queue *hdrhistogram.Histogram // long turns: how long it was ready to run, and another thread ran
	other *hdrhistogram.Histogram // long turns: the rest, in which the thread held its CPU

	schedstat int
	last      time.Duration
	n         int
	was       usage
}

// usage is what the kernel has counted for the thread.
type usage struct {
	at    time.Time
	cpu   time.Duration // on the CPU
	queue time.Duration // ready, and waiting for one
}

const (
	longTurn = 20 * time.Microsecond
	// refresh is how many turns may lie between two looks at what the kernel counts: what a long turn is charged with
	// contains what has come since.
	refresh = 256
)

func newObserver(st *stack.Stack) *observer {
	return &observer{st: st, turns: newHistogram(), busy: newHistogram(), slept: newHistogram(), queue: newHistogram(), other: newHistogram()}
}

// start is called on the worker's thread before its first turn.
func (o *observer) start() error {
	fd, err := unix.Open("/proc/self/task/"+strconv.Itoa(unix.Gettid())+"/schedstat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("the kernel does not say how long a thread waits (CONFIG_SCHED_INFO): %w", err)
	}
	o.schedstat, o.last, o.n = fd, 0, 0
	o.was, err = o.look()
	return err
}

func (o *observer) end() { unix.Close(o.schedstat) }

// look reads the kernel's counters. It allocates nothing.
func (o *observer) look() (u usage, err error) {
	var b [96]byte
	u.at = time.Now()
	n, err := unix.Pread(o.schedstat, b[:], 0)
	if err != nil {
		return u, err
	}
	var v [2]int64
	field := 0
	for _, c := range b[:n] {
		switch {
		case c >= '0' && c <= '9':
			v[field] = v[field]*10 + int64(c-'0')
		default:
			field++
		}
		if field == len(v) {
			break
		}
	}
	u.cpu, u.queue = time.Duration(v[0]), time.Duration(v[1])
	return u, nil
}

// turn is the stack's hook.
func (o *observer) turn(busy bool) {
	now := o.st.Now()
	d := now - o.last
	o.last = now
	if o.n++; o.n < 3 {
		return // the first has the thread's start in it
	}
	_ = o.turns.RecordValue(int64(d))
	if busy {
		_ = o.busy.RecordValue(int64(d))
	}
	if d < longTurn {
		if o.n%refresh == 0 {
			o.was, _ = o.look()
		}
		return
	}
	u, err := o.look()
	if err != nil {
		return
	}
	wall, queue := u.at.Sub(o.was.at), u.queue-o.was.queue
	slept := max(0, wall-(u.cpu-o.was.cpu)-queue)
	o.was = u
	_ = o.slept.RecordValue(int64(min(d, slept)))
	_ = o.queue.RecordValue(int64(min(d, queue)))
	_ = o.other.RecordValue(int64(max(0, d-slept-queue)))
}

// above is how many values of h are at least d.
func above(h *hdrhistogram.Histogram, d time.Duration) (n int64) {
	for _, bar := range h.Distribution() {
		if bar.From >= int64(d) {
			n += bar.Count
		}
	}
	return n
}

// readSpin takes the lines of spin.c.
func readSpin(h *hdrhistogram.Histogram, text string) error {
	for line := range strings.Lines(text) {
		var v, n int64
		if _, err := fmt.Sscan(line, &v, &n); err != nil {
			return fmt.Errorf("spin printed %q: %w", strings.TrimSpace(line), err)
		}
		_ = h.RecordValues(max(v, 1), n)
	}
	return nil
}

// compileSpin makes the C program.
func compileSpin(e *env) (string, error) {
	src, program := e.dir+"/spin.c", e.dir+"/spin"
	if err := os.WriteFile(src, spinSource, 0o600); err != nil {
		return "", err
	}
	return program, e.command(30*time.Second, "", "gcc", "-O2", "-o", program, src)
}
