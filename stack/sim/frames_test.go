package sim

import (
	"encoding/binary"
	"testing"
	"time"

	"ndpip/dpdk"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// FuzzFrames feeds a stack in each of its states with whatever the fuzzer makes up: segments that are nearly right,
// other packets, and bytes. In between the application does something, or time passes. The stack must not panic, send
// nothing malformed, and give everything back when all connections are aborted.
func FuzzFrames(f *testing.F) {
	for i := range states {
		f.Add(byte(i), []byte{0, 16, 0, 0, 0, 10})
		var b [64]byte
		for j := 0; j < len(b); j += 8 {
			binary.LittleEndian.PutUint64(b[j:], mix(uint64(i), uint64(j)))
		}
		f.Add(byte(i), b[:])
	}
	f.Fuzz(func(t *testing.T, state byte, b []byte) {
		if len(b) > 2000 {
			t.Skip("long enough")
		}
		v := newLive(t, uint64(state))
		states[int(state)%len(states)].set(v)
		for d := newSource(0, b); len(d.bytes) > 0; {
			v.step(d)
		}
		v.end()
	})
}

// step is one thing that the fuzzer lets happen.
func (v *live) step(d *source) {
	switch d.below(12) {
	case 0, 1, 2, 3, 4:
		v.in(v.madeUp(d))
	case 5:
		v.in(damaged(d, v.madeUp(d)))
	case 6:
		v.in(append(make([]byte, 1), d.take(d.below(256))...))
	case 7:
		v.in(v.packet(d))
	case 8:
		v.in(v.arp(d))
	case 9:
		v.wait(d.duration(time.Microsecond, 100*time.Second))
	default:
		v.act(d)
	}
}

// near draws a number that is close to v, at some distance, or anything.
func (d *source) near(v uint32) uint32 {
	switch d.below(6) {
	case 0, 1:
		return v
	case 2:
		return v + uint32(d.below(4)) - 2
	case 3:
		return v + uint32(d.below(1<<16)) - 1<<15
	case 4:
		return v + 1<<31 + uint32(d.below(3)) - 1
	}
	return uint32(d.below(1 << 32))
}

// take gives the fuzzer's next n bytes, or as many as there are.
func (d *source) take(n int) []byte {
	n = min(n, len(d.bytes))
	b := d.bytes[:n]
	d.bytes = d.bytes[n:]
	return b
}

// madeUp is a segment of the connection under test, more or less.
func (v *live) madeUp(d *source) []byte {
	f := wire.TCPFields{Flags: wire.Flags(d.below(256)), Window: uint16(d.below(1 << 16))}
	if d.one(2) {
		f.Flags = pick(d, wire.ACK, wire.ACK|wire.PSH, wire.FIN|wire.ACK, wire.RST, wire.RST|wire.ACK, wire.SYN)
	}
	f.Seq, f.Ack = d.near(v.seq), d.near(v.got)
	var opts []byte
	if d.one(4) {
		opts = make([]byte, 4*d.below(11))
		copy(opts, d.take(len(opts)))
	}
	return v.segment(f, opts, make([]byte, pick(d, 0, 0, 1, 10, d.below(1460))))
}

// damaged changes bytes of a frame, and its length.
func damaged(d *source, b []byte) []byte {
	for range 1 + d.below(3) {
		b[d.below(len(b))] ^= byte(d.below(256))
	}
	if d.one(4) {
		b = b[:1+d.below(len(b))]
	}
	if d.one(4) {
		b = append(b, d.take(d.below(64))...)
	}
	if d.one(2) && len(b) > 54 { // let the checksums pass
		binary.BigEndian.PutUint16(b[24:], 0)
		binary.BigEndian.PutUint16(b[24:], ^wire.Fold(wire.Sum(b[14:34], 0)))
		wire.SetTCPCheck(b[34:], binary.BigEndian.Uint32(b[26:]), binary.BigEndian.Uint32(b[30:]))
	}
	return b
}

// packet is an ICMP message or a datagram.
func (v *live) packet(d *source) []byte {
	b := make([]byte, 200)
	at := wire.PutEthernet(b, mac(addrA), mac(addrB), wire.TypeIPv4)
	body := b[at+wire.IPv4Len:]
	proto, n := uint8(wire.ProtoICMP), 0
	switch d.below(3) {
	case 0: // what an ICMP error quotes: a packet of the stack's, more or less
		var quote [wire.IPv4Len + wire.TCPLen]byte
		q := wire.PutIPv4(quote[:], addrA, addrB, pick(d, uint8(wire.ProtoTCP), wire.ProtoUDP, wire.ProtoICMP), 40, 0)
		wire.PutTCP(quote[q:], v.theirs, v.port, wire.TCPFields{Seq: d.near(v.isn)}, 0)
		n = wire.PutUnreachable(body, uint8(d.below(16)), quote[:])
		body[0] = pick(d, uint8(wire.ICMPUnreachable), wire.ICMPUnreachable, wire.ICMPTimeExceeded, wire.ICMPParamProblem)
	case 1:
		n = wire.ICMPLen + copy(body[wire.ICMPLen:], d.take(d.below(100)))
		body[0], body[1] = byte(pick(d, wire.ICMPEcho, d.below(256))), byte(d.below(2))
	default:
		data := d.below(100)
		n = wire.UDPLen + data
		proto = wire.ProtoUDP
		wire.PutUDP(body, uint16(d.below(1<<16)), pick(d, uint16(portUDP), portTCP), pick(d, n, n, d.below(200)), 0)
	}
	if proto == wire.ProtoICMP {
		binary.BigEndian.PutUint16(body[2:], 0)
		binary.BigEndian.PutUint16(body[2:], ^wire.Fold(wire.Sum(body[:n], 0)))
	}
	wire.PutIPv4(b[at:], pick(d, uint32(addrB), addrB, uint32(d.below(1<<32))), pick(d, uint32(addrA), addrA, 0x0a0000ff), proto,
		wire.IPv4Len+n, 0)
	return b[:at+wire.IPv4Len+n]
}

// arp is an ARP packet.
func (v *live) arp(d *source) []byte {
	b := make([]byte, wire.EthLen+wire.ARPLen)
	from := pick(d, mac(addrB), mac(3), mac(addrA), wire.Broadcast)
	n := wire.PutEthernet(b, pick(d, mac(addrA), wire.Broadcast), from, wire.TypeARP)
	ip := func() uint32 { return pick(d, uint32(addrA), addrB, 0x0a000003, 0, uint32(d.below(1<<32))) }
	wire.PutARP(b[n:], wire.ARP{Op: uint16(d.below(4)), SenderMAC: from, SenderIP: ip(), TargetIP: ip()})
	return b
}

// act lets the application do something.
func (v *live) act(d *source) {
	if v.c == nil {
		switch d.below(3) {
		case 0:
			v.connect()
		case 1:
			if v.listener != nil {
				v.c = v.Accept(v.listener)
			}
		default:
			if v.listener != nil && v.udp != nil {
				_, _, _, _, _ = v.RecvFrom(v.udp, make([]byte, 100))
				_ = v.SendTo(v.udp, make([]byte, d.below(2000)), addrB, uint16(d.below(1<<16)))
			}
		}
		v.turn()
		return
	}
	up, _, _ := v.c.Status()
	switch d.below(9) {
	case 0, 1:
		_, _ = v.Send(v.c, make([]byte, d.log(1, 20000)))
	case 2, 3:
		_, _ = v.Recv(v.c, make([]byte, d.log(1, 20000)))
	case 4:
		var f [4]dpdk.Frame
		n := v.AllocBufs(f[:])
		for i := range f[:n] {
			f[i].Len = uint32(d.below(int(f[i].Len) + 1))
		}
		sent, _ := v.SendBufs(v.c, f[:n])
		v.FreeBufs(f[sent:n], false)
	case 5:
		var f [4]dpdk.Frame
		n, _ := v.RecvBufs(v.c, f[:])
		v.kept = append(v.kept, f[:n]...)
	case 6:
		if up.Synchronized() && !v.c.FinQueued() {
			v.Shutdown(v.c)
		}
	case 7:
		v.c.SetLinger0(d.one(2))
		v.close()
	default:
		if v.c != nil && d.one(4) {
			v.Abort(v.c)
			v.c = nil
		}
	}
	v.turn()
}

// end aborts everything and checks that nothing is left.
func (v *live) end() {
	v.FreeBufs(v.kept, true)
	if v.c != nil {
		v.Abort(v.c)
	}
	if v.listener != nil {
		v.Unlisten(v.listener)
	}
	if v.udp != nil {
		v.CloseUDP(v.udp)
	}
	v.AbortAll()
	v.wait(5 * time.Minute)
	v.Flush()
	if u := v.Usage(); u.Connections != 0 || u.RingBytes != 0 || u.Unread != 0 {
		v.tb.Errorf("still in use: %+v", u)
	}
	v.link.A.FreeLane(v.worker)
	v.link.A.FreeLane(v.app)
	if n := v.link.A.InUse(); n != 0 {
		v.tb.Errorf("%d buffers have not come back", n)
	}
}

// TestStates checks that the fuzzed stack is in the state that it should be in.
func TestStates(t *testing.T) {
	for _, st := range states {
		v := newLive(t, 1)
		st.set(v)
		if st.want != 0 && (v.c == nil || v.c.State() != st.want) {
			got := tcp.Closed
			if v.c != nil {
				got = v.c.State()
			}
			t.Errorf("%s: the state is %v", st.name, got)
		}
		if n := v.Usage().Connections; st.name == "SYN-RECEIVED" && n != 1 {
			t.Errorf("%s: %d connections", st.name, n)
		}
		v.end()
	}
}
