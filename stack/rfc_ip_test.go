package stack_test

import (
	"encoding/binary"
	"fmt"
	"syscall"
	"testing"
	"time"

	"ndpip/stack"
	"ndpip/stack/link"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// What docs/rfc9293.md claims of IP, ICMP and ARP and no other test looks at.

// broadcasts are destinations of more than one host.
var broadcasts = map[uint32]wire.MAC{
	0xffffffff: wire.Broadcast, 0x0a0000ff: wire.Broadcast, 0xe0000001: {1, 0, 0x5e, 0, 0, 1}, 0xefffffff: {1, 0, 0x5e, 0x7f, 0xff, 0xff},
}

// What is addressed to more than one host gets no answer, but UDP takes broadcasts (RFC 9293 3.9.2.3, MUST-57; RFC 1122
// 3.2.2, 3.3.6). Neither does a packet for this host in a frame for all.
func TestBroadcast(t *testing.T) {
	r := newRig(t)
	l := r.listen(4)
	u := r.socket(1000, 0)
	f := r.client(l)
	readdress := func(b []byte, dst uint32, mac wire.MAC) []byte {
		copy(b, mac[:])
		h := b[wire.EthLen:]
		binary.BigEndian.PutUint32(h[16:], dst)
		resum(b)
		l4 := h[wire.IPv4Len:]
		switch h[9] {
		case wire.ProtoTCP:
			wire.SetTCPCheck(l4, peerIP, dst)
		case wire.ProtoUDP:
			l4[6], l4[7] = 0, 0
		}
		return b
	}
	received := func() (n int) {
		for {
			if _, _, _, _, e := r.RecvFrom(u, make([]byte, 10)); e != 0 {
				return n
			}
			n++
		}
	}
	for dst, mac := range broadcasts {
		for _, to := range []wire.MAC{mac, ourMAC} {
			for _, flags := range []string{"S", "A", "FA", "."} {
				r.inject(readdress(f.segmentFrame(flags, 0, 0), dst, to))
			}
			r.inject(readdress(icmp(peerIP, wire.ICMPEcho, 0, 1, nil), dst, to))
			r.inject(readdress(datagram(peerIP, 9, 1001, "nobody"), dst, to))
			r.quiet()
			r.inject(readdress(datagram(peerIP, 9, 1000, "all"), dst, to))
			r.quiet()
			want := 0
			if mac == wire.Broadcast {
				want = 1 // groups are joined by nobody
			}
			if n := received(); n != want {
				t.Errorf("%d datagrams to %#x at %v were received, want %d", n, dst, to, want)
			}
		}
	}
	for _, mac := range []wire.MAC{wire.Broadcast, {1, 0, 0x5e, 0, 0, 1}} {
		before := r.Counters().Parse[wire.IPDest]
		r.inject(readdress(f.segmentFrame("S", 0, 0), ourIP, mac))
		r.inject(readdress(icmp(peerIP, wire.ICMPEcho, 0, 1, nil), ourIP, mac))
		r.inject(readdress(datagram(peerIP, 9, 1000, "all"), ourIP, mac))
		r.inject(readdress(datagram(peerIP, 9, 1001, "all"), ourIP, mac))
		r.quiet()
		if n := r.Counters().Parse[wire.IPDest] - before; n != 4 {
			t.Errorf("%d packets for us to %v were dropped, want 4", n, mac)
		}
	}
	if n := received(); n != 0 {
		t.Errorf("%d datagrams for us in frames for all were received", n)
	}
	if n := r.Usage().Connections; n != 0 {
		t.Errorf("%d connections", n)
	}
}

// Nothing is answered that comes from an address that no host can have (RFC 9293 3.9.2.3, MUST-63; RFC 1122 3.2.1.3).
func TestBadSource(t *testing.T) {
	r := newRig(t)
	f := r.client(r.listen(4))
	u := r.socket(1000, 0)
	sources := []uint32{0, 0x00000001, 0x7f000001, 0xe0000001, 0xf0000001, 0xffffffff, 0x0a0000ff, 0x0a000000, ourIP}
	n := uint64(0)
	for _, src := range sources {
		f.rip = src
		for _, flags := range []string{"S", "A", "FA", "SA", "."} {
			for _, port := range []uint16{80, 81} {
				f.lport = port
				f.in(flags, 0, 0)
				n++
			}
		}
		r.inject(icmp(src, wire.ICMPEcho, 0, 1, nil))
		r.inject(datagram(src, 9, 1000, "from nowhere"))
		r.inject(datagram(src, 9, 1001, "from nowhere"))
		n += 3
		r.quiet()
	}
	if u.Readable() {
		t.Error("a datagram was received")
	}
	if got := r.Counters().Parse[wire.IPSource]; got != n || r.Usage().Connections != 0 {
		t.Errorf("%d packets dropped for their source, want %d; %d connections", got, n, r.Usage().Connections)
	}
}

// A connection is opened to one host, which is not this one (RFC 9293 3.9.1.1, MUST-46).
func TestBadDestination(t *testing.T) {
	r := newRig(t)
	for _, dst := range []uint32{0, 0x7f000001, 0xe0000001, 0xf0000001, 0xffffffff, 0x0a0000ff, 0x0a000000, ourIP} {
		if c, e := r.Connect(0, dst, 80, stack.Options{}, 0); c != nil || e != syscall.ENETUNREACH {
			t.Errorf("connect to %#x: %v", dst, e)
		}
	}
	r.run()
	r.quiet()
}

// TOS and TTL of what a socket sends, from the start or from some moment on (RFC 9293 3.9.1.9 and 3.9.2, MUST-48, -49,
// SHLD-21, -22). A datagram is atomic: DF is set, and the identification says nothing (RFC 6864 4.1).
func TestService(t *testing.T) {
	r := newRig(t)
	r.unchecked = true // the harness wants a TTL of 64
	look := func(tos, ttl byte) {
		t.Helper()
		for len(r.got) > 0 {
			h, drop := wire.ParseIPv4(r.next()[wire.EthLen:], true)
			if drop != wire.OK || h[1] != tos || h[8] != ttl || binary.BigEndian.Uint32(h[4:]) != 0x4000 {
				t.Fatalf("%v, sent % x; want TOS %d, TTL %d, and an identification of 0 with DF", drop, *h, tos, ttl)
			}
		}
	}
	l := r.listen(1, stack.Options{Service: stack.Service{TOS: 0xb8, TTL: 7}})
	f := r.client(l)
	f.in("S", 0, 0, mss(1460))
	f.learn()
	look(0xb8, 7)
	f.in("A", 1, 1, "text")
	look(0xb8, 7)
	f.c = r.Accept(l)
	at := 1
	for _, v := range []stack.Service{{TOS: 0xb8, TTL: 7}, {TOS: 0x28, TTL: 255}, {}, {TOS: 255, TTL: 1}} {
		r.SetService(f.c, v)
		ttl := v.TTL
		if ttl == 0 {
			ttl = 64
		}
		f.send(pattern(at, 3000))
		look(v.TOS, ttl)
		r.advanceUntil(10*time.Second, func() bool { return len(r.got) > 0 }) // the worker's resend
		if len(r.got) == 0 {
			t.Fatal("nothing was sent again")
		}
		look(v.TOS, ttl)
		at += 3000
		f.in("A", 5, at)
		r.advance(10 * time.Second)
		look(v.TOS, ttl)
	}
	u, e := r.OpenUDP(0, 5, stack.Options{Service: stack.Service{TOS: 0x10}})
	if e != 0 {
		t.Fatal(e)
	}
	defer r.CloseUDP(u)
	r.SendTo(u, []byte("x"), peerIP, 5)
	r.run()
	look(0x10, 64)
	r.SetUDPService(u, stack.Service{TOS: 3, TTL: 9})
	r.SendTo(u, []byte("x"), peerIP, 5)
	r.run()
	look(3, 9)
	r.inject(datagram(peerIP, 9, 1001, "nobody")) // and what is no socket's
	r.inject(icmp(peerIP, wire.ICMPEcho, 0, 1, nil))
	f.lport = 81
	f.in("S", 0, 0)
	look(0, 64)
}

// ICMP errors do not end a connection (RFC 9293 3.9.2.2, MUST-56), but if it ends for want of an answer, they say why
// (SHLD-25). They have to be about what is under way (RFC 5927 4.1).
func TestSoftError(t *testing.T) {
	for _, c := range []struct {
		code   uint8
		off    int // of the sequence number that it is about
		acked  bool
		errno  syscall.Errno
		forged uint64 // counted as such
	}{
		{wire.UnreachNet, 0, false, syscall.EHOSTUNREACH, 0},
		{wire.UnreachHost, 0, false, syscall.EHOSTUNREACH, 0},
		{5, 0, false, syscall.EHOSTUNREACH, 0}, // source route failed
		{wire.UnreachProtocol, 0, false, syscall.ECONNREFUSED, 0},
		{wire.UnreachPort, 0, false, syscall.ECONNREFUSED, 0},
		{wire.UnreachFragment, 0, false, syscall.ETIMEDOUT, 0},
		{wire.UnreachHost, 99, false, syscall.EHOSTUNREACH, 0},
		{wire.UnreachHost, 100, false, syscall.ETIMEDOUT, 1},
		{wire.UnreachHost, -1, false, syscall.ETIMEDOUT, 1},
		{wire.UnreachHost, 0, true, syscall.ETIMEDOUT, 0}, // it was over before the end
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			r := newRig(t)
			f := r.accepted()
			r.SetUserTimeout(f.c, int64(10*time.Second))
			f.send(pattern(1, 100))
			b := r.next()
			seq := b[wire.EthLen+wire.IPv4Len+4:]
			binary.BigEndian.PutUint32(seq, binary.BigEndian.Uint32(seq)+uint32(c.off))
			r.inject(unreachable(c.code, b))
			f.quiet()
			f.state(tcp.Established)
			if n := r.Counters().Parse[wire.ICMPQuote]; n != c.forged {
				t.Errorf("%d counted as forged", n)
			}
			if c.acked {
				f.in("A", 1, 101)
				f.send(pattern(101, 100))
			}
			r.advance(11 * time.Second)
			r.got = nil
			f.outcome(c.errno)
		})
	}
}

