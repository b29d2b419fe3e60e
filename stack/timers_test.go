package stack_test

import (
	"syscall"
	"testing"
	"time"

	"ndpip/stack"
	"ndpip/stack/link"
	"ndpip/tcp"
)

// Data that nobody acknowledges are sent again, after the RTO, twice that, and so on up to a minute, 15 times; then the
// connection ends (RFC 9293 3.8.3, R2).
func TestGivingUp(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	f.send(pattern(1, 100))
	f.out("A", 1, 1, stream(100))
	wait := 200 * time.Millisecond
	for range 15 {
		r.after(wait)
		f.out("A", 1, 1, stream(100))
		wait = min(2*wait, time.Minute)
		f.in("A", 1, 1) // the peer is there, but does not take it
	}
	r.after(wait)
	f.out("RA", 101, 1)
	f.quiet()
	f.state(tcp.Closed)
	f.outcome(syscall.ETIMEDOUT)
}

// TCP_USER_TIMEOUT bounds the time from when the data were sent, to the millisecond; and how long a window may be closed.
func TestUserTimeout(t *testing.T) {
	for _, closed := range []bool{false, true} {
		r := newRig(t)
		f := r.accepted()
		if closed {
			f.in("A", 1, 1, win(0))
		}
		r.SetUserTimeout(f.c, int64(5*time.Second))
		start := r.link.Now()
		if n, e := f.Send(f.c, pattern(1, 1)); n != 1 || e != 0 {
			t.Fatal(n, e)
		}
		r.advanceUntil(time.Minute, func() bool {
			if closed && len(r.got) > 0 && f.c.State() != tcp.Closed {
				r.got = nil
				f.in("A", 1, 1, win(0))
			}
			return f.c.State() == tcp.Closed
		})
		if took := r.link.Now() - start; took < 5*time.Second || took > 5*time.Second+5*grain {
			t.Errorf("closed window %v: it took %v", closed, took)
		}
		f.outcome(syscall.ETIMEDOUT)
		r.got = nil
	}
}

// SO_KEEPALIVE (RFC 9293 3.8.4): probes after silence, of the byte before SND.UNA, and the end if none is answered.
func TestKeepAlive(t *testing.T) {
	for _, s := range []tcp.State{tcp.Established, tcp.CloseWait, tcp.FinWait2} {
		t.Run(s.String(), func(t *testing.T) {
			r := newRig(t)
			f := r.inState(s)
			r.SetKeepAlive(f.c, int64(10*time.Second), 0, 0)
			for range 5 { // an answer keeps it alive
				r.after(10 * time.Second)
				f.out("A", f.snd-1, f.rcv)
				f.in("A", f.rcv, f.snd)
			}
			r.silence(7 * time.Second)
			f.in("A", f.rcv, f.snd) // so does anything else
			for range 9 {
				r.after(10 * time.Second)
				f.out("A", f.snd-1, f.rcv)
			}
			r.after(10 * time.Second)
			f.out("RA", f.snd, f.rcv)
			f.state(tcp.Closed)
			if s != tcp.CloseWait {
				f.outcome(syscall.ETIMEDOUT)
			}
		})
	}
}

// An interval and a number of probes that are asked for; and 75 s between probes at most, if they are not.
func TestKeepAliveTimes(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	r.SetKeepAlive(f.c, int64(time.Hour), int64(2*time.Second), 3)
	r.after(time.Hour)
	f.out("A", 0, 1)
	for range 2 {
		r.after(2 * time.Second)
		f.out("A", 0, 1)
	}
	r.after(2 * time.Second)
	f.out("RA", 1, 1)

	g := r.connected()
	r.SetKeepAlive(g.c, int64(2*time.Hour), 0, 0)
	r.after(2 * time.Hour)
	g.out("A", 0, 1)
	r.after(75 * time.Second)
	g.out("A", 0, 1)
	r.SetKeepAlive(g.c, 0, 0, 0)
	r.silence(time.Hour)
}

// While data are unacknowledged, their retransmission is probe enough.
func TestKeepAliveBusy(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	r.SetKeepAlive(f.c, int64(time.Second), 0, 0)
	f.send(pattern(1, 10))
	f.out("A", 1, 1, stream(10))
	for wait := 200 * time.Millisecond; wait < 10*time.Second; wait *= 2 {
		r.after(wait)
		f.out("A", 1, 1, stream(10))
	}
}

// The RTO follows the round trip, and a path that has become slower than the RTO does not have each segment sent twice
// for ever (Karn's problem).
func TestRTO(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	at := 1
	again := 0
	const trip = 500 * time.Millisecond
	type ack struct {
		due time.Duration
		ack int
	}
	var acks []ack
	for range 100 {
		f.send(pattern(at, 100))
		for done := false; !done; {
			for len(r.got) > 0 {
				s, _ := f.parse(r.next())
				if len(s.data) > 0 {
					acks = append(acks, ack{r.link.Now() + trip, max(at, int(s.seq)+len(s.data))})
				}
				if int(s.seq) < at {
					t.Fatalf("sent %v", s)
				}
			}
			r.advance(grain)
			for len(acks) > 0 && acks[0].due <= r.link.Now() {
				f.in("A", 1, acks[0].ack)
				done = done || acks[0].ack > at
				acks = acks[1:]
			}
		}
		at += 100
	}
	again = int(r.Counters().Retransmits)
	if again > 3 {
		t.Errorf("%d of 100 segments were sent again, though none was lost", again)
	}
	t.Logf("%d segments sent again", again)
}

