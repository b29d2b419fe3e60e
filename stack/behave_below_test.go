package stack_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"ndpip/dpdk"
	"ndpip/stack"
	"ndpip/stack/link"
	"ndpip/stack/wire"
	"ndpip/tcp"
	"ndpip/udp"
)

// strangers makes a stack that knows nobody's MAC address.
func strangers(u *setup) { u.Neighbours = nil }

// socket is a UDP socket, connected to the peer if peer is not 0.
func (r *rig) socket(port, peer uint16) *udp.Sock {
	r.Helper()
	u, e := r.OpenUDP(0, port, stack.Options{})
	if e != 0 {
		r.Fatal(e)
	}
	if peer != 0 {
		r.ConnectUDP(u, peerIP, peer)
	}
	r.Cleanup(func() { r.CloseUDP(u) })
	return u
}

// askedThrice demands a request for the peer at once, after a second, and after another; a second later it is given up.
func (r *rig) askedThrice(gaveUp func() bool) {
	r.Helper()
	for i := range 3 {
		r.outARP(wire.ARPRequest, wire.Broadcast, peerIP)
		start := r.link.Now()
		r.advanceUntil(1200*time.Millisecond, func() bool { return len(r.got) > 0 || gaveUp() })
		// The neighbours are looked at each 50 ms.
		if took := r.link.Now() - start; took < 940*time.Millisecond || took > 1060*time.Millisecond || gaveUp() != (i == 2) {
			r.Fatalf("after request %d: %v, given up %v", i+1, took, gaveUp())
		}
	}
	r.quiet()
}

// N1: packets to a host that ARP has not resolved.
func TestN1(t *testing.T) {
	r := newRig(t, strangers)
	u := r.socket(1000, 2000)
	other := r.socket(1001, 0)
	base := r.link.A.InUse()
	eight := func(s *udp.Sock) {
		for i := range 8 {
			if e := r.SendTo(s, []byte{byte(i)}, peerIP, 2000); e != 0 {
				t.Fatal(e)
			}
		}
		r.run()
	}
	eight(u)
	r.askedThrice(func() bool { return u.Err.Load() != 0 })
	if e := u.Err.Swap(0); syscall.Errno(e) != syscall.EHOSTUNREACH {
		t.Errorf("the connected socket's error is %d", e)
	}
	for _, s := range []*udp.Sock{u, other} { // now it is known to be dead, for a while
		if e := r.SendTo(s, []byte("x"), peerIP, 2000); e != syscall.EHOSTUNREACH {
			t.Errorf("SendTo gives %v", e)
		}
	}
	r.run()
	if n := r.link.A.InUse(); n > base { // less, as the stock of the application's lane has been used
		t.Errorf("%d buffers in use, %d before", n, base)
	}
	if n := r.drops(stack.DropNeighbour); n != 10 {
		t.Errorf("%d datagrams dropped for want of a neighbour, want 10", n)
	}
	r.advance(2 * time.Second)
	r.quiet()

	eight(u)
	r.outARP(wire.ARPRequest, wire.Broadcast, peerIP)
	r.quiet()
	r.inject(arp(wire.ARPReply, peerMAC, peerIP, ourIP))
	for i := range 8 {
		if b := r.outIP(wire.ProtoUDP, peerMAC, peerIP); b[wire.UDPLen] != byte(i) {
			t.Errorf("datagram %d came as number %d", b[wire.UDPLen], i)
		}
	}
	eight(u) // straight away
	for range 8 {
		r.outIP(wire.ProtoUDP, peerMAC, peerIP)
	}
	r.quiet()
}

// N1, for a connection: the SYN waits, and EHOSTUNREACH tells.
func TestN1Connect(t *testing.T) {
	r := newRig(t, strangers)
	f := r.flow()
	f.connect(stack.Options{})
	r.askedThrice(func() bool { return f.c.State() == tcp.Closed })
	f.outcome(syscall.EHOSTUNREACH)
	r.advance(2 * time.Second)

	g := r.flow()
	g.connect(stack.Options{})
	r.outARP(wire.ARPRequest, wire.Broadcast, peerIP)
	r.silence(500 * time.Millisecond)
	r.inject(arp(wire.ARPReply, peerMAC, peerIP, ourIP))
	g.learn()
	g.out("S", 0, 0)
	g.in("SA", 0, 1)
	g.out("A", 1, 1)
}

