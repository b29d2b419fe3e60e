package stack_test

import (
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	"ndpip/stack"
	"ndpip/stack/wire"
)

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
