package stack_test

import (
	"syscall"
	"testing"
	"time"

	"ndpip/stack"
	"ndpip/stack/link"
	"ndpip/tcp"
)

// L1: segment k of n is lost, and duplicate ACKs come.
func TestL1(t *testing.T) {
	const size, n, k = 1460, 10, 4
	r := newRig(t)
	f := r.accepted()
	f.send(pattern(1, n*size))
	for i := range n {
		f.out("A", 1+i*size, 1, stream(size))
	}
	una := 1 + k*size
	f.in("A", 1, una)
	// The timer runs from here. Duplicate ACKs do not push it forward, and nothing is resent because of them.
	for range 19 {
		r.silence(10 * time.Millisecond)
		f.in("A", 1, una)
	}
	r.after(9 * time.Millisecond)
	for i := k; i < n; i++ {
		f.out("A", 1+i*size, 1, stream(size))
	}
	f.in("A", 1, 1+n*size)
	r.silence(time.Minute)
}

// L1: an ACK of more than was resent is accepted, and what it covers is not sent again.
func TestL1Beyond(t *testing.T) {
	const size = 1460
	r := newRig(t)
	f := r.accepted()
	f.send(pattern(1, 10*size))
	for i := range 10 {
		f.out("A", 1+i*size, 1, stream(size))
	}
	f.in("A", 1, 1, win(3*size)) // the window holds three of them now
	r.after(200 * time.Millisecond)
	for i := range 3 {
		f.out("A", 1+i*size, 1, stream(size))
	}
	f.in("A", 1, 1+8*size, win(3*size)) // the others were not lost
	f.out("A", 1+8*size, 1, stream(size))
	f.out("A", 1+9*size, 1, stream(size))
	f.in("A", 1, 1+8*size+100, win(3*size)) // part of a segment
	r.after(200 * time.Millisecond)
	f.out("A", 1+8*size+100, 1, stream(size-100))
	f.out("A", 1+9*size, 1, stream(size))
	f.in("A", 1, 1+10*size)
	r.silence(time.Minute)
}

// L2: a round trip of 5 µs, 1 % loss, for 60 s.
func TestL2(t *testing.T) {
	path := link.Path{Delay: 2500, Loss: 0.01, Rate: 1e8}
	p := newPair(t, link.Config{Seed: 2, AB: path, BA: path}, func(a, b *stack.Config) { a.TCP, b.TCP = quick(), quick() })
	a, b := p.open(80)
	f := p.flood(p.a, p.b, a, b, 1<<50)
	last, longest, at := 0, time.Duration(0), p.link.Now()
	p.apps = append(p.apps, func() bool {
		if now := p.link.Now(); f.got > last {
			last, at = f.got, now
		} else {
			longest = max(longest, now-at)
		}
		return false
	})
	d := 60 * time.Second
	if testing.Short() {
		d = 3 * time.Second
	}
	p.run(d, func() bool { return false })
	if f.got < many(1<<20) || longest > 2*time.Second {
		t.Errorf("%d bytes in %v, the longest stall %v", f.got, d, longest)
	}
	t.Logf("%d MiB, the longest stall %v, %d segments sent again", f.got>>20, longest, p.a.Counters().Retransmits)
}

// quick are parameters for links of microseconds: an RTO of at least 10 ms.
func quick() tcp.Params {
	p := tcp.DefaultParams()
	p.MinRTO = 10e6
	return p
}

// L3: our FIN is lost; then both FINs cross.
func TestL3(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	f.send(pattern(1, 10))
	f.shut()
	f.out("A", 1, 1, stream(10))
	f.out("FA", 11, 1)
	f.in("A", 1, 11)
	for wait := 200 * time.Millisecond; wait < 2*time.Second; wait *= 2 {
		r.after(wait)
		f.out("FA", 11, 1)
	}
	f.in("FA", 1, 11) // the peer's, which has not seen ours
	f.out("A", 12, 2)
	f.state(tcp.Closing)
	f.in("A", 2, 12)
	f.state(tcp.TimeWait)
	f.in("FA", 1, 12) // our last ACK was lost
	f.out("A", 12, 2)
	f.state(tcp.TimeWait)
}

// L3, on both sides of a connection: CLOSING, then TIME-WAIT, then nothing is left.
func TestL3Both(t *testing.T) {
	path := link.Path{Delay: time.Millisecond}
	p := newPair(t, link.Config{AB: path, BA: path})
	a, b := p.open(80)
	p.run(10*time.Millisecond, func() bool { return false })
	p.a.Close(a)
	p.b.Close(b)
	seen := map[tcp.State]int{}
	p.run(10*time.Millisecond, func() bool {
		seen[a.State()]++
		seen[b.State()]++
		return false
	})
	if seen[tcp.Closing] == 0 || a.State() != tcp.TimeWait || b.State() != tcp.TimeWait {
		t.Errorf("A is in %v, B in %v; seen %v", a.State(), b.State(), seen)
	}
	p.run(time.Minute, func() bool { return false })
	if u := p.a.Usage(); u.Connections != 0 {
		t.Errorf("after 2 MSL: %+v", u)
	}
}

// L4: the SYN, or the SYN and ACK, is lost.
func TestL4(t *testing.T) {
	r := newRig(t)
	f := r.dial()
	for wait := time.Second; wait <= 32*time.Second; wait *= 2 {
		r.after(wait)
		f.out("S", 0, 0, win(65535), mss(1460), scale(5))
	}
	r.after(60 * time.Second) // MaxRTO
	f.out("S", 0, 0)
	r.silence(59 * time.Second) // more than 3 minutes in all (RFC 9293 3.8.3, MUST-23)
	f.state(tcp.SynSent)
	r.silence(time.Second + 2*grain)
	f.outcome(syscall.ETIMEDOUT)
	f.state(tcp.Closed)
}

