package stack_test

import (
	"bytes"
	"syscall"
	"testing"
	"time"

	"ndpip/dpdk"
	"ndpip/stack"
	"ndpip/stack/link"
	"ndpip/tcp"
)

// bufs takes at most n buffers for zero-copy sending.
func bufs(r *rig, n int) []dpdk.Frame {
	f := make([]dpdk.Frame, n)
	return f[:r.AllocBufs(f)]
}

// filled are n buffers with size bytes of the pattern from at on, in each.
func filled(r *rig, n, at, size int) []dpdk.Frame {
	r.Helper()
	f := bufs(r, n)
	if len(f) != n {
		r.Fatalf("%d buffers, want %d", len(f), n)
	}
	for i := range f {
		f[i].Len = uint32(size)
		copy(f[i].Bytes(), pattern(at+i*size, size))
	}
	return f
}

// A2: zero-copy sending into a full window: what is not taken is unaltered and the caller's.
func TestA2(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	f.in("A", 1, 1, win(3500))
	mine := filled(r, 5, 1, 1000)
	was := append([]dpdk.Frame{}, mine...)
	n, e := f.SendBufs(f.c, mine)
	if n != 3 || e != 0 {
		t.Fatalf("took %d buffers (%v), want 3", n, e)
	}
	f.run()
	for i := range 3 {
		f.out("A", 1+i*1000, 1, stream(1000))
	}
	same := func() {
		t.Helper()
		for i := 3; i < 5; i++ {
			if mine[i] != was[i] || !bytes.Equal(mine[i].Bytes(), pattern(1+i*1000, 1000)) {
				t.Errorf("buffer %d is not as it was", i)
			}
		}
	}
	same()
	for range 3 {
		if n, e := f.SendBufs(f.c, mine[3:]); n != 0 || e != syscall.EAGAIN {
			t.Fatalf("took %d buffers (%v) into a full window", n, e)
		}
		same()
	}
	copy(mine[3].Bytes(), "they are mine to change")
	copy(mine[3].Bytes(), pattern(3001, 23))
	base := r.link.A.InUse()
	f.in("A", 1, 3001, win(3500))
	if n := base - r.link.A.InUse(); n != 3 {
		t.Errorf("%d buffers came back with the ACK", n)
	}
	if n, e := f.SendBufs(f.c, mine[3:]); n != 2 || e != 0 {
		t.Fatalf("then took %d (%v)", n, e)
	}
	f.run()
	f.out("A", 3001, 1, stream(1000))
	f.out("A", 4001, 1, stream(1000))
	f.in("A", 1, 5001)

	// Longer than a segment may be; of no length; after shutdown.
	odd := filled(r, 2, 5001, 1461)
	if n, e := f.SendBufs(f.c, odd); n != 0 || e != syscall.EMSGSIZE {
		t.Errorf("took %d (%v)", n, e)
	}
	odd[0].Len, odd[1].Len = 0, 10
	if n, e := f.SendBufs(f.c, odd); n != 2 || e != 0 {
		t.Errorf("took %d (%v)", n, e)
	}
	f.run()
}

// A2: with a closed window and nothing under way, one buffer is taken, so that somebody asks for the window; it goes out
// in as many pieces as the window wants.
func TestA2Closed(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	f.in("A", 1, 1, win(0))
	mine := filled(r, 2, 1, 1000)
	if n, e := f.SendBufs(f.c, mine); n != 1 || e != 0 {
		t.Fatalf("took %d (%v)", n, e)
	}
	if n, e := f.SendBufs(f.c, mine[1:]); n != 0 || e != syscall.EAGAIN {
		t.Fatalf("then took %d (%v)", n, e)
	}
	if r.Writable(f.c) {
		t.Error("writable")
	}
	r.after(200 * time.Millisecond)
	f.out("A", 1, 1, stream(1))
	f.in("A", 1, 2, win(0)) // the probe's byte was taken
	r.after(400 * time.Millisecond)
	f.out("A", 2, 1, stream(1))
	f.in("A", 1, 2, win(300))
	f.out("A", 2, 1, stream(300))
	if n, _ := f.SendBufs(f.c, mine[1:]); n != 0 {
		t.Fatal("overtaken")
	}
	f.in("A", 1, 302, win(400))
	f.out("A", 302, 1, stream(400))
	f.in("A", 1, 702, win(400))
	f.out("A", 702, 1, stream(299))
	f.in("A", 1, 1001, win(999))
	// A window that is always smaller than the buffer.
	if n, e := f.SendBufs(f.c, mine[1:]); n != 1 || e != 0 {
		t.Fatalf("took %d (%v)", n, e)
	}
	f.run()
	f.out("A", 1001, 1, stream(999))
	f.in("A", 1, 2000, win(999))
	f.out("A", 2000, 1, stream(1))
	f.in("A", 1, 2001, win(999))
	r.silence(time.Minute)
}

