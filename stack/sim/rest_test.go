//go:build cgo

package sim

import (
	"flag"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/dpdk"
	"ndpip/stack"
	"ndpip/stack/link"
	"ndpip/tcp"
)

var restCycles = flag.Int("cycles", 20000, "how often TestRest lets a stack's thread fall asleep, with a worker and inline together")

// bell is the sleeper of a port, and its wire, which tells of frames: who sends rings.
type bell struct {
	*dpdk.Sleeper
	armed  atomic.Bool
	sleeps atomic.Int64
}

func newBell(t *testing.T) *bell {
	s, err := (*dpdk.Port)(nil).NewSleeper(0)
	if err != nil {
		t.Fatal(err)
	}
	return &bell{Sleeper: s}
}

func (b *bell) Interrupts() bool { return true }
func (b *bell) Arm()             { b.armed.Store(true) }
func (b *bell) Disarm()          { b.armed.Store(false) }

func (b *bell) Sleep(d time.Duration) {
	b.sleeps.Add(1)
	b.Sleeper.Sleep(d)
}

// ringing is a lane that rings the other end's bell after it has sent.
type ringing struct {
	*dpdk.Lane
	peer *bell
}

func (r ringing) Exchange(_ *dpdk.Block, op dpdk.Op) {
	n := r.NTx
	r.Lane.Exchange(op)
	if op&dpdk.OpTx != 0 && n > 0 && r.peer.armed.Load() {
		r.peer.Wake()
	}
}

// resting is a stack (a) whose thread sleeps whenever there is nothing to do, and the rest of its world: a driver that is
// its application, a second application that asks it for things, and its peer (b), on one thread, so that there is a CPU for
// each on two.
type resting struct {
	a, b   *stack.Stack
	ca, cb *tcp.Conn
	bell   *bell
	inline bool
	rnd    *rand.Rand
	note   atomic.Bool // news of the application's own, which a sleeper without a worker looks at
	stop   atomic.Bool
	ops    atomic.Int64
	close  func()
}

func newResting(t *testing.T, inline bool) *resting {
	r := &resting{bell: newBell(t), inline: inline, rnd: rand.New(rand.NewPCG(1, 2))}
	l := link.New(link.Config{Seed: 1, Wall: true, A: link.Port{Buffers: 512}, B: link.Port{Buffers: 512}})
	params := tcp.DefaultParams()
	params.MinRTO, params.InitRTO = 60e9, 60e9 // no timer makes up for a wake-up that was lost
	ip := func(a uint32) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(a)}) }
	mk := func(own, other uint32, worker, app dpdk.Lane) *stack.Stack {
		return stack.New(stack.Config{TCP: params, MAC: mac(own), Addr: netip.PrefixFrom(ip(own), 24),
			Neighbours: map[netip.Addr]stack.MAC{ip(other): mac(other)}}, worker, app)
	}
	lanes := []*dpdk.Lane{l.A.NewLane(true), l.A.NewLane(false), l.B.NewLane(true), l.B.NewLane(false)}
	r.a = mk(addrA, addrB, *lanes[0], *lanes[1])
	r.b = mk(addrB, addrA, dpdk.NewLane(lanes[2].Block, ringing{lanes[2], r.bell}), dpdk.NewLane(lanes[3].Block, ringing{lanes[3], r.bell}))
	s, e := r.b.Listen(0, 80, 1, stack.Options{}, 0)
	if e != 0 {
		t.Fatal(e)
	}
	if r.ca, e = r.a.Connect(0, addrB, 80, stack.Options{}, 1); e != 0 {
		t.Fatal(e)
	}
	for i := 0; r.cb == nil; i++ {
		r.a.Turn()
		r.b.Turn()
		if r.cb = r.b.Accept(s); i > 1000 {
			t.Fatal("no connection")
		}
	}
	r.a.SetRest(1, r.bell)
	r.close = func() {
		for _, x := range []*stack.Stack{r.a, r.b} {
			x.AbortAll()
			x.Turn()
		}
		for i, lane := range lanes {
			[]*link.End{l.A, l.A, l.B, l.B}[i].FreeLane(lane)
		}
		r.bell.Close()
	}
	return r
}