// ICMP messages that a host has no use for, or that would be used against it, are dropped without a word: source quench
// (RFC 9293 3.9.2.2, MUST-55), redirects, and the rest; none touches a connection.
func TestICMPDropped(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	f.send(pattern(1, 100))
	about := r.next()[wire.EthLen:][:wire.IPv4Len+8]
	n := uint64(0)
	for typ := range 256 {
		if typ == wire.ICMPUnreachable || typ == wire.ICMPEcho {
			continue
		}
		for code := range uint8(3) {
			r.inject(icmp(peerIP, uint8(typ), code, peerIP, about))
			n++
		}
	}
	f.quiet()
	f.state(tcp.Established)
	if got := r.Counters().Parse[wire.ICMPType]; got != n {
		t.Errorf("%d messages dropped for their type, of %d", got, n)
	}
	f.in("A", 1, 101)
	r.silence(time.Second)
}

// Whoever claims another MAC address again and again does not keep the worker busy with looking at all connections.
func TestMovesBudget(t *testing.T) {
	r := newRig(t, strangers, func(u *setup) { u.link = link.Config{A: link.Port{Buffers: 2048, TxBuffers: 2048}} })
	r.inject(arp(wire.ARPRequest, peerMAC, peerIP, ourIP))
	r.outARP(wire.ARPReply, peerMAC, peerIP)
	var flows []*flow
	for range 200 { // 200 µs between two looks
		flows = append(flows, r.connected())
	}
	f := flows[100]
	at := 1
	claim := func(last byte) { r.inject(arp(wire.ARPReply, wire.MAC{2, 0, 0, 0, 1, last}, peerIP, ourIP)) }
	is := func(last byte) {
		t.Helper()
		f.rmac = wire.MAC{2, 0, 0, 0, 1, last}
		f.send(pattern(at, 1))
		f.out("A", at, 1, stream(1))
		at++
		f.in("A", 1, at)
	}
	claim(1)
	is(1)
	for i := range byte(100) {
		claim(100 + i)
		is(1)
	}
	r.advance(100 * time.Millisecond)
	is(199)
	r.advance(time.Millisecond)
	claim(2)
	is(2)
}