func TestL4Accept(t *testing.T) {
	r := newRig(t)
	f := r.client(r.listen(1))
	f.syn(mss(1460))
	for wait := time.Second; wait <= 32*time.Second; wait *= 2 {
		r.after(wait)
		f.out("SA", 0, 1, mss(1460), noOpts{})
	}
	r.silence(65 * time.Second)
	if n := r.Counters().Connections; n != 0 {
		t.Errorf("%d connections are left", n)
	}
	f.in("A", 1, 1) // too late
	f.out("R", 1, 0)
	if r.Accept(f.l) != nil {
		t.Error("accepted")
	}
}

// L4: a SYN that was sent twice gives no sample: the RTO starts at 3 s (RFC 6298 5.7). Configured otherwise, so do the
// times.
func TestL4RTO(t *testing.T) {
	r := newRig(t, func(u *setup) {
		u.TCP = tcp.DefaultParams()
		u.TCP.InitRTO, u.TCP.SynRetries = 100e6, 2
	})
	f := r.dial()
	r.after(100 * time.Millisecond)
	f.out("S", 0, 0)
	f.in("SA", 0, 1, mss(1460))
	f.out("A", 1, 1)
	f.send(pattern(1, 10))
	f.out("A", 1, 1, stream(10))
	r.after(300 * time.Millisecond)
	f.out("A", 1, 1, stream(10))

	g := r.dial()
	r.after(100 * time.Millisecond)
	g.out("S", 0, 0)
	r.after(200 * time.Millisecond)
	g.out("S", 0, 0)
	r.advanceUntil(402*time.Millisecond, func() bool { return g.c.State() == tcp.Closed })
	g.outcome(syscall.ETIMEDOUT)
}

// L5: frames are duplicated, reordered and corrupted, 1 % each, for 60 s both ways.
func TestL5(t *testing.T) {
	path := link.Path{Delay: 50 * time.Microsecond, Duplicate: 0.01, Reorder: 0.01, ReorderBy: 200 * time.Microsecond,
		Corrupt: 0.01, Rate: 1e8}
	p := newPair(t, link.Config{Seed: 5, AB: path, BA: path}, func(a, b *stack.Config) { a.TCP, b.TCP = quick(), quick() })
	a, b := p.open(80)
	ab, ba := p.flood(p.a, p.b, a, b, 1<<50), p.flood(p.b, p.a, b, a, 1<<50)
	start := p.link.Now()
	d := 60 * time.Second
	if testing.Short() {
		d = 3 * time.Second
	}
	p.apps = append(p.apps, func() bool {
		if p.link.Now()-start > d { // the streams end where they are
			ab.total, ba.total = min(ab.total, ab.sent), min(ba.total, ba.sent)
		}
		return false
	})
	p.must("both streams end", d+5*time.Minute, func() bool { return ab.done() && ba.done() })
	if ab.got < many(1<<20) || ba.got < many(1<<20) {
		t.Errorf("%d and %d bytes", ab.got, ba.got)
	}
	for _, s := range []*side{p.a, p.b} {
		other := p.link.A
		if s == p.a {
			other = p.link.B
		}
		var bad uint64
		for _, n := range s.Counters().Parse {
			bad += n
		}
		c, st := s.Counters(), other.Stats()
		bad += c.Drop[stack.DropNotOurs] + c.Drop[stack.DropStray]
		// What is flipped in the sender's MAC address is not noticed, and does no harm: 6 of 54 bytes of an ACK.
		if st.Corrupted == 0 || bad < st.Corrupted*85/100 {
			t.Errorf("%v: %d frames were corrupted on the way, %d dropped for it: %v", s.end, st.Corrupted, bad, c.Parse)
		}
	}
	t.Logf("%d and %d MiB", ab.got>>20, ba.got>>20)
}

// L6: the receiver delays its ACKs as Linux does: by 40 ms, or until two segments are there.
func TestL6(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	at := 1
	for i := range 500 {
		n := 1 + i%3 // segments in a round: the last of an odd number waits
		f.send(pattern(at, n*1460))
		for j := range n {
			f.out("A", at+j*1460, 1, stream(1460))
			if j%2 == 1 {
				f.in("A", 1, at+(j+1)*1460)
			}
		}
		at += n * 1460
		if n%2 == 1 {
			r.silence(40 * time.Millisecond)
			f.in("A", 1, at)
		}
	}
	if c := r.Counters(); c.Retransmits != 0 {
		t.Errorf("%d segments were sent again", c.Retransmits)
	}
}

// L6: on a path whose round trip varies between nothing and what the RTO has come to, and on a slow one.
func TestL6Slow(t *testing.T) {
	for _, delay := range []time.Duration{time.Millisecond, 50 * time.Millisecond, 150 * time.Millisecond, 600 * time.Millisecond} {
		path := link.Path{Delay: delay}
		p := newPair(t, link.Config{AB: path, BA: path})
		a, b := p.open(80)
		f := p.flood(p.a, p.b, a, b, 8<<20)
		p.must("transfer", 100*time.Second, f.done)
		if c := p.a.Counters(); c.Retransmits != 0 {
			t.Errorf("delay %v: %d segments were sent again", delay, c.Retransmits)
		}
	}
}