// N2: the peer's MAC address changes; entries grow old; static ones do not; other networks are behind the gateway.
func TestN2(t *testing.T) {
	newMAC := wire.MAC{2, 0, 0, 0, 0, 99}
	r := newRig(t, strangers)
	r.inject(arp(wire.ARPRequest, peerMAC, peerIP, ourIP))
	r.outARP(wire.ARPReply, peerMAC, peerIP)
	f := r.dial()
	f.in("SA", 0, 1)
	f.out("A", 1, 1)
	f.send(pattern(1, 10))
	f.out("A", 1, 1, stream(10))
	f.in("A", 1, 11)
	// It moves, and says so to all.
	r.inject(arp(wire.ARPRequest, newMAC, peerIP, peerIP))
	r.advance(time.Second)
	r.got = nil // the claim may be confirmed by unicast
	f.rmac = newMAC
	f.send(pattern(11, 10))
	f.out("A", 11, 1, stream(10))
	r.inject(arp(wire.ARPReply, newMAC, peerIP, ourIP))
	f.in("A", 1, 21)
	r.quiet()
	// Used now and then, the entry is confirmed by unicast and not forgotten.
	at, probes := 21, 0
	for range 60 {
		r.advance(time.Second)
		for len(r.got) > 0 {
			r.outARP(wire.ARPRequest, newMAC, peerIP)
			r.inject(arp(wire.ARPReply, newMAC, peerIP, ourIP))
			probes++
		}
		f.send(pattern(at, 1))
		f.out("A", at, 1, stream(1))
		at++
		f.in("A", 1, at)
	}
	if probes < 1 || probes > 3 {
		t.Errorf("%d unicast requests in a minute", probes)
	}
}

func TestN2Static(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	r.inject(arp(wire.ARPReply, wire.MAC{2, 0, 0, 0, 0, 99}, peerIP, ourIP)) // a static entry stays
	for i := range 120 {
		r.advance(time.Second)
		f.send(pattern(1+i, 1))
		f.out("A", 1+i, 1, stream(1))
		f.in("A", 1, 2+i)
		r.quiet()
	}
}

func TestN2Gateway(t *testing.T) {
	gw := wire.MAC{2, 0, 0, 0, 0, 0xfe}
	r := newRig(t, func(u *setup) { u.Gateway = netip.MustParseAddr("10.0.0.254") })
	f := r.flow()
	f.rip, f.rmac = 0x08080808, gw
	f.connect(stack.Options{})
	r.outARP(wire.ARPRequest, wire.Broadcast, 0x0a0000fe)
	r.inject(arp(wire.ARPReply, gw, 0x0a0000fe, ourIP))
	f.learn()
	f.out("S", 0, 0)
	u := r.socket(1, 0)
	if e := r.SendTo(u, []byte("x"), 0x01020304, 9); e != 0 {
		t.Error(e)
	}
	r.run()
	r.outIP(wire.ProtoUDP, gw, 0x01020304)

	s := newRig(t) // without a gateway
	if _, e := s.Connect(0, 0x08080808, 80, stack.Options{}, 0); e != syscall.ENETUNREACH {
		t.Errorf("Connect: %v", e)
	}
	if e := s.SendTo(s.socket(1, 0), nil, 0x08080808, 80); e != syscall.ENETUNREACH {
		t.Errorf("SendTo: %v", e)
	}
}

