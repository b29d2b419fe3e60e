package stack_test

import (
	"syscall"
	"testing"
	"time"

	"ndpip/tcp"
)

// C4: either side half-closes, and data still flow the other way.
func TestC4(t *testing.T) {
	r := newRig(t)
	l := r.listen(2)
	f := r.client(l).handshake(mss(1460)) // the peer half-closes
	f.in("FA", 1, 1, "last words")
	f.out("A", 1, 12)
	f.recv([]byte("last words"))
	f.outcome(0)
	f.outcome(0)
	at := 1
	for range 100 {
		f.send(pattern(at, 1000))
		f.out("A", at, 12, stream(1000))
		at += 1000
		f.in("A", 12, at)
	}
	f.close()
	f.out("FA", at, 12)
	f.in("A", 12, at+1)
	f.quiet()

	g := r.client(l).handshake(mss(1460)) // we do
	g.send([]byte("mine"))
	g.shut()
	g.out("A", 1, 1, "mine")
	g.out("FA", 5, 1)
	if n, e := g.Send(g.c, []byte("more")); n != 0 || e != syscall.EPIPE {
		t.Errorf("a write after shutdown: %d, %v", n, e)
	}
	g.in("A", 1, 6)
	g.state(tcp.FinWait2)
	r.silence(10 * time.Minute) // the application has not closed: no limit
	at = 1
	for range 100 {
		g.in("A", at, 6, stream(1000))
		at += 1000
		g.out("A", 6, at)
		g.recv(pattern(at-1000, 1000))
	}
	g.in("FA", at, 6)
	g.out("A", 6, at+1)
	g.outcome(0)
	g.state(tcp.TimeWait)
	g.close()
	g.quiet()
}

// C5: close with unread data, or with SO_LINGER 0: exactly one RST.
func TestC5(t *testing.T) {
	for _, c := range []struct {
		name   string
		state  tcp.State
		unread bool
	}{
		{"unread", tcp.Established, true},
		{"linger", tcp.Established, false},
		{"unread after the peer's FIN", tcp.CloseWait, true},
		{"linger after the peer's FIN", tcp.CloseWait, false},
		{"unread after shutdown", tcp.FinWait1, true},
		{"linger after shutdown", tcp.FinWait1, false},
		{"unread after both", tcp.FinWait2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			f := r.connected()
			if c.unread {
				f.in("A", 1, 1, "unread")
				f.out("A", 1, 7)
			}
			next, seq := 1, 1
			if c.unread {
				next = 7
			}
			switch c.state {
			case tcp.CloseWait:
				f.in("FA", next, 1)
				next++
				f.out("A", 1, next)
			case tcp.FinWait1, tcp.FinWait2:
				f.shut()
				f.out("FA", 1, next)
				seq++
				if c.state == tcp.FinWait2 {
					f.in("A", next, 2)
				}
			}
			f.state(c.state)
			if !c.unread {
				f.c.SetLinger0(true)
			}
			f.close()
			f.out("RA", seq, next)
			f.quiet()
			if n := r.Counters(); n.Connections != 0 || n.Resets != 1 {
				t.Errorf("%d connections, %d resets", n.Connections, n.Resets)
			}
			f.in("R", next, 0)
			r.silence(time.Minute)
		})
	}
}

// C5: data that arrive when nobody is left to read them are answered by an RST (RFC 2525 2.17).
func TestC5Late(t *testing.T) {
	for _, half := range []bool{false, true} {
		r := newRig(t)
		f := r.connected()
		f.close()
		f.out("FA", 1, 1)
		if half {
			f.in("A", 1, 2)
		}
		f.in("A", 1, 1, "too late")
		f.out("RA", 2, 1)
		f.quiet()
		if n := r.Counters().Connections; n != 0 {
			t.Errorf("%d connections are left", n)
		}
	}
}

// C6: the peer vanishes after our FIN, at any stage; the connection is gone within a bound.
func TestC6(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit time.Duration
		prep  func(r *rig) *flow
	}{
		{"FIN-WAIT-1", 3 * time.Minute, func(r *rig) *flow {
			f := r.connected()
			f.close()
			return f
		}},
		{"FIN-WAIT-1 with data", 3 * time.Minute, func(r *rig) *flow {
			f := r.connected()
			f.send(pattern(1, 5000))
			f.close()
			return f
		}},
		{"FIN-WAIT-2", time.Minute + time.Second, func(r *rig) *flow {
			f := r.connected()
			f.close()
			f.in("A", 1, 2)
			return f
		}},
		{"FIN-WAIT-2 before close", time.Minute + time.Second, func(r *rig) *flow {
			f := r.inState(tcp.FinWait2)
			f.close()
			return f
		}},
		{"CLOSING", 3 * time.Minute, func(r *rig) *flow {
			f := r.connected()
			f.close()
			f.in("FA", 1, 1)
			return f
		}},
		{"LAST-ACK", 3 * time.Minute, func(r *rig) *flow {
			f := r.inState(tcp.CloseWait)
			f.close()
			return f
		}},
		{"TIME-WAIT", time.Minute + time.Second, func(r *rig) *flow {
			f := r.inState(tcp.TimeWait)
			f.close()
			return f
		}},
		{"closed window", 3 * time.Minute, func(r *rig) *flow {
			f := r.connected()
			f.in("A", 1, 1, win(0))
			f.close()
			return f
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			f := c.prep(r)
			if u := r.Usage(); u.Connections != 1 {
				t.Fatalf("%+v", u)
			}
			r.advanceUntil(c.limit, func() bool { return r.Counters().Connections == 0 })
			if u := r.Usage(); u.Connections != 0 || u.Timers != 0 || u.RingBytes != 0 {
				t.Errorf("after %v there is still %+v", c.limit, u)
			}
			_ = f
		})
	}
}

// C6: a peer that answers, but never opens its window, does not hold what we have closed for ever.
func TestC6Window(t *testing.T) {
	r := newRig(t)
	f := r.connected()
	f.in("A", 1, 1, win(0))
	f.Send(f.c, pattern(1, 1))
	f.close()
	probes := 0
	for start := r.link.Now(); r.Counters().Connections != 0; {
		r.advance(10 * time.Millisecond)
		for len(r.got) > 0 {
			r.next()
			if r.Counters().Connections == 0 {
				break
			}
			probes++
			f.in("A", 1, 1, win(0))
		}
		if r.link.Now()-start > 10*time.Minute {
			t.Fatalf("still there after %d probes", probes)
		}
	}
	if probes < 5 {
		t.Errorf("gave up after %d probes", probes)
	}
}
