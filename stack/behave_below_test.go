package stack_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"ndpip/dpdk"
	"ndpip/stack"
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
