package stack_test

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"ndpip/tcp"
)

// Text that goes beyond the window is cut at its edge, and a FIN behind the edge is not taken.
func TestCutAtTheEdge(t *testing.T) {
	r := newRig(t, func(u *setup) { u.RcvBuf = 1000 })
	f := r.accepted()
	f.in("FA", 1, 1, stream(1300))
	f.out("A", 1, 1001, win(0))
	f.state(tcp.Established)
	f.in("A", 1001, 1, stream(1)) // a probe of the closed window
	f.out("A", 1, 1001, win(0))
	f.recv(pattern(1, 1000))
	f.out("A", 1, 1001, win(1000))
	f.in("FA", 1, 1, stream(1300)) // the same again: 1000 are old
	f.out("A", 1, 1302)
	f.recv(pattern(1001, 300))
	f.outcome(0)
	f.state(tcp.CloseWait)
}

// A window update tells of what was read, when that is worth it; in TIME-WAIT and after the peer's FIN it tells nobody.
func TestWindowUpdate(t *testing.T) {
	r := newRig(t, func(u *setup) { u.RcvBuf = 8192 })
	f := r.accepted()
	at := 1
	for range 6 {
		f.in("A", at, 1, stream(1365))
		at += 1365
		f.out("A", 1, at)
	}
	f.in("A", at, 1, stream(2))
	at += 2
	f.out("A", 1, at, win(0))
	f.recv(pattern(1, 1459))
	f.quiet() // less than a segment
	f.recv(pattern(1460, 1))
	f.out("A", 1, at, win(1460))
	f.recv(pattern(1461, 8192-1460-100))
	f.out("A", 1, at, win(8192-100))
	f.recv(pattern(8192-99, 100))
	f.quiet()
	f.in("A", at, 1, stream(1000))
	f.out("A", 1, at+1000)
	f.in("FA", at+1000, 1)
	f.out("A", 1, at+1001)
	f.recv(pattern(at, 1000))
	f.quiet()

	g := r.connected()
	g.in("A", 1, 1, stream(1460))
	g.out("A", 1, 1461)
	at = 1461
	for range 6 {
		g.in("A", at, 1, stream(1100))
		at += 1100
		g.out("A", 1, at)
	}
	g.shut()
	g.out("FA", 1, at)
	g.in("FA", at, 2)
	g.out("A", 2, at+1)
	g.recv(pattern(1, at-1))
	g.outcome(0)
	g.quiet()
}

// Only the newest segment's window counts (RFC 9293 3.10.7.4, SND.WL1 and SND.WL2).
func TestOldWindow(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	f.send(pattern(1, 2920))
	f.out("A", 1, 1, stream(1460))
	f.out("A", 1461, 1, stream(1460))
	f.in("A", 1, 2921, win(5000))
	f.in("A", 1, 1461, win(100)) // was overtaken: an older ACK
	if n, _ := f.Send(f.c, pattern(2921, 9000)); n != 5000 {
		t.Errorf("%d bytes sent into a window of 5000", n)
	}
	r.run()
	r.got = nil
	f.in("A", 1, 7921, win(6000))
	f.in("A", 11, 7921, win(200)) // newer, though behind a gap
	f.in("A", 1, 7921, win(7000)) // older
	if n, _ := f.Send(f.c, pattern(7921, 9000)); n != 200 {
		t.Errorf("%d bytes sent into a window of 200", n)
	}
	r.run()
}

// The sender does not fill a window that opens by a little with little segments (RFC 9293 3.8.6.2.1).
func TestSillyWindow(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	at := 1
	pump := func(n int) {
		k, _ := f.Send(f.c, pattern(at, n))
		r.run()
		for end := at + k; at < end; {
			s, _ := f.parse(r.next())
			if int(s.seq) != at || len(s.data) == 0 {
				t.Fatalf("sent %v at %d", s, at)
			}
			if len(s.data) < 1460 {
				t.Errorf("a segment of %d bytes", len(s.data))
			}
			at += len(s.data)
		}
	}
	pump(1460 * 20)
	acked := 1
	for range 200 {
		acked += 100
		f.in("A", 1, acked, win(1460*20))
		pump(1460 * 20)
	}
	if at < acked+1460*18 {
		t.Errorf("%d bytes under way in a window of %d", at-acked, 1460*20)
	}
	// When nothing is under way, what the window holds is sent.
	f.in("A", 1, at, win(100))
	if n, _ := f.Send(f.c, pattern(at, 1000)); n != 100 {
		t.Errorf("%d bytes into a window of 100", n)
	}
	r.run()
	f.out("A", at, 1, stream(100))
}