// A8: nothing waits for more to come.
func TestA8(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	for i := 1; i < 100; i++ { // nothing is acknowledged meanwhile
		if n, e := f.Send(f.c, pattern(i, 1)); n != 1 || e != 0 {
			t.Fatal(n, e)
		}
		r.collect() // without a turn of the stack
		f.out("PA", i, 1, stream(1))
	}
	f.in("A", 1, 100)
	mine := filled(r, 1, 100, 1)
	if n, e := f.SendBufs(f.c, mine); n != 1 || e != 0 {
		t.Fatal(n, e)
	}
	r.collect()
	f.out("PA", 100, 1, stream(1))
}

// A9: writes of every length from 1 to 3 × MSS + 1, reads of every length around what is there.
func TestA9(t *testing.T) {
	lens := []int{100}
	if !testing.Short() {
		lens = append(lens, 1460)
	}
	for _, size := range lens {
		p := newPair(t, link.Config{})
		l, _ := p.b.Listen(0, 80, 1, stack.Options{}, 0)
		a, _ := p.a.Connect(0, peerIP, 80, stack.Options{MaxTxSeg: size}, 0)
		var b *tcp.Conn
		p.must("handshake", time.Second, func() bool { b = p.b.Accept(l); return b != nil })
		p.b.Unlisten(l)
		at := 0
		buf := make([]byte, 4*size)
		for n := 1; n <= 3*size+1; n++ {
			data := block[at%blockLen:][:n]
			if k, e := p.a.Send(a, data); k != n || e != 0 {
				t.Fatalf("wrote %d of %d (%v)", k, n, e)
			}
			p.run(time.Microsecond, func() bool { return false })
			at += n
			// Read all but one or two, or at most one and two more than there is.
			want := data
			for _, k := range []int{n - 2 + n%5, 1, 4 * size} {
				if k <= 0 || len(want) == 0 {
					continue
				}
				got, e := p.b.Recv(b, buf[:k])
				if e != 0 || got != min(k, len(want)) || !bytes.Equal(buf[:got], want[:got]) {
					t.Fatalf("after a write of %d: read %d of %d (%v)", n, got, k, e)
				}
				want = want[got:]
			}
			if got, e := p.b.Recv(b, buf); got != 0 || e != syscall.EAGAIN {
				t.Fatalf("after a write of %d: %d more bytes (%v)", n, got, e)
			}
		}
		// The same by zero copy: each segment is a buffer, and Recv may have begun one.
		for n := 1; n <= size; n++ {
			data := block[at%blockLen:][:n]
			p.a.Send(a, data)
			p.run(time.Microsecond, func() bool { return false })
			at += n
			k := n / 2
			if k > 0 {
				if got, _ := p.b.Recv(b, buf[:k]); got != k || !bytes.Equal(buf[:k], data[:k]) {
					t.Fatal("the first half is wrong")
				}
			}
			var f [2]dpdk.Frame
			if got, e := p.b.RecvBufs(b, f[:]); got != 1 || e != 0 || !bytes.Equal(f[0].Bytes(), data[k:]) {
				t.Fatalf("%d buffers (%v): the other half is wrong", got, e)
			}
			p.b.FreeBufs(f[:1], true)
		}
	}
}

// A10: a connection that was closed, or whose process is gone, comes up again at once.
func TestA10(t *testing.T) {
	p := newPair(t, link.Config{})
	for range 5 { // the same process, to the same port
		a, b := p.open(80)
		p.a.Close(a)
		p.run(time.Millisecond, func() bool { return false })
		if n, e := p.b.Recv(b, make([]byte, 1)); n != 0 || e != 0 {
			t.Fatalf("the peer reads %d bytes, %v", n, e)
		}
		p.b.Close(b)
	}
	a, b := p.open(81) // closed while the peer keeps its side
	p.a.Close(a)
	p.open(82)
	p.b.Close(b)
}

// A10: a peer that has lost its connection, and opens it anew from the same port.
func TestA10Peer(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	f.in("S", 500000, 0) // it has a new initial number
	f.out("A", 1, 1)
	f.in("R", 1, 0) // of what it knows nothing about
	f.outcome(syscall.ECONNRESET)
	g := &flow{rig: r, l: f.l, lport: 80, rport: f.rport, rip: peerIP, rmac: peerMAC, irs: f.irs + 500000, wnd: 65535}
	g.handshake(mss(1460))
	g.in("A", 1, 1, "again")
	g.out("A", 1, 6)
	g.recv([]byte("again"))
}

// A10: and a peer that still has the connection of the process before ours.
func TestA10Ours(t *testing.T) {
	r := newRig(t)
	f := r.dial()
	f.in("A", 700, 5000) // its idea of the connection
	f.out("R", 5000, 0)
	f.quiet()
	f.state(tcp.SynSent)
	r.after(time.Second)
	f.out("S", 0, 0)
	f.in("SA", 0, 1)
	f.out("A", 1, 1)
	f.state(tcp.Established)
}
