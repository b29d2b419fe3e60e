// Package link is a port in memory: two ends, a wire between them with faults that come from a seed, and a clock of its
// own. Each end gives lanes (dpdk.Lane) like a port of DPDK does, so a stack on it does not know the difference, and a
// test on it does not need DPDK, root, or the time that it simulates.
//
//	stack A → lane → end A ─ path A→B: filter, MTU, queue, rate, loss, delay … ─→ end B → lane → stack B
//	                         (the same from B to A, with faults of its own)
//
// An end without a stack is a Peer: a test injects frames there and looks at those that arrive.
//
// Used from one thread, all that happens follows from the seed and from the order of the calls. Used from several, as by
// two stacks with a worker each, it is safe. It is strict where a real port is not: whoever misuses a buffer gets a
// panic that says how (see pool), as in a test that has to be seen.
package link

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// Config is what a link is made with. The zero Config is a wire without faults and without delay.
type Config struct {
	Seed uint64 // of all that is random
	A, B Port   // what the port at each end is like
	AB   Path   // what happens to frames from A to B
	BA   Path   // and from B to A
	// Wall lets the clock go on with the computer's, for tests in real time. Otherwise only Advance moves it.
	Wall bool
}

// Link is two ends and the wire between them.
type Link struct {
	A, B *End

	mu    sync.Mutex // guards both ends and both paths
	clock atomic.Int64
	wall  time.Time // zero: the clock is virtual
}

// start is what the clock shows in the beginning. It is not 0, which users of a clock tend to read as "never".
const start = time.Second

// New makes a link. It panics on a Config that makes no sense.
func New(cfg Config) *Link {
	l := &Link{}
	l.clock.Store(int64(start))
	if cfg.Wall {
		l.wall = time.Now()
	}
	l.A, l.B = newEnd(l, "A", cfg.A), newEnd(l, "B", cfg.B)
	l.A.out = newPath(cfg.AB, l.A, l.B, rand.New(rand.NewPCG(cfg.Seed, 1)))
	l.B.out = newPath(cfg.BA, l.B, l.A, rand.New(rand.NewPCG(cfg.Seed, 2)))
	l.A.in, l.B.in = l.B.out, l.A.out
	return l
}

// Now is the time on the link's clock. It is what lanes read as TSC, in nanoseconds; it starts at one second.
func (l *Link) Now() time.Duration {
	if !l.wall.IsZero() {
		return start + time.Since(l.wall)
	}
	return time.Duration(l.clock.Load())
}

// Advance moves the clock forward by d. It panics if d is negative, or if the clock goes by itself.
func (l *Link) Advance(d time.Duration) {
	if d < 0 || !l.wall.IsZero() {
		panic("link: Advance: only a virtual clock can be moved, and only forward")
	}
	l.clock.Add(int64(d))
}

// AdvanceTo moves the clock forward to t, and leaves it where it is if that is past.
func (l *Link) AdvanceTo(t time.Duration) { l.Advance(max(t-l.Now(), 0)) }

// NextArrival is the time at which the next thing happens on the wire: a frame can be received, or a transmit ring that
// refused frames has room again. It may have passed already, if nobody has looked. ok is false if the wire is empty.
// A simulator moves the clock to this time, or to the next timer of a stack if that comes first.
func (l *Link) NextArrival() (t time.Duration, ok bool) {
	t, ok = l.A.NextArrival()
	if at, any := l.B.NextArrival(); any && (!ok || at < t) {
		t, ok = at, true
	}
	return t, ok
}

// NextArrival is Link.NextArrival for what concerns this end: frames that it can receive, and its own transmit ring.
func (e *End) NextArrival() (t time.Duration, ok bool) {
	e.link.mu.Lock()
	defer e.link.mu.Unlock()
	t, ok = e.in.arrival()
	if at, any := e.out.room(e.link.Now()); any && (!ok || at < t) {
		t, ok = at, true
	}
	return t, ok
}
