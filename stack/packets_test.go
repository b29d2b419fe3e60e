package stack_test

import (
	"encoding/binary"

	"ndpip/stack/wire"
)

// Frames of the peer's that are not TCP, and what the stack sends of that kind.

// ip is an IPv4 packet from an address to the stack, in a frame from the peer.
func ip(src uint32, proto uint8, payload []byte) []byte {
	n := wire.EthLen + wire.IPv4Len
	b := make([]byte, n+len(payload))
	wire.PutEthernet(b, ourMAC, peerMAC, wire.TypeIPv4)
	wire.PutIPv4(b[wire.EthLen:], src, ourIP, proto, len(b)-wire.EthLen, 0)
	copy(b[n:], payload)
	return b
}

// resum computes the IPv4 header's checksum anew, after a field was changed.
func resum(frame []byte) []byte {
	h := frame[wire.EthLen : wire.EthLen+wire.IPv4Len]
	binary.BigEndian.PutUint16(h[10:], 0)
	binary.BigEndian.PutUint16(h[10:], ^wire.Fold(wire.Sum(h, 0)))
	return frame
}

// datagram is a UDP datagram from the peer to the stack.
func datagram(src uint32, sport, dport uint16, data string) []byte {
	b := make([]byte, wire.UDPLen+len(data))
	wire.PutUDP(b, sport, dport, len(b), 0)
	copy(b[wire.UDPLen:], data)
	binary.BigEndian.PutUint16(b[6:], wire.UDPCheck(wire.Sum(b, wire.PseudoHeader(src, ourIP, wire.ProtoUDP, len(b)))))
	return ip(src, wire.ProtoUDP, b)
}

// icmp is an ICMP message from the peer.
func icmp(src uint32, typ, code uint8, rest uint32, data []byte) []byte {
	b := make([]byte, wire.ICMPLen+len(data))
	b[0], b[1] = typ, code
	binary.BigEndian.PutUint32(b[4:], rest)
	copy(b[wire.ICMPLen:], data)
	binary.BigEndian.PutUint16(b[2:], ^wire.Fold(wire.Sum(b, 0)))
	return ip(src, wire.ProtoICMP, b)
}

// unreachable is an ICMP error about a frame that the stack has sent.
func unreachable(code uint8, about []byte) []byte {
	return icmp(peerIP, wire.ICMPUnreachable, code, 0, about[wire.EthLen:wire.EthLen+wire.IPv4Len+8])
}

// arp is an ARP packet from the peer's side.
func arp(op uint16, mac wire.MAC, sender, target uint32) []byte {
	to := ourMAC
	if op == wire.ARPRequest {
		to = wire.Broadcast
	}
	b := make([]byte, wire.EthLen+wire.ARPLen)
	n := wire.PutEthernet(b, to, mac, wire.TypeARP)
	wire.PutARP(b[n:], wire.ARP{Op: op, SenderMAC: mac, SenderIP: sender, TargetMAC: to, TargetIP: target})
	return b
}

// outARP demands an ARP packet of the stack's.
func (r *rig) outARP(op uint16, to wire.MAC, target uint32) {
	r.Helper()
	b := r.next()
	typ, _ := wire.ParseEthernet(b)
	if typ != wire.TypeARP {
		r.Fatalf("sent %s, want ARP", r.show(b))
	}
	a, drop := wire.ParseARP(b[wire.EthLen:])
	if drop != wire.OK || a.Op != op || a.TargetIP != target || a.SenderIP != ourIP || a.SenderMAC != ourMAC ||
		wire.EthDst(b) != to || op == wire.ARPReply && a.TargetMAC != to {
		r.Fatalf("sent %s, want operation %d about %#x to %v", r.show(b), op, target, to)
	}
}

// outIP demands an IPv4 packet of the stack's and gives its payload.
func (r *rig) outIP(proto uint8, to wire.MAC, dst uint32) []byte {
	r.Helper()
	b := r.next()
	if typ, _ := wire.ParseEthernet(b); typ != wire.TypeIPv4 {
		r.Fatalf("sent %s, want IPv4", r.show(b))
	}
	h, _ := wire.ParseIPv4(b[wire.EthLen:], false)
	if h.Proto() != proto || wire.EthDst(b) != to || h.Dst() != dst {
		r.Fatalf("sent %s to %v, want protocol %d to %#x at %v", r.show(b), wire.EthDst(b), proto, dst, to)
	}
	return b[wire.EthLen+wire.IPv4Len : wire.EthLen+h.Len()]
}