// The time to live of what has arrived does not matter (RFC 1122 3.2.1.7), and neither does the type of service.
func TestReceivedTTL(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	at := 1
	for _, ttl := range []byte{0, 1, 255} {
		for _, tos := range []byte{0, 3, 0xfc} {
			b := f.segmentFrame("A", at, 1, stream(10))
			b[wire.EthLen+1], b[wire.EthLen+8] = tos, ttl
			r.inject(resum(b))
			at += 10
			f.out("A", 1, at)
		}
	}
	f.recv(pattern(1, at-1))
}

// A packet of a protocol that is not there is answered by an ICMP error, which quotes it (RFC 1122 3.2.2.1), unless it
// was for all or came from nowhere (3.2.2).
func TestUnreachableProtocol(t *testing.T) {
	r := newRig(t)
	for proto := range 256 {
		switch proto {
		case wire.ProtoTCP, wire.ProtoUDP, wire.ProtoICMP:
			continue
		}
		b := ip(peerIP, uint8(proto), pattern(0, 20))
		r.inject(b)
		m := r.outIP(wire.ProtoICMP, peerMAC, peerIP)
		if m[0] != wire.ICMPUnreachable || m[1] != wire.UnreachProtocol || string(m[8:]) != string(b[wire.EthLen:][:wire.IPv4Len+8]) {
			t.Fatalf("protocol %d: % x", proto, m)
		}
	}
	b := ip(peerIP, 99, pattern(0, 20))
	copy(b, wire.Broadcast[:])
	r.inject(b)
	r.inject(ip(0x7f000001, 99, pattern(0, 20)))
	r.quiet()
}

