package stack_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"ndpip/stack"
	"ndpip/tcp"
)

// W1: the window closes, and the update that opens it is lost.
func TestW1(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	f.send(pattern(1, 1000))
	f.out("A", 1, 1, stream(1000))
	f.in("A", 1, 1001, win(0))
	if n, e := f.Send(f.c, pattern(1001, 3000)); n != 1 || e != 0 {
		t.Fatalf("a closed window takes %d bytes (%v), want the one that probes it", n, e)
	}
	if n, e := f.Send(f.c, pattern(1002, 1)); n != 0 || e != syscall.EAGAIN {
		t.Fatalf("and then %d (%v)", n, e)
	}
	f.run()
	// The first probe after the RTO, each further one after twice the time, at most MaxRTO.
	for wait := 200 * time.Millisecond; wait < 200*time.Second; wait *= 2 {
		r.after(min(wait, 60*time.Second))
		f.out("A", 1001, 1, stream(1))
		f.in("A", 1, 1001, win(0))
	}
	for range 30 { // for as long as the peer likes
		r.after(60 * time.Second)
		f.out("A", 1001, 1, stream(1))
		f.in("A", 1, 1001, win(0))
	}
	// The update is lost; the answer to the next probe says the same.
	r.after(60 * time.Second)
	f.out("A", 1001, 1, stream(1))
	f.in("A", 1, 1002, win(65535))
	f.quiet()
	f.send(pattern(1002, 2000))
	f.out("A", 1002, 1, stream(1460))
	f.out("A", 2462, 1, stream(540))
	// The backoff of the persist timer is over.
	r.after(200 * time.Millisecond)
	f.out("A", 1002, 1, stream(1460))
	f.out("A", 2462, 1, stream(540))
	f.in("A", 1, 3002)
	r.silence(10 * time.Minute)
}

// W1, with the window update arriving between two probes: what waited leaves at once, and the probe's byte once.
func TestW1Update(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	f.in("A", 1, 1, win(0))
	f.Send(f.c, pattern(1, 1))
	f.run()
	r.after(200 * time.Millisecond)
	f.out("A", 1, 1, stream(1))
	f.in("A", 1, 1, win(0))
	f.in("A", 1, 1, win(100))
	f.out("A", 1, 1, stream(1))
	f.in("A", 1, 2, win(100))
	r.silence(time.Minute)
}

// W1, the FIN behind a closed window: it is the probe.
func TestW1Fin(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	f.in("A", 1, 1, win(0))
	f.shut()
	r.after(200 * time.Millisecond)
	f.out("FA", 1, 1)
	f.in("A", 1, 1, win(0))
	r.after(400 * time.Millisecond)
	f.out("FA", 1, 1)
	f.in("A", 1, 2, win(0))
	f.state(tcp.FinWait2)
	r.silence(time.Minute)
}

// W2: the receive buffer is full, then the peer's FIN arrives at RCV.NXT.
func TestW2(t *testing.T) {
	for _, text := range []int{0, 100} { // a bare FIN, and one behind text that does not fit
		r := newRig(t, func(u *setup) { u.RcvBuf = 4000 })
		f := r.accepted()
		f.in("A", 1, 1, stream(1460))
		f.in("A", 1461, 1, stream(1460))
		f.in("A", 2921, 1, stream(1080))
		f.out("A", 1, 1461)
		f.out("A", 1, 2921)
		f.out("A", 1, 4001, win(0))
		f.in("FA", 4001, 1, stream(text))
		if text == 0 {
			f.out("A", 1, 4002)
		} else {
			f.out("A", 1, 4001, win(0)) // not now; the peer sends it again
		}
		f.recv(pattern(1, 4000))
		if text > 0 {
			f.out("A", 1, 4001, win(4000)) // there is room again
			f.outcome(syscall.EAGAIN)
			f.in("FA", 4001, 1, stream(text))
			f.out("A", 1, 4102)
			f.recv(pattern(4001, text))
		}
		f.outcome(0)
		f.state(tcp.CloseWait)
		f.quiet()
	}
}