// A FIN waits behind what the window does not hold, and is sent with the data when both are lost.
func TestFinBehindData(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	f.in("A", 1, 1, win(2000))
	f.send(pattern(1, 2000))
	f.out("A", 1, 1, stream(1460))
	f.out("A", 1461, 1, stream(540))
	f.close()
	f.quiet()
	f.state(tcp.FinWait1)
	r.after(200 * time.Millisecond)
	f.out("A", 1, 1, stream(1460))
	f.out("A", 1461, 1, stream(540))
	f.in("A", 1, 2001, win(0))
	f.quiet()
	r.after(200 * time.Millisecond) // the FIN probes the closed window
	f.out("FA", 2001, 1)
	f.in("A", 1, 2001, win(1))
	f.out("FA", 2001, 1)
	f.in("A", 1, 2002, win(1))
	f.state(tcp.FinWait2)

	g := r.connected()
	g.send(pattern(1, 100))
	g.close()
	g.out("A", 1, 1, stream(100))
	g.out("FA", 101, 1)
	for _, wait := range []time.Duration{200, 400, 800} {
		r.after(wait * time.Millisecond)
		g.out("A", 1, 1, stream(100))
		g.out("FA", 101, 1)
	}
	g.in("A", 1, 101)
	g.state(tcp.FinWait1)
	r.advance(300 * time.Millisecond)
	g.out("FA", 101, 1)
	g.in("FA", 1, 102)
	g.out("A", 102, 2)
}

// A stream survives every way to cut it into segments, in any order, each a few times.
func TestAnyOrder(t *testing.T) {
	seeds := 40
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		rnd := rand.New(rand.NewPCG(uint64(seed), 1))
		r := newRig(t, func(u *setup) { u.RcvBuf = 2000 + rnd.IntN(20000) })
		f := r.accepted()
		const total = 20000
		want, acked := pattern(1, total), 1
		got := make([]byte, 0, total)
		fin := false
		for steps := 0; !fin; steps++ {
			if steps > 100000 {
				t.Fatalf("seed %d: %d bytes of %d after %d steps", seed, len(got), total, steps)
			}
			// A segment near what is awaited, now and then the right one; the FIN with whatever reaches the end.
			at := max(1, acked-rnd.IntN(2000)+rnd.IntN(1000))
			if rnd.IntN(4) == 0 {
				at = acked
			}
			n := min(rnd.IntN(1461), max(0, total+1-at))
			flags := "A"
			if at+n == total+1 && rnd.IntN(2) == 0 {
				flags = "FA"
			}
			f.in(flags, at, 1, stream(n))
			for len(r.got) > 0 {
				s, err := f.parse(r.next())
				if err != nil || s.flags != flagsOf("A") || s.seq != 1 || int(s.ack) < acked {
					t.Fatalf("seed %d: sent %v after an ACK of %d (%v)", seed, s, acked, err)
				}
				acked = int(s.ack)
			}
			if rnd.IntN(3) == 0 {
				got = append(got, f.read(rnd.IntN(3000))...)
			}
			fin = acked == total+2
			acked = min(acked, total+1)
		}
		got = append(got, f.read(total)...)
		if string(got) != string(want) {
			t.Fatalf("seed %d: %d bytes, not those that were sent", seed, len(got))
		}
		f.outcome(0)
	}
}

// The same in the other direction: a peer that acknowledges this and that gets each byte.
func TestAnyACK(t *testing.T) {
	seeds := 40
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		rnd := rand.New(rand.NewPCG(uint64(seed), 2))
		r := newRig(t)
		f := r.accepted()
		const total = 30000
		have, sent := 0, 0 // what the peer has in order; what was written
		fin := false
		for steps := 0; !fin; steps++ {
			if steps > 20000 {
				t.Fatalf("seed %d: the peer has %d bytes of %d, %d written, state %v", seed, have, total, sent, f.c.State())
			}
			if sent < total {
				n, e := f.Send(f.c, pattern(1+sent, min(rnd.IntN(4000), total-sent)))
				if e != 0 && e != syscall.EAGAIN {
					t.Fatal(e)
				}
				if sent += n; sent == total {
					f.Shutdown(f.c)
				}
			}
			r.run()
			for len(r.got) > 0 {
				s, err := f.parse(r.next())
				if err != nil {
					t.Fatal(err)
				}
				at, n := int(s.seq)-1, len(s.data)
				if string(s.data) != string(pattern(1+at, n)) || at+n > total {
					t.Fatalf("seed %d: sent %v", seed, s)
				}
				if at > have || rnd.IntN(10) == 0 {
					continue // a gap, or it is lost
				}
				have = max(have, at+n)
				if s.flags&flagsOf("F") != 0 && at+n == have && have == total {
					fin = true
				}
			}
			wnd := []int{0, 1, 100, 1000, 1460, 5000, 20000, 65535}[rnd.IntN(8)]
			switch rnd.IntN(4) {
			case 0, 1:
				f.in("A", 1, 1+have, win(wnd))
			case 2: // an ACK of part of it
				f.in("A", 1, 1+max(0, have-rnd.IntN(2000)), win(wnd))
			case 3:
				r.advance(time.Duration(rnd.IntN(1000)) * time.Millisecond)
			}
		}
		f.in("A", 1, total+2)
		f.state(tcp.FinWait2)
	}
}
