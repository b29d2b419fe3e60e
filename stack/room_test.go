package stack_test

import (
	"testing"
	"time"

	"ndpip/stack"
	"ndpip/tcp"
)

// Connections whose applications do not read, with windows larger than the pool: they get a part of it and see a closed
// window then, and those that are read go on. In the end every byte arrives.
func TestSlowReaders(t *testing.T) {
	const pool, size = 512, 1100 // too large to be gathered
	r := newRig(t, func(u *setup) { u.link.A.Buffers, u.RxBuffers = pool, pool })
	l := r.listen(20)
	var slow []*flow
	for range 10 {
		slow = append(slow, r.client(l).handshake(mss(1460), scale(7)))
	}
	fast := r.client(l).handshake(mss(1460), scale(7))
	at := map[*flow]int{}
	// offer sends one segment if the window allows, and notes what is acknowledged. It returns whether it was.
	offer := func(f *flow) (taken bool, wnd int) {
		f.in("A", 1+at[f], 1, stream(size))
		for len(r.got) > 0 {
			s, err := f.parse(r.next())
			if err != nil {
				t.Fatal(err)
			}
			taken = int(s.ack) == 1+at[f]+size
			wnd = s.wnd
		}
		if taken {
			at[f] += size
		}
		return taken, wnd
	}
	for round := range 300 {
		for _, f := range slow {
			if taken, wnd := offer(f); !taken && wnd != 0 {
				t.Fatalf("round %d: refused with a window of %d", round, wnd)
			}
		}
		if taken, wnd := offer(fast); !taken || wnd == 0 {
			t.Fatalf("round %d: the connection that is read is refused (window %d); held: %+v", round, wnd, r.Usage())
		}
		fast.recv(pattern(1+at[fast]-size, size))
		r.got = nil
	}
	if n := r.link.A.Stats().NoBuffer; n != 0 {
		t.Errorf("%d frames found no buffer", n)
	}
	least, most := 1<<30, 0
	for _, f := range slow {
		least, most = min(least, at[f]/size), max(most, at[f]/size)
	}
	if least < 10 || most-least > 20 {
		t.Errorf("the slow ones hold %d to %d buffers", least, most)
	}
	// The applications read: the window opens by itself, and the streams are whole.
	for _, f := range slow {
		f.recv(pattern(1, at[f]))
		s, err := f.parse(r.next())
		if err != nil || s.wnd == 0 || len(s.data) != 0 {
			t.Fatalf("after reading: %v (%v)", s, err)
		}
		r.got = nil
		if taken, wnd := offer(f); !taken || wnd == 0 {
			t.Fatalf("refused with a window of %d", wnd)
		}
		f.recv(pattern(1+at[f]-size, size))
	}
}

// Six thousand connections send at once, before the stack has had a turn: each has its timer.
func TestManyIdleSenders(t *testing.T) {
	n := 6000
	r := newRig(t, func(u *setup) { u.link.A.TxBuffers = 2 * n; u.link.A.BufSize = 512; u.MTU = 300 })
	r.unchecked = true
	l := r.listen(n)
	flows := map[uint16]*flow{}
	for range n {
		f := r.client(l)
		r.peer.Inject(f.segmentFrame("S", 0, 0))
		flows[f.rport] = f
	}
	r.run()
	for len(r.got) > 0 {
		b := r.next()
		f := flows[uint16(b[36])<<8|uint16(b[37])]
		f.iss = uint32(b[38])<<24 | uint32(b[39])<<16 | uint32(b[40])<<8 | uint32(b[41])
		r.peer.Inject(f.segmentFrame("A", 1, 1))
	}
	r.run()
	r.got = nil
	var conns []*tcp.Conn
	for {
		c := r.Accept(l)
		if c == nil {
			break
		}
		conns = append(conns, c)
	}
	if len(conns) != n {
		t.Fatalf("%d connections", len(conns))
	}
	for _, c := range conns {
		if k, e := r.Send(c, []byte("lost")); k != 4 || e != 0 {
			t.Fatal(k, e)
		}
	}
	r.collect()
	if len(r.got) != n {
		t.Fatalf("%d segments", len(r.got))
	}
	r.got = nil
	r.advance(300 * time.Millisecond)
	again := map[uint16]bool{}
	for _, s := range r.got {
		again[uint16(s.frame[36])<<8|uint16(s.frame[37])] = true
	}
	if len(again) != n {
		t.Errorf("%d of %d segments were sent again", len(again), n)
	}
	r.got = nil
}

