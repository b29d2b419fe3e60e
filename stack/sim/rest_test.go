package sim

import (
	"flag"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"ndpip/dpdk"
	"ndpip/stack"
	"ndpip/stack/link"
	"ndpip/tcp"
)

var restCycles = flag.Int("cycles", 5000, "how often TestRest lets a worker fall asleep")

// bell is a stack.Sleeper like that of a port that tells of frames: who sends rings.
type bell struct {
	armed  atomic.Bool
	token  chan struct{}
	sleeps atomic.Int64
	late   atomic.Int64 // sleeps that only their time has ended, although there was something to do
	sent   atomic.Int64 // frames to this end, and how many of them it has received
	got    atomic.Int64
	s      *stack.Stack
}

func (b *bell) Interrupts() bool { return true }
func (b *bell) Arm()             { b.armed.Store(true) }
func (b *bell) Disarm()          { b.armed.Store(false) }

func (b *bell) Wake() {
	select {
	case b.token <- struct{}{}:
	default:
	}
}

// ring is what the port does when there is a frame.
func (b *bell) ring() {
	if b.armed.Load() {
		b.Wake()
	}
}

func (b *bell) Sleep(d time.Duration) {
	b.sleeps.Add(1)
	if d < 0 {
		<-b.token
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-b.token:
	case <-t.C:
		select {
		case <-b.token: // both have come
			return
		default:
		}
		at, any := b.s.Deadline()
		if asked := any && at <= b.s.Now(); asked || b.sent.Load() > b.got.Load() {
			b.late.Add(1)
		}
	}
}

// ringing is a lane that rings the other end's bell after it has sent.
type ringing struct {
	lane      *dpdk.Lane
	own, peer *bell
}

func (r ringing) Exchange(_ *dpdk.Block, op dpdk.Op) {
	n := r.lane.NTx
	r.lane.Exchange(op)
	if op&dpdk.OpRx != 0 {
		r.own.got.Add(int64(r.lane.NRx))
	}
	if op&dpdk.OpTx != 0 && n > 0 {
		r.peer.ring()
		r.peer.sent.Add(int64(n - r.lane.NTx)) // counted late: what is counted has rung
	}
}

func (r ringing) Hz() uint64 { return r.lane.Hz() }

// TestRest has two workers that sleep whenever there is nothing to do, and a byte that goes to and fro between two
// applications, while a third thread asks the workers for something now and then. A wake-up that is lost shows: by a
// segment that is sent again, by a sleep that lasts until its timer, or by a test that does not end.
func TestRest(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 3)) // those who poll hold up nobody
	two := &twoStacks{}
	bells := [2]*bell{{token: make(chan struct{}, 1)}, {token: make(chan struct{}, 1)}}
	two.start(link.Path{}, 1024, func(c *stack.Config, _ *link.Port) {
		c.TCP.MinRTO, c.TCP.InitRTO = 2e9, 2e9
	}, func(i int, l *dpdk.Lane) *dpdk.Lane {
		rings := dpdk.NewLane(l.Block, ringing{l, bells[i], bells[1-i]})
		return &rings
	}, func(i int, s *stack.Stack) {
		bells[i].s = s
		s.SetRest(1, bells[i])
	})
	a, b, err := two.pair(80)
	if err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() { // commands
		for n := 0; !stop.Load(); n++ {
			two.s[n&1].Do(func() {})
			time.Sleep(50 * time.Microsecond)
		}
	})
	pass := func(s *stack.Stack, c *tcp.Conn, first bool) {
		var buf [4]byte
		for !stop.Load() {
			for !first {
				n, e := s.Recv(c, buf[:])
				if n == 1 {
					break
				}
				if e != 0 && e != syscall.EAGAIN {
					t.Errorf("receive: %v", e)
					stop.Store(true)
				}
				if stop.Load() {
					return
				}
				runtime.Gosched()
			}
			first = false
			for {
				n, e := s.Send(c, []byte{1})
				if n == 1 {
					break
				}
				if e != 0 && e != syscall.EAGAIN || stop.Load() {
					return
				}
				runtime.Gosched()
			}
		}
	}
	wg.Go(func() { pass(two.s[0], a, true) })
	wg.Go(func() { pass(two.s[1], b, false) })
	last, at := int64(0), time.Now()
	for {
		n := bells[0].sleeps.Load() + bells[1].sleeps.Load()
		if n >= int64(*restCycles) || t.Failed() {
			break
		}
		if n != last {
			last, at = n, time.Now()
		} else if time.Since(at) > 10*time.Second {
			t.Errorf("asleep for good after %d cycles", n)
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	stop.Store(true)
	for i := range bells {
		bells[i].Wake()
		if n := bells[i].late.Load(); n != 0 {
			t.Errorf("end %d: %d sleeps lasted until a timer was due, although there was something to do", i, n)
		}
		if n := two.s[i].Counters().Retransmits; n != 0 {
			t.Errorf("end %d: %d segments sent again", i, n)
		}
	}
	wg.Wait()
	t.Logf("counted %d sleeps of workers", bells[0].sleeps.Load()+bells[1].sleeps.Load())
	two.s[0].Close(a)
	two.s[1].Close(b)
	two.stop(t)
}