// sleeper is the thread that sleeps.
func (r *resting) sleeper() {
	runtime.LockOSThread()
	if !r.inline {
		r.a.Run(false)
		return
	}
	for !r.stop.Load() {
		if r.note.CompareAndSwap(true, false) || r.a.Poll() {
			continue
		}
		r.a.Rest(1, -1, func() bool { return r.note.Load() || r.stop.Load() })
	}
}

// wait waits until something has happened, or the test is over.
func (r *resting) wait(done func() bool) {
	for i := 0; !done() && !r.stop.Load(); i++ {
		if i > 50 {
			_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		}
	}
}

// until is wait while the peer works.
func (r *resting) until(done func() bool) {
	r.wait(func() bool {
		if done() {
			return true
		}
		r.b.Turn()
		return false
	})
}

// act does one thing that has to wake the sleeper, and waits until it has had its effect. Nothing else comes meanwhile.
func (r *resting) act() {
	var buf [1]byte
	took := func(s *stack.Stack, c *tcp.Conn) func() bool {
		return func() bool { n, _ := s.Recv(c, buf[:]); return n == 1 }
	}
	send := func(s *stack.Stack, c *tcp.Conn) {
		r.until(func() bool { n, e := s.Send(c, buf[:]); return n == 1 || e != syscall.EAGAIN })
	}
	switch r.rnd.IntN(5) {
	case 0: // a command
		done := atomic.Bool{}
		r.a.Do(func() { done.Store(true) })
		r.wait(done.Load)
	case 1: // a frame
		send(r.b, r.cb)
		r.until(took(r.a, r.ca))
	case 2: // attention: an idle connection's data, whose timer has to be started before anything comes back
		send(r.a, r.ca)
		r.wait(func() bool { return r.ca.Attn.Load() == 0 })
		r.until(took(r.b, r.cb))
	case 3: // both at once
		send(r.b, r.cb)
		send(r.a, r.ca)
		r.until(took(r.b, r.cb))
		r.until(took(r.a, r.ca))
	case 4: // without a worker: news that are not the stack's, and another thread's turn
		if r.inline {
			r.a.Poll()
			r.note.Store(true)
			r.a.Kick()
			r.wait(func() bool { return !r.note.Load() })
		}
	}
}

// pause lets the sleeper come to any point of its way to sleep.
func (r *resting) pause() {
	n := r.rnd.IntN(3000)
	if r.rnd.IntN(16) == 0 {
		n *= 20
	}
	for end := time.Now().Add(time.Duration(n)); time.Now().Before(end); {
	}
}

// run goes on until the sleeper has slept n times. A wake-up that is lost ends it: nothing else would wake the sleeper.
func (r *resting) run(t *testing.T, n int64) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 2)) // who polls holds up nobody
	var wg sync.WaitGroup
	if !r.inline {
		r.a.Start()
	}
	wg.Go(r.sleeper)
	wg.Go(func() {
		for !r.stop.Load() {
			r.act()
			r.pause()
			r.ops.Add(1)
		}
	})
	for last, still := int64(-1), 0; r.bell.sleeps.Load() < n; time.Sleep(time.Millisecond) {
		if ops := r.ops.Load(); ops != last {
			last, still = ops, 0
		} else if still++; still == 5000 { // by its own count of time: the process may be stopped for a while
			t.Errorf("asleep for good after %d sleeps and %d wake-ups", r.bell.sleeps.Load(), last)
			break
		}
	}
	r.stop.Store(true)
	r.bell.Wake()
	if !r.inline {
		r.a.Stop()
	}
	wg.Wait()
	for _, s := range []*stack.Stack{r.a, r.b} {
		if n := s.Counters().Retransmits; n != 0 {
			t.Errorf("%d segments sent again", n)
		}
	}
	t.Logf("counted %d sleeps of a stack's thread, for %d things to do", r.bell.sleeps.Load(), r.ops.Load())
	r.close()
}

// TestRest has a stack whose thread falls asleep whenever there is nothing to do, and another thread that wakes it by
// commands, frames, data, and news of its own, after pauses of any length, one thing at a time: a wake-up that is lost
// leaves both waiting.
func TestRest(t *testing.T) {
	t.Run("worker", func(t *testing.T) { newResting(t, false).run(t, int64(*restCycles)/2) })
	t.Run("inline", func(t *testing.T) { newResting(t, true).run(t, int64(*restCycles)/2) })
}