// N3: checksums by the port and by us.
func TestN3(t *testing.T) {
	for _, offload := range []bool{false, true} {
		for _, known := range []bool{false, true} { // whether the port checks what it receives
			t.Run(fmt.Sprintf("send %v receive %v", offload, known), func(t *testing.T) {
				r := newRig(t, func(u *setup) {
					u.link.A.TxChecksum, u.link.A.RxChecksum = offload, known
					if offload {
						u.Offload = dpdk.TxIPSum | dpdk.TxTCPSum | dpdk.TxUDPSum
					}
				})
				f := r.accepted()
				for n := 1; n < 70; n++ { // each frame's sums are looked at by the harness
					f.send(pattern(1, n))
					s := f.next()
					if len(s) != 54+n {
						t.Fatalf("%d bytes", len(s))
					}
					f.in("R", 1, 1)
					f.quiet()
					f = r.client(f.l).handshake(mss(1460))
				}
				f.in("A", 1, 1, "good")
				f.out("A", 1, 5)
				u := r.socket(1000, 0)
				r.inject(datagram(peerIP, 5, 1000, "good"))

				bad := f.segmentFrame("A", 5, 1, "bad")
				bad[len(bad)-1] ^= 1
				r.inject(bad)
				bad = datagram(peerIP, 5, 1000, "bad")
				bad[len(bad)-1] ^= 1
				r.inject(bad)
				bad = f.segmentFrame("A", 5, 1, "bad")
				bad[wire.EthLen+11] ^= 1 // the header's own checksum
				r.inject(bad)
				r.quiet()
				c := r.Counters()
				if c.Parse[wire.TCPChecksum] != 1 || c.Parse[wire.UDPChecksum] != 1 || c.Parse[wire.IPChecksum] != 1 {
					t.Errorf("%v", c.Parse)
				}
				none := datagram(peerIP, 5, 1000, "unsummed") // a UDP checksum of 0 means that there is none
				none[wire.EthLen+wire.IPv4Len+6], none[wire.EthLen+wire.IPv4Len+7] = 0, 0
				r.inject(none)
				for _, want := range []string{"good", "unsummed"} {
					p := make([]byte, 20)
					if n, _, _, _, e := r.RecvFrom(u, p); e != 0 || string(p[:n]) != want {
						t.Errorf("received %q, %v", p[:n], e)
					}
				}
				f.recv([]byte("good"))

				// A sum that comes to 0 is sent as 0xFFFF: of 65,536 payloads of two bytes there is one.
				zero := 0
				for v := range 1 << 16 {
					if e := r.SendTo(u, []byte{byte(v >> 8), byte(v)}, peerIP, 5); e != 0 {
						t.Fatal(e)
					}
					for _, b := range r.peer.Sent() {
						switch binary.BigEndian.Uint16(b[wire.EthLen+wire.IPv4Len+6:]) {
						case 0:
							t.Fatal("a UDP checksum of 0 was sent")
						case 0xffff:
							zero++
						}
					}
				}
				if zero != 1 {
					t.Errorf("%d datagrams with the sum 0xFFFF, want 1", zero)
				}
			})
		}
	}
}

// N3: a receiver that has frames longer than the IP packet in them.
func TestN3Padding(t *testing.T) {
	r := newRig(t, func(u *setup) { u.link.A.Pad = 200 })
	f := r.accepted()
	f.in("A", 1, 1, "x")
	f.out("A", 1, 2)
	f.in("A", 2, 1)
	f.quiet()
	f.recv([]byte("x"))
	u := r.socket(7, 0)
	r.inject(datagram(peerIP, 5, 7, "padded"))
	p := make([]byte, 100)
	if n, full, _, _, e := r.RecvFrom(u, p); e != 0 || n != 6 || full != 6 {
		t.Errorf("%d bytes of %d, %v", n, full, e)
	}
}

// N6: ping, a closed UDP port, and ICMP errors.
func TestN6(t *testing.T) {
	r := newRig(t)
	for _, n := range []int{0, 1, 56, 1400, 1472} {
		data := pattern(0, n)
		r.inject(icmp(peerIP, wire.ICMPEcho, 0, 0x12340001, data))
		m := r.outIP(wire.ProtoICMP, peerMAC, peerIP)
		if m[0] != wire.ICMPEchoReply || m[1] != 0 || binary.BigEndian.Uint32(m[4:]) != 0x12340001 || !bytes.Equal(m[8:], data) {
			t.Errorf("%d bytes: answered % x", n, m)
		}
	}
	q := datagram(peerIP, 99, 1000, "nobody is there")
	r.inject(q)
	m := r.outIP(wire.ProtoICMP, peerMAC, peerIP)
	if m[0] != wire.ICMPUnreachable || m[1] != wire.UnreachPort || !bytes.Equal(m[8:], q[wire.EthLen:wire.EthLen+wire.IPv4Len+8]) {
		t.Errorf("a closed UDP port: % x", m)
	}
	// Not about what went to many, nor about an error, nor to a source that nobody has.
	b := datagram(peerIP, 99, 1000, "to all")
	copy(b, wire.Broadcast[:])
	r.inject(b)
	r.inject(icmp(peerIP, wire.ICMPUnreachable, wire.UnreachPort, 0, q[wire.EthLen:]))
	r.inject(datagram(0x0a0000ff, 99, 1000, "from the broadcast address"))
	r.inject(datagram(0xe0000001, 99, 1000, "from a group"))
	r.quiet()

	for _, c := range []struct {
		code uint8
		want syscall.Errno
	}{
		{wire.UnreachNet, syscall.EHOSTUNREACH}, {wire.UnreachHost, syscall.EHOSTUNREACH},
		{wire.UnreachProtocol, syscall.ECONNREFUSED}, {wire.UnreachPort, syscall.ECONNREFUSED},
	} {
		f := r.flow() // while connecting
		f.connect(stack.Options{})
		syn := r.next()
		forged := bytes.Clone(syn)
		forged[wire.EthLen+wire.IPv4Len+7]++ // another sequence number
		r.inject(unreachable(c.code, forged))
		f.state(tcp.SynSent)
		r.inject(unreachable(wire.UnreachFragment, syn))
		f.state(tcp.SynSent)
		r.inject(unreachable(c.code, syn))
		r.quiet()
		f.outcome(c.want)

		g := r.dial() // once connected: it is no proof
		g.in("SA", 0, 1)
		g.out("A", 1, 1)
		g.send(pattern(1, 10))
		data := r.next()
		r.inject(unreachable(c.code, data))
		g.state(tcp.Established)
		g.in("R", 1, 0)

		u := r.socket(0, 7)
		if e := r.SendTo(u, []byte("x"), peerIP, 7); e != 0 {
			t.Fatal(e)
		}
		r.run()
		sent := r.next()
		r.inject(unreachable(c.code, sent))
		if e := syscall.Errno(u.Err.Load()); e != c.want {
			t.Errorf("UDP, code %d: %v, want %v", c.code, e, c.want)
		}
		for _, at := range []int{12, 16, 20, 22} { // source, destination, ports of what it is about: not ours
			bogus := bytes.Clone(sent)
			bogus[wire.EthLen+at]++
			u.Err.Store(0)
			r.inject(unreachable(c.code, bogus))
			if e := u.Err.Load(); e != 0 {
				t.Errorf("a bogus error gives %d", e)
			}
		}
	}
}