// W3: an ACK moves the right edge of the window to the left.
func TestW3(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	f.in("A", 1, 1, win(10000))
	f.send(pattern(1, 2920))
	f.out("A", 1, 1, stream(1460))
	f.out("A", 1461, 1, stream(1460))
	f.in("A", 1, 1461, win(1000)) // the edge was 10001, and is 2461 now: 460 bytes of what is under way lie beyond
	if n, e := f.Send(f.c, pattern(2921, 10)); n != 0 || e != syscall.EAGAIN {
		t.Errorf("beyond the edge %d bytes were taken (%v)", n, e)
	}
	r.after(200 * time.Millisecond) // what is sent again ends at the edge
	f.out("A", 1461, 1, stream(1000))
	f.in("A", 1, 2461, win(0)) // and the window closes altogether
	r.after(200 * time.Millisecond)
	f.out("A", 2461, 1, stream(1))
	f.in("A", 1, 2461, win(0))
	f.in("A", 1, 2461, win(5000))
	f.out("A", 2461, 1, stream(460))
	f.in("A", 1, 2921, win(5000))
	f.send(pattern(2921, 1000))
	f.out("A", 2921, 1, stream(1000))
	f.in("A", 1, 3921, win(5000))
	r.silence(time.Minute)
}

// W3: an ACK of ours is acceptable to a peer whose window has shrunk below what is under way.
func TestW3Ack(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	f.in("A", 1, 1, win(10000))
	f.send(pattern(1, 2920))
	f.out("A", 1, 1, stream(1460))
	f.out("A", 1461, 1, stream(1460))
	f.in("A", 1, 1, win(1000))
	f.in("A", 1, 1, win(1000), stream(5))
	f.out("A", 1001, 6)
	f.in("A", 6, 2921, win(1000)) // it was received all the same
	f.in("A", 6, 2921, win(1000), stream(5))
	f.out("A", 2921, 11)
}

// W3: so it is to one that has closed its window, also with a scale, which lets windows move by less than its unit: once
// the timer has expired the peer has not taken what lies beyond. Linux 6.17 and later take no ACK from there, not even a
// probe's, and a peer that must not send before it has our ACK may never open its window.
func TestW3AckScaled(t *testing.T) {
	for _, sent := range []int{0, 700} { // what lies beyond the edge: the byte that probes, and what was under way
		r := newRig(t)
		f := r.accepted(mss(1460), scale(10))
		f.in("A", 1, 1, win(1))
		if sent > 0 {
			f.send(pattern(1, sent))
			f.out("A", 1, 1, stream(sent))
		}
		f.in("A", 1, 1, win(0), stream(5))
		f.out("A", 1+sent, 6) // the edge may be rounded
		if sent == 0 {
			if n, e := f.Send(f.c, pattern(1, 1)); n != 1 || e != 0 {
				t.Fatalf("a closed window takes %d bytes (%v)", n, e)
			}
			f.run()
		}
		for i := range 3 {
			r.after(200 * time.Millisecond << i)
			f.out("A", 1, 6, stream(1))
			f.in("A", 6, 1, win(0))
			f.in("A", 1, 1, win(0), stream(5)) // the peer has not seen our ACK
			f.out("A", 1, 6)
		}
		f.in("A", 6, 1+max(sent, 1), win(1))
		f.in("A", 6, 1+max(sent, 1), win(1), stream(5))
		f.out("A", 1+max(sent, 1), 11)
	}
}

// W4: 100,000 segments of one byte and a slow reader. Memory is bounded by the entries of the receive ring (one for
// each 512 bytes of the buffer) and the gathering buffer; the window never stays closed once the application reads.
func TestW4(t *testing.T) {
	total := 100000
	if testing.Short() {
		total = 20000
	}
	const buf = 8192
	r := newRig(t, func(u *setup) { u.RcvBuf = buf })
	r.unchecked = true
	f := r.accepted(mss(1460), scale(0))
	base := r.link.A.InUse()
	most, updates, edge := 0, 0, buf+1
	nxt, read := 1, 0
	take := func() { // the stack's ACKs: the edge they show never moves left
		for len(r.got) > 0 {
			s, err := f.parse(r.next())
			if err != nil {
				t.Fatal(err)
			}
			if s.flags != flagsOf("A") || len(s.data) > 0 || int(s.ack) > nxt {
				t.Fatalf("sent %v", s)
			}
			e := int(s.ack) + s.wnd
			if e < edge || e > read+buf+1 {
				t.Fatalf("the window ends at %d, before at %d; %d bytes were read of a buffer of %d", e, edge, read, buf)
			}
			edge = e
		}
	}
	for read < total {
		for nxt < edge && nxt <= total {
			b := f.segmentFrame("A", nxt, 1, stream(1))
			r.peer.Inject(b)
			if nxt++; nxt%64 == 0 {
				r.run()
				take()
			}
		}
		r.run()
		take()
		most = max(most, r.link.A.InUse()-base)
		// The reader takes a little now and then: window updates come only for an MSS or half the buffer.
		for range 8 {
			f.recv(pattern(read+1, min(200, nxt-1-read)))
			read += min(200, nxt-1-read)
		}
		before := edge
		updates += len(r.got)
		take()
		if edge > before && edge-before < 1460 {
			t.Fatalf("a window update of %d bytes", edge-before)
		}
		if nxt > edge && edge-1-read == 0 && nxt <= total {
			t.Fatalf("the window stays closed: %d read, %d received", read, nxt-1)
		}
	}
	if limit := 64 + 8; most > limit {
		t.Errorf("%d buffers hold %d bytes, want at most %d", most, buf, limit)
	}
	if updates > total/1460+2 {
		t.Errorf("%d window updates for %d bytes", updates, total)
	}
	f.outcome(syscall.EAGAIN)
	t.Logf("at most %d buffers in use, %d window updates", most, updates)
}

