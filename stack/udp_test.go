package stack_test

import (
	"encoding/binary"
	"syscall"
	"testing"

	"ndpip/stack"
	"ndpip/stack/wire"
	"ndpip/udp"
)

// wantDatagram demands a datagram, or with "" that there is none.
func (r *rig) wantDatagram(u *udp.Sock, want string, from uint16) {
	r.Helper()
	p := make([]byte, 2000)
	n, full, addr, port, e := r.RecvFrom(u, p)
	switch {
	case want == "":
		if e != syscall.EAGAIN {
			r.Fatalf("received %q", p[:n])
		}
	case e != 0 || string(p[:n]) != want || full != n || addr != peerIP || port != from:
		r.Fatalf("received %q from %#x port %d (%v), want %q from port %d", p[:n], addr, port, e, want, from)
	}
}

// A datagram goes to the socket that is connected to its sender, else to the one bound to the address, else to the one
// bound to any.
func TestUDPDemultiplex(t *testing.T) {
	r := newRig(t)
	reuse := stack.Options{ReuseAddr: true}
	open := func(addr uint32, peer uint16) *udp.Sock {
		u, e := r.OpenUDP(addr, 1000, reuse)
		if e != 0 {
			t.Fatal(e)
		}
		if peer != 0 {
			r.ConnectUDP(u, peerIP, peer)
		}
		return u
	}
	any, own, to7, to8 := open(0, 0), open(ourIP, 0), open(0, 7), open(ourIP, 8)
	r.inject(datagram(peerIP, 7, 1000, "seven"))
	r.inject(datagram(peerIP, 8, 1000, "eight"))
	r.inject(datagram(peerIP, 9, 1000, "nine"))
	r.wantDatagram(to7, "seven", 7)
	r.wantDatagram(to8, "eight", 8)
	r.wantDatagram(own, "nine", 9)
	r.CloseUDP(own)
	r.inject(datagram(peerIP, 9, 1000, "again"))
	r.wantDatagram(any, "again", 9)
	r.CloseUDP(any)
	r.inject(datagram(peerIP, 9, 1000, "nobody"))
	r.outIP(wire.ProtoICMP, peerMAC, peerIP)
	for _, u := range []*udp.Sock{to7, to8} {
		r.wantDatagram(u, "", 0)
		r.CloseUDP(u)
	}
	r.quiet()
}

// Sizes: no data, as much as fits, more than the reader wants; and a length that is less than the packet's.
func TestUDPSizes(t *testing.T) {
	r := newRig(t)
	u := r.socket(1000, 0)
	for _, n := range []int{0, 1, 1472} {
		want := string(pattern(0, n))
		r.inject(datagram(peerIP, 7, 1000, want))
		p := make([]byte, 2000)
		if k, full, _, _, e := r.RecvFrom(u, p); e != 0 || full != n || string(p[:k]) != want {
			t.Errorf("%d bytes: received %d of %d (%v)", n, k, full, e)
		}
		if e := r.SendTo(u, []byte(want), peerIP, 7); e != 0 {
			t.Errorf("%d bytes: %v", n, e)
		}
		r.run()
		b := r.outIP(wire.ProtoUDP, peerMAC, peerIP)
		if string(b[wire.UDPLen:]) != want || binary.BigEndian.Uint16(b[4:]) != uint16(wire.UDPLen+n) {
			t.Errorf("%d bytes: sent %d", n, len(b))
		}
	}
	r.inject(datagram(peerIP, 7, 1000, "too long"))
	p := make([]byte, 3)
	if k, full, _, _, e := r.RecvFrom(u, p); e != 0 || k != 3 || full != 8 || string(p) != "too" {
		t.Errorf("received %q, %d of %d (%v)", p, k, full, e)
	}
	r.wantDatagram(u, "", 0) // the rest is lost
	b := datagram(peerIP, 7, 1000, "inside")
	b = append(b, "behind"...)
	binary.BigEndian.PutUint16(b[wire.EthLen+2:], uint16(len(b)-wire.EthLen)) // the IP packet is longer than the datagram
	r.inject(resum(b))
	r.wantDatagram(u, "inside", 7)
}

// A queue is bounded in bytes and in datagrams, and what does not fit is dropped and counted.
func TestUDPQueue(t *testing.T) {
	r := newRig(t)
	u, e := r.OpenUDP(0, 1000, stack.Options{RcvBuf: 10000})
	if e != 0 {
		t.Fatal(e)
	}
	defer r.CloseUDP(u)
	base := r.link.A.InUse()
	for range 30 {
		r.inject(datagram(peerIP, 7, 1000, string(pattern(0, 1000))))
	}
	if n := r.drops(stack.DropQueueFull); n != 20 {
		t.Errorf("%d dropped, want 20", n)
	}
	for range 10 {
		r.wantDatagram(u, string(pattern(0, 1000)), 7)
	}
	r.wantDatagram(u, "", 0)
	for range 1000 {
		r.inject(datagram(peerIP, 7, 1000, ""))
	}
	if n := r.link.A.InUse() - base; n > 128 {
		t.Errorf("%d buffers hold empty datagrams", n)
	}
}

// Broadcasts are received; what is sent to a group is not, as no group is joined.
func TestUDPBroadcast(t *testing.T) {
	r := newRig(t)
	u := r.socket(1000, 0)
	for _, dst := range []uint32{0xffffffff, 0x0a0000ff} {
		b := datagram(peerIP, 7, 1000, "to all")
		copy(b, wire.Broadcast[:])
		binary.BigEndian.PutUint32(b[wire.EthLen+16:], dst)
		b[wire.EthLen+wire.IPv4Len+6], b[wire.EthLen+wire.IPv4Len+7] = 0, 0
		r.inject(resum(b))
		r.wantDatagram(u, "to all", 7)
	}
	b := datagram(peerIP, 7, 1000, "to a group")
	copy(b, []byte{1, 0, 0x5e, 0, 0, 1})
	binary.BigEndian.PutUint32(b[wire.EthLen+16:], 0xe0000001)
	r.inject(resum(b))
	r.wantDatagram(u, "", 0)
	r.quiet()
}

// A ping to all is not answered: it would multiply (RFC 1122 3.2.2.6).
func TestPingBroadcast(t *testing.T) {
	r := newRig(t)
	b := icmp(peerIP, wire.ICMPEcho, 0, 0, []byte("all"))
	copy(b, wire.Broadcast[:])
	binary.BigEndian.PutUint32(b[wire.EthLen+16:], 0x0a0000ff)
	r.inject(resum(b))
	r.quiet()
	bad := icmp(peerIP, wire.ICMPEcho, 0, 0, []byte("bad"))
	bad[len(bad)-1] ^= 1
	r.inject(bad)
	r.inject(icmp(0x0a0000ff, wire.ICMPEcho, 0, 0, nil)) // from nobody
	r.quiet()
}