// The same with a window of segments under way, over a link that becomes slow.
func TestRTOBulk(t *testing.T) {
	p := newPair(t, link.Config{})
	a, b := p.open(80)
	f := p.flood(p.a, p.b, a, b, 1<<50)
	p.run(100*time.Millisecond, func() bool { return f.got > 1<<20 })
	slow := link.Path{Delay: 300 * time.Millisecond}
	p.link.A.SetPath(slow)
	p.link.B.SetPath(slow)
	p.run(10*time.Second, func() bool { return false })
	before, got := p.a.Counters().Retransmits, f.got
	p.run(60*time.Second, func() bool { return false })
	if n := p.a.Counters().Retransmits - before; n != 0 {
		t.Errorf("after ten seconds still %d segments were sent again in a minute, of %d bytes", n, f.got-got)
	}
	f.total = f.sent
}

// 2 MSL starts anew with each FIN of the peer's, and with nothing else.
func TestTimeWait(t *testing.T) {
	r := newRig(t)
	f := r.inState(tcp.TimeWait)
	f.close()
	r.silence(50 * time.Second)
	f.in("FA", 1, 2)
	f.out("A", 2, 2)
	r.silence(50 * time.Second)
	f.in("A", 1, 2, "old")
	f.out("A", 2, 2)
	f.in("R", 100, 0)
	f.out("A", 2, 2)
	r.silence(9 * time.Second)
	if u := r.Usage(); u.Connections != 1 {
		t.Fatalf("%+v", u)
	}
	r.silence(time.Second + 2*grain)
	if u := r.Usage(); u.Connections != 0 {
		t.Fatalf("%+v", u)
	}
	f.in("FA", 1, 2)
	f.out("R", 2, 0)
}

// What has been received is read to its end although the connection has ended meanwhile, gathered bytes as well.
func TestReadAfterEnd(t *testing.T) {
	for _, end := range []string{"TIME-WAIT is over", "RST"} {
		t.Run(end, func(t *testing.T) {
			r := newRig(t, func(u *setup) { u.RcvBuf = 16384 })
			f := r.accepted()
			if end == "TIME-WAIT is over" {
				f.shut()
				f.out("FA", 1, 1)
				f.in("A", 1, 2)
			}
			const n = 500 // single bytes: the ring has 64 entries, the rest is gathered
			for i := range n {
				r.peer.Inject(f.segmentFrame("A", 1+i, f.snd+map[bool]int{true: 1}[end == "TIME-WAIT is over"], stream(1)))
			}
			r.run()
			r.got = nil
			if end == "RST" {
				f.in("R", 1+n, 0)
			} else {
				f.in("FA", 1+n, 2)
				f.out("A", 2, 2+n)
				r.advance(61 * time.Second)
			}
			f.state(tcp.Closed)
			for got := 0; got < n; {
				p := make([]byte, 7)
				k, e := f.Recv(f.c, p)
				if e == syscall.EAGAIN {
					f.run()
					if k, e = f.Recv(f.c, p); e != 0 {
						t.Fatalf("after %d bytes of %d: %v", got, n, e)
					}
				}
				if k == 0 || string(p[:k]) != string(pattern(1+got, k)) {
					t.Fatalf("after %d bytes of %d: read %d (%v)", got, n, k, e)
				}
				got += k
			}
			if end == "RST" {
				f.outcome(syscall.ECONNRESET)
			} else {
				f.outcome(0)
			}
			f.close()
			if u := r.Usage(); u.Connections != 0 {
				t.Errorf("%+v", u)
			}
		})
	}
}

// The initial sequence numbers of two connections of the same ports rise with time (RFC 6528), and differ between others.
func TestISN(t *testing.T) {
	r := newRig(t)
	var last uint32
	for i := range 10 {
		f := r.flow()
		f.lport, f.rport = 1234, 80
		f.connect(stack.Options{})
		f.learn()
		f.out("S", 0, 0)
		if d := f.iss - last; i > 0 && (d < 25000-500 || d > 25000+500) {
			t.Errorf("after 100 ms the number is %d higher, want 25000 by a clock of 4 µs", d)
		}
		last = f.iss
		f.in("RA", 0, 1)
		f.close()
		r.flows = nil
		r.advance(100 * time.Millisecond)
	}
	seen := map[uint32]bool{}
	for range 100 {
		f := r.dial()
		if seen[f.iss>>16] {
			t.Logf("two numbers are close to each other: %#x", f.iss)
		}
		seen[f.iss>>16] = true
	}
	if len(seen) < 98 {
		t.Errorf("only %d of 100 initial numbers differ in their first half", len(seen))
	}
}