// W6: what the peer offers as its window scale, and what follows. The window of a SYN is never scaled.
func TestW6(t *testing.T) {
	const buf = 1 << 20 // needs a shift of 5
	for _, c := range []struct {
		offer []any
		shift int // of the peer's windows
		ours  any // option in our SYN and ACK
		wnd   int // in our first ACK, at a window of buf
	}{
		{[]any{mss(1460), scale(20)}, 14, scale(5), buf >> 5},
		{[]any{mss(1460), scale(14)}, 14, scale(5), buf >> 5},
		{[]any{mss(1460), scale(0)}, 0, scale(5), buf >> 5},
		{[]any{mss(1460)}, 0, noOpts{}, 65535},
	} {
		for _, active := range []bool{false, true} {
			t.Run(fmt.Sprint(c.offer, active), func(t *testing.T) {
				r := newRig(t, func(u *setup) { u.RcvBuf, u.SndBuf = buf, 1<<22 })
				var f *flow
				with := append([]any{win(3)}, c.offer...)
				if active {
					f = r.flow()
					f.connect(stack.Options{})
					f.learn()
					f.out("S", 0, 0, win(65535), mss(1460), scale(5))
					f.in("SA", 0, 1, with...)
					f.out("A", 1, 1, win(c.wnd))
				} else {
					f = r.client(r.listen(1))
					f.in("S", 0, 0, with...)
					f.learn()
					f.out("SA", 0, 1, win(65535), mss(1460), c.ours)
					f.in("A", 1, 1, win(3), stream(1))
					f.out("A", 1, 2) // the window shrank by a byte, or was closed to 65535
					f.c = f.Accept(f.l)
				}
				// The window of the peer's SYN is 3 bytes, that of its next segment 3 << shift.
				want := 3
				if !active {
					want <<= c.shift
				}
				if n, e := f.Send(f.c, pattern(1, 1<<17)); n != min(want, 1<<17) || e != 0 {
					t.Fatalf("sent %d bytes (%v), want %d", n, e, want)
				}
				if active {
					f.in("A", 1, 4, win(2))
					n, _ := f.Send(f.c, pattern(4, 1<<17))
					if n != 2<<c.shift {
						t.Fatalf("then sent %d bytes, want %d", n, 2<<c.shift)
					}
				}
				f.run()
				r.got = nil
			})
		}
	}
}

// W6: without scaling on both sides no window above 65,535 is ever shown, whatever the buffer, and reading does not
// bring forth updates that tell nothing.
func TestW6Unscaled(t *testing.T) {
	r := newRig(t, func(u *setup) { u.RcvBuf = 1 << 20 })
	f := r.accepted(mss(1460))
	at := 1
	for range 40 {
		f.in("A", at, 1, stream(1460))
		at += 1460
		f.out("A", 1, at, win(65535-(at-1)))
	}
	for read := 1; read < at; {
		n := len(f.read(730))
		read += n
		f.run()
		for len(r.got) > 0 {
			s := f.out("A", 1, at)
			if s.wnd < 65535-(at-1)+1460 {
				t.Fatalf("an update from %d to %d", 65535-(at-1), s.wnd)
			}
		}
	}
	f.in("A", at, 1, stream(1))
	f.out("A", 1, at+1, win(65534))
}
