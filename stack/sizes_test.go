package stack_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"ndpip/stack"
	"ndpip/tcp"
)

// Streams arrive whatever the buffers, the segments and the window's scale, odd as they may be; and without waiting for
// the persist timer, as long as the reader reads.
func TestSizes(t *testing.T) {
	type sizes struct{ rcvbuf, scale, mss int }
	var all []sizes
	for _, b := range []int{1, 2, 3, 10, 100, 535, 1460, 1461, 2920, 5000, 65535, 65536, 100000} {
		all = append(all, sizes{b, 0, 1460}, sizes{b, 0, 48})
	}
	for s := range 15 {
		for _, b := range []int{1000, 16383, 16385, 40000, 1 << 20} {
			all = append(all, sizes{b, s, 1460})
		}
	}
	for _, m := range []int{48, 49, 63, 64, 65, 536, 1459} {
		all = append(all, sizes{1 << 20, 0, m})
	}
	if testing.Short() { // every fourth, of each kind some
		for i := range len(all) / 4 {
			all[i] = all[i*4+i%4]
		}
		all = all[:len(all)/4]
	}
	for _, c := range all {
		t.Run(fmt.Sprintf("buffer %d scale %d MSS %d", c.rcvbuf, c.scale, c.mss), func(t *testing.T) {
			p := newPair(t, linkOfMillisecond, func(a, b *stack.Config) { small(a); small(b) })
			l, e := p.b.Listen(0, 80, 1, stack.Options{RcvBuf: c.rcvbuf, WinScale: 1 + c.scale, MaxRxSeg: c.mss}, 0)
			if e != 0 {
				t.Fatal(e)
			}
			ca, e := p.a.Connect(0, peerIP, 80, stack.Options{}, 0)
			if e != 0 {
				t.Fatal(e)
			}
			var cb *tcp.Conn
			p.must("handshake", time.Second, func() bool { cb = p.b.Accept(l); return cb != nil })
			p.b.Unlisten(l)
			total := min(200000, 300*c.rcvbuf)
			f := p.flood(p.a, p.b, ca, cb, total)
			// Each window takes a round trip of 2 ms.
			p.must("transfer", time.Duration(total/min(c.rcvbuf, 60000)+5)*5*time.Millisecond+time.Second, f.done)
			if n := p.a.Counters().Probes; n > 2 {
				t.Errorf("%d probes: updates of the window are missing", n)
			}
		})
	}
}

// small is a stack with buffers for one connection.
func small(c *stack.Config) { c.RxBuffers = 2048 }

// Destinations that no connection can have.
func TestConnectNowhere(t *testing.T) {
	r := newRig(t)
	for _, a := range []uint32{0, ourIP, 0x0a0000ff, 0x0a000000, 0xffffffff, 0xe0000001, 0x7f000001, 0xf0000001, 0x0b000001} {
		if c, e := r.Connect(0, a, 80, stack.Options{}, 0); e != syscall.ENETUNREACH || c != nil {
			t.Errorf("connect to %#x: %v", a, e)
		}
	}
	// A SYN that claims to come from us, or from where nobody is.
	r.listen(1)
	for _, a := range []uint32{ourIP, 0x0a0000ff, 0x0a000000, 0xffffffff, 0xe0000001, 0x7f000001, 0} {
		f := r.flow()
		f.lport, f.rip = 80, a
		f.in("S", 0, 0)
		f.in("A", 0, 0)
		r.quiet()
	}
	// And one to many.
	f := r.client(nil)
	b := f.segmentFrame("S", 0, 0)
	copy(b, "\xff\xff\xff\xff\xff\xff")
	r.inject(b)
	r.quiet()
	if u := r.Usage(); u.Connections != 0 {
		t.Errorf("%+v", u)
	}
}

// A window that is rounded down to nothing opens again once all is read, for every scale and buffers about a unit.
func TestScaledWindowOpens(t *testing.T) {
	for s := range 15 {
		if testing.Short() && s%4 != 2 {
			continue
		}
		for _, buf := range []int{1<<s - 1, 1 << s, 1<<s + 1, 2<<s - 1, 2 << s, 3 << s} {
			r := newRig(t, func(u *setup) { u.MSS = 536 })
			l := r.listen(1, stack.Options{RcvBuf: max(buf, 1), WinScale: 1 + s})
			f := r.client(l)
			f.in("S", 0, 0, mss(536), scale(0))
			f.learn()
			edge := 1 + f.out("SA", 0, 1).wnd
			f.in("A", 1, 1)
			if f.c = r.Accept(l); f.c == nil {
				t.Fatal("not accepted")
			}
			for at, i := 1, 0; i < 50; i++ {
				if n := min(1+i*37%536, edge-at); n > 0 {
					f.in("A", at, 1, stream(n))
					f.recv(pattern(at, n))
					at += n
				}
				open := false
				for len(r.got) > 0 {
					g, err := f.parse(r.next())
					if err != nil || int(g.ack) != at {
						t.Fatalf("scale %d, buffer %d: %v (%v), want ACK %d", s, buf, g, err, at)
					}
					edge, open = max(edge, at+g.wnd<<s), g.wnd > 0
				}
				if !open {
					t.Fatalf("scale %d, buffer %d: all %d bytes are read, and the window is closed", s, buf, at-1)
				}
			}
		}
	}
}
