package wire

// The ICMP messages (RFC 792) that a host has a use for.
const (
	ICMPEchoReply    = 0
	ICMPUnreachable  = 3
	ICMPEcho         = 8
	ICMPTimeExceeded = 11
	ICMPParamProblem = 12
)

// The codes of ICMPUnreachable that are told apart (RFC 792, RFC 1122 3.2.2.1).
const (
	UnreachNet      = 0
	UnreachHost     = 1
	UnreachProtocol = 2
	UnreachPort     = 3
	UnreachFragment = 4 // fragmentation needed; the next hop's MTU is Rest & 0xFFFF (RFC 1191 4)
)

// ICMP is the header of an ICMP message.
type ICMP struct {
	Type, Code uint8
	Rest       uint32 // bytes 4 to 7: identifier and sequence number of an echo, the MTU of UnreachFragment
}

// ParseICMP reads an ICMP message; b is the packet's whole payload and no more. The checksum is checked.
func ParseICMP(b []byte) (h ICMP, reason Drop) {
	if len(b) < ICMPLen {
		return h, ICMPShort
	}
	if Fold(Sum(b, 0)) != Good {
		return h, ICMPChecksum
	}
	return ICMP{Type: b[0], Code: b[1], Rest: be.Uint32(b[4:])}, OK
}

// Quote is what an ICMP error quotes of the packet that it is about, one that this host sent.
type Quote struct {
	Src, Dst         uint32
	Proto            uint8 // ProtoTCP or ProtoUDP
	SrcPort, DstPort uint16
	Seq              uint32 // of TCP: to be between SND.UNA and SND.NXT, or the error is a forgery (RFC 5927 4)
}

// ParseQuote reads the packet that an ICMP error quotes: its IP header and at least 8 bytes (RFC 792). msg is the
// message as ParseICMP took it. The quoted lengths and checksums are not checked: routers change and cut them.
func ParseQuote(msg []byte) (q Quote, reason Drop) {
	if len(msg) < ICMPLen+IPv4Len+8 {
		return q, ICMPQuote
	}
	b := msg[ICMPLen:]
	hdr := int(b[0]&15) * 4
	if b[0]>>4 != 4 || hdr < IPv4Len || len(b) < hdr+8 {
		return q, ICMPQuote
	}
	if be.Uint16(b[6:])&fragmentMask&^0x2000 != 0 { // not the first fragment: no ports in it
		return q, ICMPQuote
	}
	q = Quote{Src: be.Uint32(b[12:]), Dst: be.Uint32(b[16:]), Proto: b[9]}
	if q.Proto != ProtoTCP && q.Proto != ProtoUDP {
		return q, ICMPQuote
	}
	b = b[hdr:]
	q.SrcPort, q.DstPort = be.Uint16(b), be.Uint16(b[2:])
	if q.Proto == ProtoTCP {
		q.Seq = be.Uint32(b[4:])
	}
	return q, OK
}

// PutEchoReply writes the answer to the echo request msg, an ICMP message that ParseICMP accepted, and returns its
// length, which is that of msg. The data go back as they came (RFC 1122 3.2.2.6). b may be msg itself.
func PutEchoReply(b, msg []byte) int {
	n := copy(b[:len(msg)], msg)
	old := be.Uint16(b)
	b[0] = ICMPEchoReply
	be.PutUint16(b[2:], Update(be.Uint16(b[2:]), old, be.Uint16(b)))
	return n
}

// MaxUnreachable is the greatest length that PutUnreachable writes.
const MaxUnreachable = ICMPLen + IPv4Len + 8

// PutUnreachable writes a Destination Unreachable message about packet, and returns its length. packet starts with its
// IPv4 header; that header and at most 8 bytes behind it are quoted (RFC 792). The caller sees to it that packet is
// one that may be answered at all: whole, not itself ICMP, and from one host to one host (RFC 1122 3.2.2).
func PutUnreachable(b []byte, code uint8, packet []byte) int {
	quote := packet[:min(len(packet), IPv4Len+8)]
	n := ICMPLen + len(quote)
	b = b[:n]
	b[0], b[1] = ICMPUnreachable, code
	clear(b[2:ICMPLen])
	copy(b[ICMPLen:], quote)
	be.PutUint16(b[2:], ^Fold(Sum(b, 0)))
	return n
}