// N6: errors are sent to one who asks for them no more than a thousand times a second.
func TestN6Budget(t *testing.T) {
	r := newRig(t)
	for range 5000 {
		r.inject(datagram(peerIP, 99, 1000, ""))
	}
	if len(r.got) != 1000 {
		t.Errorf("%d ICMP errors for 5000 datagrams at once", len(r.got))
	}
	r.got = nil
	r.advance(time.Second)
	r.inject(datagram(peerIP, 99, 1000, ""))
	r.outIP(wire.ProtoICMP, peerMAC, peerIP)
}

// N7: a datagram larger than the MTU allows.
func TestN7(t *testing.T) {
	r := newRig(t)
	u := r.socket(1, 0)
	for _, c := range []struct {
		n int
		e syscall.Errno
	}{{1472, 0}, {1473, syscall.EMSGSIZE}, {65507, syscall.EMSGSIZE}, {70000, syscall.EMSGSIZE}} {
		if e := r.SendTo(u, make([]byte, c.n), peerIP, 1); e != c.e {
			t.Errorf("%d bytes: %v, want %v", c.n, e, c.e)
		}
		r.run()
		if c.e == 0 {
			r.outIP(wire.ProtoUDP, peerMAC, peerIP)
		}
		r.quiet()
	}
}

// N8: an MTU of 9000 against a peer of 1500, and 9000 on both sides.
func TestN8(t *testing.T) {
	for _, peer := range []int{1500, 9000} {
		big := link.Port{Buffers: 4096, TxBuffers: 4096, BufSize: 9344}
		path := link.Path{MTU: peer}
		p := newPair(t, link.Config{A: big, B: big, AB: path, BA: path}, func(a, b *stack.Config) { a.MTU, b.MTU = 9000, peer })
		longest := 0
		p.link.A.Watch(func(_ time.Duration, _ bool, frame []byte) { longest = max(longest, len(frame)) })
		a, b := p.open(80)
		ab, ba := p.flood(p.a, p.b, a, b, 4<<20), p.flood(p.b, p.a, b, a, 4<<20)
		p.must("transfer", time.Minute, func() bool { return ab.done() && ba.done() })
		if longest != peer+wire.EthLen {
			t.Errorf("MTU %d: the longest frame has %d bytes", peer, longest)
		}
	}
}

// N8: the bounds of the MSS option.
func TestN8Bounds(t *testing.T) {
	for _, c := range []struct {
		with []any
		want int
	}{
		{nil, 536}, // RFC 9293 3.7.1
		{[]any{mss(0)}, 536},
		{[]any{mss(1)}, 48}, // see tcp.minMSS
		{[]any{mss(47)}, 48},
		{[]any{mss(100)}, 100},
		{[]any{mss(1460)}, 1460},
		{[]any{mss(65535)}, 1460},
	} {
		r := newRig(t)
		f := r.client(r.listen(1)).handshake(c.with...)
		f.send(pattern(1, 2000))
		f.out("A", 1, 1, stream(c.want))
		r.got = nil
	}
}
