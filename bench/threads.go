package main

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/dpdk"
)

// cpus are those that this process may run on.
func cpus() (out []int) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	for i := range len(set) * 64 {
		if set.IsSet(i) {
			out = append(out, i)
		}
	}
	return out
}

// pinned keeps the calling thread on one CPU until back is called.
func pinned(cpu int) (back func(), err error) {
	var before, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, fmt.Errorf("sched_getaffinity: %w", err)
	}
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("pinning a thread to CPU %d: %w", cpu, err)
	}
	return func() { _ = unix.SchedSetaffinity(0, &before) }, nil
}

// moreProcs lets one more goroutine run at a time, as package api does for a worker, whose thread never comes back to
// Go's scheduler.
func moreProcs() (back func()) {
	n := runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	return func() { runtime.GOMAXPROCS(n) }
}

// workers takes the turns of both stacks on a thread of its own, pinned to cpu. What comes between the two cores is
// what comes between an application's lcore and its worker's; both ends share the two, as the machine may have no more.
func (p *pair) workers(cpu int) (stop func(), err error) {
	var ask atomic.Bool
	up, done := make(chan error), make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if _, err := dpdk.RegisterLcore(cpu); err != nil {
			up <- err
			return
		}
		defer dpdk.UnregisterLcore()
		close(up)
		for !ask.Load() {
			p.a.Turn()
			p.b.Turn()
		}
	}()
	if err := <-up; err != nil {
		return nil, err
	}
	return func() { ask.Store(true); <-done }, nil
}

// stuck is how long nothing may arrive.
const stuck = 5 * time.Second

// crossing writes and reads on this thread until the segments of a sample have arrived.
func (l *lockstep) crossing() (float64, error) { return l.through(rounds, false) }

// through is crossing for n bursts; turns: this thread takes the stacks' turns as well.
func (l *lockstep) through(bursts int, turns bool) (float64, error) {
	start := time.Now()
	last := start
	want := bursts * burst * l.mss
	for got, idle := 0, 0; got < want; {
		x, y := l.flow()
		_, _ = l.a.Send(x, l.out) // a full window is no error
		if turns {
			l.b.Turn()
		}
		n, _ := l.b.Recv(y, l.in)
		if turns {
			l.a.Turn()
		}
		if got += n; n > 0 {
			idle = 0
		} else if idle++; idle&1023 == 0 {
			if idle == 1024 {
				last = time.Now()
			}
			if time.Since(last) > stuck {
				return 0, fmt.Errorf("no byte arrived for %s (%d of %d before)", stuck, got, want)
			}
		}
	}
	return float64(time.Since(start).Nanoseconds()) / float64(bursts*burst), nil
}

func runThreads(e *env, p point) ([]result, error) {
	use := cpus()
	if len(use) < 2 {
		return nil, errSkip{"it needs two CPUs"}
	}
	w, err := e.stackPair(p.Checksum, 0)
	if err != nil {
		return nil, err
	}
	defer w.close()
	f, err := w.connect(p.Connections, p.MSS)
	if err != nil {
		return nil, err
	}
	back, err := pinned(use[0])
	if err != nil {
		return nil, err
	}
	defer back()
	defer moreProcs()()
	stop, err := w.workers(use[1])
	if err != nil {
		return nil, err
	}
	l := newLockstep(w, f, p.MSS)
	all, err := measure(e.ctx, e.each, e.floorAt(p.MSS), one(l.crossing).over(p.Connections))
	stop()
	if err != nil {
		return nil, fmt.Errorf("%w%s", err, w.both())
	}
	return []result{newResult("threads", p, all[0]).counted()}, nil
}