// Floods of segments that nobody asked for: no more is sent than is received, and nothing is kept.
func TestFloods(t *testing.T) {
	n := many(100000)
	r := newRig(t)
	r.unchecked = true
	l := r.listen(4)
	f := r.client(l).handshake(mss(1460))
	base, conns := r.link.A.InUse(), r.Usage().Connections
	for _, c := range []struct {
		name  string
		frame func(i int) []byte
		most  int // replies
	}{
		{"RST in the window", func(i int) []byte { return f.segmentFrame("R", 2+i%60000, 0) }, 10},
		{"RST out of the window", func(i int) []byte { return f.segmentFrame("R", -2-i, 0) }, 0},
		{"SYN", func(i int) []byte { return f.segmentFrame("S", i, 0) }, 10},
		{"ACK of what was not sent", func(i int) []byte { return f.segmentFrame("A", 1, 2+i) }, 10},
		{"ACK out of the window", func(i int) []byte { return f.segmentFrame("A", 100000+i, 1) }, 10},
		{"FIN behind a gap", func(i int) []byte { return f.segmentFrame("FA", 2+i%60000, 1) }, n},
		{"text behind a gap", func(i int) []byte { return f.segmentFrame("A", 2+i%60000, 1, stream(1000)) }, n},
		{"no flags", func(i int) []byte { return f.segmentFrame(".", 1, 1) }, 0},
		{"ACK to no connection", func(i int) []byte {
			g := flow{lport: 80, rport: uint16(i), rip: peerIP + 1, rmac: peerMAC}
			return g.segmentFrame("A", i, i)
		}, n},
		{"RST to no connection", func(i int) []byte {
			g := flow{lport: 80, rport: uint16(i), rip: peerIP + 1, rmac: peerMAC}
			return g.segmentFrame("R", i, i)
		}, 0},
	} {
		replies, bytes, got := 0, 0, 0
		for i := range n {
			b := c.frame(i)
			got += len(b)
			r.peer.Inject(b)
			if i%32 == 31 {
				r.run()
				for _, s := range r.got {
					replies, bytes = replies+1, bytes+len(s.frame)
				}
				r.got = nil
			}
		}
		if replies > c.most || bytes > got {
			t.Errorf("%s: %d replies of %d bytes to %d segments of %d bytes", c.name, replies, bytes, n, got)
		}
		if u := r.Usage(); r.link.A.InUse() != base || u.Connections != conns {
			t.Errorf("%s: %d buffers in use, before %d; %+v", c.name, r.link.A.InUse(), base, u)
		}
		r.advance(time.Second)
		r.got = nil
	}
	f.in("A", 1, 1, "still here")
	f.out("A", 1, 11)
	f.recv([]byte("still here"))
}

// A flood of ARP from ever new stations: the cache is bounded, and who was known is still.
func TestFloodARP(t *testing.T) {
	r := newRig(t, func(u *setup) { strangers(u); u.Addr = netip16 })
	r.unchecked = true
	r.inject(arp(1, peerMAC, peerIP, ourIP))
	r.got = nil
	f := r.dial()
	f.in("SA", 0, 1)
	f.out("A", 1, 1)
	for i := range uint32(many(60000)) {
		mac := peerMAC
		mac[3], mac[4] = byte(i>>8)|1, byte(i)
		r.peer.Inject(arp(1, mac, 0x0a000100+i, ourIP))
		if i%32 == 31 {
			r.run()
			if len(r.got) > 32 {
				t.Fatalf("%d frames in answer to 32", len(r.got))
			}
			r.got = nil
		}
	}
	r.run()
	r.got = nil
	f.send(pattern(1, 10))
	f.out("A", 1, 1, stream(10))
	f.in("A", 1, 11)
	f.close()
	f.out("FA", 11, 1)
	g := r.flow()
	g.connect(stack.Options{})
	g.learn() // no request: it was in use all the time
	g.out("S", 0, 0)
}