// What is sent again in vain goes to where the next hop is by then: it is confirmed, then asked for (RFC 9293 3.8.3 b,
// RFC 1122 3.3.1.4).
func TestResendAsksAnew(t *testing.T) {
	r := newRig(t, strangers)
	r.inject(arp(wire.ARPRequest, peerMAC, peerIP, ourIP))
	r.outARP(wire.ARPReply, peerMAC, peerIP)
	f := r.connected()
	f.send(pattern(1, 10))
	f.out("A", 1, 1, stream(10))
	newMAC := wire.MAC{2, 0, 0, 0, 0, 99} // it has another interface now, and tells nobody
	confirms, asks := 0, 0
	for start := r.link.Now(); f.rmac == peerMAC; {
		if r.link.Now()-start > 3*time.Minute {
			t.Fatalf("it is not found: %d times confirmed, %d asked for", confirms, asks)
		}
		r.advanceUntil(time.Minute, func() bool { return len(r.got) > 0 })
		for len(r.got) > 0 {
			b := r.next()
			switch typ, _ := wire.ParseEthernet(b); {
			case typ == wire.TypeIPv4: // the segment, in vain
			case wire.EthDst(b) == peerMAC:
				confirms++
			default:
				asks++
				r.inject(arp(wire.ARPReply, newMAC, peerIP, ourIP))
				f.rmac = newMAC
			}
		}
	}
	if confirms != 3 || asks != 1 {
		t.Errorf("%d times confirmed, %d asked for", confirms, asks)
	}
	f.silenceARP(2 * time.Minute)
	f.out("A", 1, 1, stream(10))
	f.in("A", 1, 11)
}

// A neighbour that was confirmed a moment ago is asked all the same once segments by way of it find no answer: the data
// are not to wait until its time is over.
func TestResendDoubts(t *testing.T) {
	for _, moved := range []bool{false, true} {
		r := newRig(t, strangers)
		r.inject(arp(wire.ARPRequest, peerMAC, peerIP, ourIP))
		r.outARP(wire.ARPReply, peerMAC, peerIP)
		f := r.connected()
		r.advance(1100 * time.Millisecond)
		f.send(pattern(1, 10))
		f.out("A", 1, 1, stream(10))
		start, confirms, asks := r.link.Now(), 0, 0
		for r.link.Now()-start < 10*time.Second && asks == 0 {
			r.advanceUntil(time.Minute, func() bool { return len(r.got) > 0 })
			for len(r.got) > 0 {
				b := r.next()
				switch typ, _ := wire.ParseEthernet(b); {
				case typ == wire.TypeIPv4: // the segment, in vain
				case wire.EthDst(b) == peerMAC:
					if confirms++; !moved {
						r.inject(arp(wire.ARPReply, peerMAC, peerIP, ourIP))
					}
				default:
					asks++
				}
			}
		}
		if moved && (confirms != 3 || asks != 1) {
			t.Errorf("moved: %d times confirmed, %d asked for", confirms, asks)
		}
		// At home, but busy: one look for each segment that is sent again, from the second on, is what it costs.
		if !moved && (confirms < 1 || confirms > 5 || asks != 0) {
			t.Errorf("at home: %d times confirmed, %d asked for", confirms, asks)
		}
		if moved {
			r.inject(arp(wire.ARPReply, peerMAC, peerIP, ourIP))
		}
		f.silenceARP(2 * time.Minute)
		f.out("A", 1, 1, stream(10))
		f.in("A", 1, 11)
	}
}

// silenceARP lets time pass until something other than ARP is sent.
func (f *flow) silenceARP(d time.Duration) {
	f.advanceUntil(d, func() bool {
		for len(f.got) > 0 {
			if typ, _ := wire.ParseEthernet(f.got[0].frame); typ != wire.TypeARP {
				return true
			}
			f.next()
		}
		return false
	})
}
