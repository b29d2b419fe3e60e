package stack_test

import (
	"encoding/binary"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"ndpip/stack"
	"ndpip/stack/link"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// many is n, or less of it in a short run.
func many(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// C7: 100,000 connections one after the other, closed by either side first, with data or without. TIME-WAIT costs no
// rings, gives way to a new connection, and expires.
func TestC7(t *testing.T) {
	for _, first := range []string{"client", "server"} {
		t.Run(first+" closes first", func(t *testing.T) {
			p := newPair(t, link.Config{})
			l, e := p.b.Listen(0, 80, 16, stack.Options{}, 0)
			if e != 0 {
				t.Fatal(e)
			}
			word, buf := []byte("hello"), make([]byte, 10)
			var most stack.Usage
			n := many(100000) / 2
			for i := range n {
				a, e := p.a.Connect(0, peerIP, 80, stack.Options{}, 0)
				if e != 0 {
					t.Fatalf("connection %d: %v", i, e)
				}
				var b *tcp.Conn
				for range 10 {
					p.a.Turn()
					p.b.Turn()
					if b = p.b.Accept(l); b != nil {
						break
					}
				}
				if b == nil {
					t.Fatalf("connection %d from port %d does not come up: %v", i, a.Lport, a.State())
				}
				if i%2 == 0 {
					p.a.Send(a, word)
					p.b.Turn()
					if k, _ := p.b.Recv(b, buf); string(buf[:k]) != "hello" {
						t.Fatalf("connection %d: read %q", i, buf[:k])
					}
					p.a.Turn()
				}
				if first == "client" {
					p.a.Close(a)
					p.b.Turn()
					p.b.Close(b)
				} else {
					p.b.Close(b)
					p.a.Turn()
					p.a.Close(a)
				}
				for range 2 {
					p.a.Turn()
					p.b.Turn()
				}
				for _, s := range []*side{p.a, p.b} {
					u := s.Usage()
					most.Connections = max(most.Connections, u.Connections)
					most.RingBytes = max(most.RingBytes, u.RingBytes)
				}
				p.link.Advance(100 * time.Microsecond)
			}
			// There are 32,768 ports for the one destination.
			if most.Connections > 32768+2 || most.RingBytes > 1<<18 {
				t.Errorf("at most %+v", most)
			}
			p.b.Unlisten(l)
			p.run(61*time.Second, func() bool { return false })
			for _, s := range []*side{p.a, p.b} {
				if u := s.Usage(); u.Connections != 0 || u.Timers != 0 {
					t.Errorf("%v: after 2 MSL %+v", s.end, u)
				}
				if c := s.Counters(); c.Resets != 0 || c.Retransmits != 0 {
					t.Errorf("%v: %d resets, %d segments sent again", s.end, c.Resets, c.Retransmits)
				}
			}
			t.Logf("at most %+v", most)
		})
	}
}

// C7: a SYN for a connection in TIME-WAIT opens a new one if its number is higher, whether or not the application still
// holds the old one. Ours is higher than all of the old connection's, too.
func TestC7Reopen(t *testing.T) {
	for _, held := range []bool{false, true} {
		r := newRig(t)
		l := r.listen(2)
		f := r.client(l).handshake(mss(1460))
		f.send(pattern(1, 1000))
		f.out("A", 1, 1, stream(1000))
		f.in("A", 1, 1001, "from before")
		f.out("A", 1001, 12)
		f.shut()
		f.out("FA", 1001, 12)
		f.in("FA", 12, 1002)
		f.out("A", 1002, 13)
		if !held {
			f.recv([]byte("from before"))
			f.close()
		}
		f.state(tcp.TimeWait)
		for _, seq := range []int{0, 12, 13, -70000} { // not higher
			f.in("S", seq, 0)
			f.out("A", 1002, 13)
			f.state(tcp.TimeWait)
		}
		g := &flow{rig: r, l: l, lport: 80, rport: f.rport, rip: peerIP, rmac: peerMAC, irs: f.irs + 14, wnd: 65535}
		r.flows = []*flow{g}
		g.in("S", 0, 0)
		g.synAck()
		if d := int32(g.iss - (f.iss + 1002)); d < 1 {
			t.Errorf("the new connection's numbers start %d behind the old one's end", -d)
		}
		g.in("A", 1, 1)
		if g.c = r.Accept(l); g.c == nil {
			t.Fatal("not accepted")
		}
		g.in("A", 1, 1, "new")
		g.out("A", 1, 4)
		g.recv([]byte("new"))
		if held {
			f.recv([]byte("from before"))
			f.outcome(0)
			f.close()
		}
		g.quiet()
		g.state(tcp.Established)

		// A full backlog, or no listener: TIME-WAIT stays.
		h := r.client(l).handshake(mss(1460))
		h.shut()
		h.out("FA", 1, 1)
		h.in("FA", 1, 2)
		h.out("A", 2, 2)
		x, y := r.client(l), r.client(l)
		x.syn()
		y.syn()
		h.in("S", 1000, 0)
		h.quiet()
		h.state(tcp.TimeWait)
		r.Unlisten(l)
		r.run()
		x.out("RA", 1, 1)
		y.out("RA", 1, 1)
		h.in("S", 1000, 0)
		h.out("A", 2, 2)
		h.state(tcp.TimeWait)
	}
}

// C8: listen(b), b+5 clients, and nobody accepts.
func TestC8(t *testing.T) {
	const b = 8
	r := newRig(t)
	l := r.listen(b)
	var in, over []*flow
	for range b {
		f := r.client(l)
		f.syn(mss(1460))
		f.in("A", 1, 1)
		f.quiet()
		in = append(in, f)
	}
	for range 5 {
		f := r.client(l)
		f.in("S", 0, 0, mss(1460))
		over = append(over, f)
	}
	r.silence(3 * time.Second)
	if n := r.drops(stack.DropBacklog); n != 5 {
		t.Errorf("%d SYNs dropped, want 5", n)
	}
	for i, f := range over { // each comes in when one is accepted
		f.in("S", 0, 0, mss(1460))
		f.quiet()
		if in[i].c = r.Accept(l); in[i].c == nil || in[i].c.Rport != in[i].rport {
			t.Fatalf("accepted %+v, want the connection from port %d", in[i].c, in[i].rport)
		}
		f.in("S", 0, 0, mss(1460))
		f.synAck()
		if i%2 == 0 {
			f.in("A", 1, 1)
		}
	}
	r.quiet()
	// Two of the five are half open and stay so: they expire, and make room.
	r.advance(130 * time.Second)
	for len(r.got) > 0 {
		s, err := over[1].parse(r.next())
		if err != nil {
			continue
		}
		if s.flags != flagsOf("SA") {
			t.Errorf("sent %v", s)
		}
	}
	for n := 0; ; n++ {
		c := r.Accept(l)
		if c == nil {
			if n != b-5+3 {
				t.Errorf("then accepted %d, want %d", n, b-5+3)
			}
			break
		}
	}
	for range b {
		r.client(l).syn()
	}
	r.client(l).in("S", 0, 0)
	r.quiet()
	c := r.Counters()
	if c.Accepted != b+3 || c.Drop[stack.DropBacklog] != 5+5+1 || c.Connections != b+3+b {
		t.Errorf("%d accepted, %d SYNs dropped, %d connections", c.Accepted, c.Drop[stack.DropBacklog], c.Connections)
	}
}

// C9: a million SYNs with forged sources, while a connection is busy.
func TestC9(t *testing.T) {
	const backlog = 256
	n := many(1000000)
	goodput := func(syns bool) int {
		p := newPair(t, link.Config{Seed: 9, AB: link.Path{Rate: 2e8, Delay: 10 * time.Microsecond},
			BA: link.Path{Rate: 1e9, Delay: 10 * time.Microsecond}})
		a, b := p.open(80)
		f := p.flood(p.a, p.b, a, b, 1<<50)
		l, e := p.a.Listen(0, 80, backlog, stack.Options{}, 0)
		if e != 0 {
			t.Fatal(e)
		}
		defer p.a.Unlisten(l)
		rnd := rand.New(rand.NewPCG(9, 9))
		attacker := p.link.B.Peer()
		syn := (&flow{lport: 80, rport: 1, rip: peerIP, rmac: peerMAC, wnd: 65535}).segmentFrame("S", 0, 0)
		const step = 100 * time.Microsecond
		d := 2 * time.Second * time.Duration(n) / 1000000
		per := n / int(d/step)
		start := p.link.Now()
		next, sent := start, 0
		p.apps = append(p.apps, func() bool {
			for syns && sent < n && p.link.Now() >= next {
				next += step
				for range per {
					h := syn[wire.EthLen:]
					binary.BigEndian.PutUint32(h[12:], 11<<24|rnd.Uint32N(1<<24)) // a source
					resum(syn)
					binary.BigEndian.PutUint32(h[wire.IPv4Len:], rnd.Uint32()<<16|80)
					wire.SetTCPCheck(h[wire.IPv4Len:], binary.BigEndian.Uint32(h[12:]), ourIP)
					attacker.Inject(syn)
					sent++
				}
			}
			return false
		})
		most := 0
		for end := start + d; p.link.Now() < end; {
			p.run(10*time.Millisecond, func() bool { return false })
			most = max(most, p.a.Usage().Connections)
		}
		if c := p.a.Counters(); syns && (most > backlog+1 || c.Drop[stack.DropBacklog] < uint64(sent)*9/10) {
			t.Errorf("%d connections at most; of %d SYNs %d were dropped", most, sent, c.Drop[stack.DropBacklog])
		}
		if syns && sent < n*9/10 {
			t.Errorf("only %d SYNs were sent", sent)
		}
		f.total = f.sent
		return f.got
	}
	calm, storm := goodput(false), goodput(true)
	if storm < calm*9/10 {
		t.Errorf("%d bytes in the calm, %d in the storm", calm, storm)
	}
	t.Logf("%d MiB in the calm, %d MiB in the storm", calm>>20, storm>>20)
}

// W5: the application stops reading in the middle of a bulk transfer for 10 s, then reads on.
func TestW5(t *testing.T) {
	path := link.Path{Rate: 1e9, Delay: 100 * time.Microsecond}
	p := newPair(t, link.Config{AB: path, BA: path})
	a, b := p.open(80)
	f := p.flood(p.a, p.b, a, b, 16<<20)
	p.must("half of it", time.Minute, func() bool { return f.got > 8<<20 })
	f.paused = true
	p.run(10*time.Second, func() bool { return false })
	stalled := f.sent
	p.run(time.Second, func() bool { return false })
	if f.sent != stalled || f.sent-f.got > 1<<20+1 {
		t.Errorf("%d bytes were taken although nobody reads, %d a second before", f.sent-f.got, stalled-f.got)
	}
	c := p.b.Counters()
	if c.Drop[stack.DropNoBuffer] != 0 || p.b.end.Stats().NoBuffer != 0 {
		t.Errorf("the pool was exhausted: %+v", c)
	}
	f.paused = false
	p.must("the rest", time.Minute, f.done)
	if r := p.a.Counters().Retransmits; r > 1 { // the byte that probed
		t.Errorf("%d segments were sent again", r)
	}
}

// W7: initial sequence numbers 0xFFFFFF00 on both sides, and 64 MiB each way.
//
// A stack's initial number is a hash of the addresses and ports plus a clock that starts with the stack. So a first
// connection shows the hashes, and the stacks of the second are made so long before it that both clocks fit.
func TestW7(t *testing.T) {
	const want, turn = 0xFFFFFF00, 4 * time.Microsecond
	iss := func(da, db time.Duration) (p *pair, a, b *tcp.Conn, ia, ib uint32) {
		lc := link.Config{A: link.Port{Buffers: 4096, TxBuffers: 4096}, B: link.Port{Buffers: 4096, TxBuffers: 4096}}
		p = newPair(t, lc)
		// The stacks start anew, at the given times before the connection.
		remake := func(s *side) *side {
			cfg := *s.Config()
			for _, l := range s.lanes {
				s.end.FreeLane(l)
			}
			return newSide(p.link, s.end, cfg)
		}
		if da > db {
			p.a = remake(p.a)
			p.link.Advance(da - db)
			p.b = remake(p.b)
			p.link.Advance(db)
		} else {
			p.b = remake(p.b)
			p.link.Advance(db - da)
			p.a = remake(p.a)
			p.link.Advance(da)
		}
		p.a.Turn()
		p.b.Turn()
		p.link.A.Watch(func(_ time.Duration, sent bool, frame []byte) {
			seq := binary.BigEndian.Uint32(frame[wire.EthLen+wire.IPv4Len+4:])
			if frame[wire.EthLen+wire.IPv4Len+13]&byte(wire.SYN) == 0 {
				return
			}
			if sent {
				ia = seq
			} else {
				ib = seq
			}
		})
		l, e := p.b.Listen(0, 80, 1, stack.Options{}, 0)
		if e != 0 {
			t.Fatal(e)
		}
		if a, e = p.a.Connect(5000, peerIP, 80, stack.Options{}, 0); e != 0 {
			t.Fatal(e)
		}
		for range 10 {
			p.a.Turn()
			p.b.Turn()
			if b = p.b.Accept(l); b != nil {
				break
			}
		}
		p.b.Unlisten(l)
		return p, a, b, ia, ib
	}
	_, _, _, ia, ib := iss(0, 0)
	p, a, b, ia, ib := iss(time.Duration(want-ia)*turn, time.Duration(want-ib)*turn)
	if ia != want || ib != want {
		t.Fatalf("the initial sequence numbers are %#x and %#x", ia, ib)
	}
	total := many(64 << 20)
	ab, ba := p.flood(p.a, p.b, a, b, total), p.flood(p.b, p.a, b, a, total)
	p.must("both streams end", time.Minute, func() bool { return ab.done() && ba.done() })
	for _, s := range []*side{p.a, p.b} {
		if c := s.Counters(); c.Retransmits != 0 || c.Drop[stack.DropUnacceptable] != 0 {
			t.Errorf("%v: %d segments sent again, %d unacceptable", s.end, c.Retransmits, c.Drop[stack.DropUnacceptable])
		}
	}
}

// N4: a million malformed frames.
func TestN4(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	u := r.socket(1000, 0)
	rnd := rand.New(rand.NewPCG(4, 4))
	base := r.link.A.InUse()
	ipAt := func(b []byte, at int, v byte) []byte { b[wire.EthLen+at] = v; return resum(b) }
	l4At := func(b []byte, at int, v byte) []byte { b[wire.EthLen+wire.IPv4Len+at] = v; return b }
	segment := func(data string) []byte { return f.segmentFrame("A", 1, 1, data) }
	udpFrame := func() []byte { return datagram(peerIP, 5, 1000, "some text") }
	kinds := []struct {
		why  wire.Drop
		make func() []byte
	}{
		{wire.EthShort, func() []byte { return segment("")[:1+rnd.IntN(13)] }},
		{wire.EthVLAN, func() []byte { b := segment("x"); b[12], b[13] = 0x81, 0; return b }},
		{wire.EthVLAN, func() []byte { b := segment("x"); b[12], b[13] = 0x88, 0xa8; return b }},
		{wire.EthIPv6, func() []byte { b := segment("x"); b[12], b[13] = 0x86, 0xdd; return b }},
		{wire.EthType, func() []byte { b := segment("x"); b[12], b[13] = byte(rnd.IntN(6)), byte(rnd.IntN(256)); return b }},
		{wire.ARPShort, func() []byte { return arp(wire.ARPRequest, peerMAC, peerIP, ourIP)[:14+rnd.IntN(28)] }},
		{wire.ARPFormat, func() []byte { b := arp(wire.ARPRequest, peerMAC, peerIP, ourIP); b[14+rnd.IntN(6)] ^= 0x11; return b }},
		{wire.ARPOp, func() []byte { return arp(uint16(3+rnd.IntN(1000)), peerMAC, peerIP, ourIP) }},
		{wire.ARPSender, func() []byte { return arp(wire.ARPReply, wire.MAC{1, 2}, peerIP, ourIP) }},
		{wire.IPShort, func() []byte { return segment("")[:14+rnd.IntN(20)] }},
		{wire.IPVersion, func() []byte { return ipAt(segment("x"), 0, byte(5+rnd.IntN(11))<<4|5) }},
		{wire.IPHeaderLen, func() []byte { return ipAt(segment("x"), 0, 4<<4|byte(rnd.IntN(5))) }},
		{wire.IPOptions, func() []byte { return ipAt(segment("x"), 0, 4<<4|byte(6+rnd.IntN(10))) }},
		{wire.IPLength, func() []byte { return ipAt(segment("x"), 2, byte(1+rnd.IntN(255))) }},
		{wire.IPLength, func() []byte { return ipAt(segment("x"), 3, byte(rnd.IntN(20))) }},
		{wire.IPFragment, func() []byte { return ipAt(segment("x"), 6, 0x20) }},
		{wire.IPFragment, func() []byte { return ipAt(segment("x"), 7, byte(1+rnd.IntN(255))) }},
		{wire.IPChecksum, func() []byte { b := segment("x"); b[24] ^= byte(1 + rnd.IntN(255)); return b }},
		{wire.IPSource, func() []byte { return datagram(0x7f000001, 1, 1000, "") }},
		{wire.IPSource, func() []byte { return datagram(ourIP, 1, 1000, "") }},
		{wire.IPDest, func() []byte { return ipAt(segment("x"), 19, 77) }},
		{wire.IPProtocol, func() []byte { return ip(peerIP, uint8(18+rnd.IntN(238)), pattern(0, rnd.IntN(100))) }},
		{wire.ICMPShort, func() []byte { return ip(peerIP, wire.ProtoICMP, make([]byte, rnd.IntN(8))) }},
		{wire.ICMPChecksum, func() []byte { return l4At(icmp(peerIP, 8, 0, 0, nil), 2, byte(rnd.IntN(200))) }},
		{wire.ICMPType, func() []byte { return icmp(peerIP, uint8(12+rnd.IntN(200)), 0, 0, nil) }},
		{wire.ICMPQuote, func() []byte { return icmp(peerIP, 3, 3, 0, make([]byte, rnd.IntN(60))) }},
		{wire.UDPShort, func() []byte { return ip(peerIP, wire.ProtoUDP, make([]byte, rnd.IntN(8))) }},
		{wire.UDPLength, func() []byte { return l4At(udpFrame(), 5, byte(18+rnd.IntN(200))) }},
		{wire.UDPLength, func() []byte { return l4At(udpFrame(), 5, byte(rnd.IntN(8))) }},
		{wire.UDPChecksum, func() []byte { return l4At(udpFrame(), 8, byte(rnd.IntN(100))) }},
		{wire.TCPShort, func() []byte { return ip(peerIP, wire.ProtoTCP, make([]byte, rnd.IntN(20))) }},
		{wire.TCPOffset, func() []byte { return l4At(segment("x"), 12, byte(rnd.IntN(5))<<4) }},
		{wire.TCPOffset, func() []byte { return l4At(segment("x"), 12, byte(6+rnd.IntN(10))<<4) }},
		{wire.TCPChecksum, func() []byte { return l4At(segment("x"), 20, byte(rnd.IntN(100))) }},
		{wire.TCPOptions, func() []byte { return f.segmentFrame("S", 0, 0, opts{2, byte(5 + rnd.IntN(250)), 0, 0}) }},
		{wire.TCPOptions, func() []byte { return f.segmentFrame("S", 0, 0, opts{1, 2, byte(rnd.IntN(2)), 0}) }},
		{wire.TCPOptions, func() []byte { return f.segmentFrame("S", 0, 0, opts{3, 2, 3, 3}) }},
	}
	var want [wire.NumDrops]uint64
	for i := range many(1000000) {
		k := kinds[i%len(kinds)]
		r.peer.Inject(k.make())
		want[k.why]++
		if i%32 == 31 {
			r.Turn()
		}
	}
	r.advance(2 * time.Second)
	r.got = nil // ICMP says of some protocols that nobody knows them
	got := r.Counters().Parse
	for d := range wire.NumDrops {
		if got[d] != want[d] && d != wire.OK {
			t.Errorf("%v: %d counted, %d sent", d, got[d], want[d])
		}
	}
	if n := r.link.A.InUse(); n != base {
		t.Errorf("%d buffers in use, %d before", n, base)
	}
	f.in("A", 1, 1, "still there")
	f.out("A", 1, 12)
	f.recv([]byte("still there"))
	if u.Readable() {
		t.Error("the socket has received something")
	}
}

// N5: the application holds all buffers; what the stack has to answer it still answers.
func TestN5(t *testing.T) {
	r := newRig(t, func(u *setup) { u.link.A.TxBuffers, u.link.A.Buffers, u.RxBuffers = 256, 512, 512 })
	l := r.listen(4)
	f := r.client(l).handshake(mss(1460), scale(7)) // a window larger than the pool
	s := r.socket(1, 0)
	held := bufs(r, 1000)
	if len(held) < 100 || len(held) > 256 {
		t.Fatalf("%d buffers from a pool of 256", len(held))
	}
	if n, e := f.Send(f.c, pattern(1, 100)); n != 0 || e != syscall.EAGAIN {
		t.Errorf("Send: %d, %v", n, e)
	}
	if e := r.SendTo(s, []byte("x"), peerIP, 9); e != syscall.ENOBUFS {
		t.Errorf("SendTo: %v", e)
	}
	answers := func(at int) {
		t.Helper()
		for range 200 {
			r.inject(arp(wire.ARPRequest, peerMAC, peerIP, ourIP))
			r.outARP(wire.ARPReply, peerMAC, peerIP)
			f.in("A", at-1, 1, stream(1)) // what was received before
			f.out("A", 1, at)
			r.inject(icmp(peerIP, wire.ICMPEcho, 0, 1, nil))
			r.outIP(wire.ProtoICMP, peerMAC, peerIP)
		}
		g := r.client(l).handshake(mss(1460))
		g.in("R", 1, 0)
		g.close()
	}
	f.in("A", 1, 1, stream(1))
	f.out("A", 1, 2)
	answers(2)
	r.FreeBufs(held, false)
	r.Flush()
	f.send(pattern(1, 100))
	f.out("A", 1, 2, stream(100))
	f.in("A", 2, 101)

	// Now the receive pool: unread data fill it, and then there is still room for what carries none.
	at := 2
	for range 700 {
		f.in("A", at, 101, stream(1100)) // too long to be gathered
		if s := f.next(); len(s) != 54 {
			t.Fatal(r.show(s))
		} else if p, _ := f.parse(s); int(p.ack) == at+1100 {
			at += 1100
		} else {
			break
		}
	}
	if r.drops(stack.DropNoBuffer) == 0 {
		t.Errorf("%d bytes were taken by a pool of 512 buffers", at)
	}
	if n := r.link.A.Stats().NoBuffer; n != 0 {
		t.Errorf("%d frames found no buffer", n)
	}
	r.quiet()
	for range 100 {
		r.inject(arp(wire.ARPRequest, peerMAC, peerIP, ourIP))
		r.outARP(wire.ARPReply, peerMAC, peerIP)
		f.in("A", at, 101, stream(1100)) // refused, and answered
		f.out("A", 101, at)
	}
	f.recv(pattern(1, at-1))
	r.run()
	r.got = nil
	f.in("A", at, 101, stream(1100))
	f.out("A", 101, at+1100)
	f.recv(pattern(at, 1100))
}
