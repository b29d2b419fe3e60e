package wire

// UDP is a UDP header (RFC 768), where it lies in the frame. The data lie between UDPLen and Len.
type UDP [UDPLen]byte

// SrcPort is the sender's port, 0 if it wants no answer.
func (h *UDP) SrcPort() uint16 { return be.Uint16(h[0:]) }

// DstPort is the receiver's port.
func (h *UDP) DstPort() uint16 { return be.Uint16(h[2:]) }

// Len is the length of header and data, in bytes.
func (h *UDP) Len() int { return int(be.Uint16(h[4:])) }

// ParseUDP checks the UDP header at the start of b, the packet's whole payload. Bytes of b beyond Len are not the
// datagram's. The checksum is checked by UDPGood. h is nil if b is shorter than a header.
func ParseUDP(b []byte) (h *UDP, reason Drop) {
	if len(b) < UDPLen {
		return nil, UDPShort
	}
	h = (*UDP)(b)
	if n := h.Len(); n < UDPLen || n > len(b) {
		return h, UDPLength
	}
	return h, OK
}

// UDPGood says whether a datagram's checksum is right, or not there. b is the header and the data, Len bytes.
func UDPGood(b []byte, src, dst uint32) bool {
	return be.Uint16(b[6:]) == 0 || Fold(Sum(b, PseudoHeader(src, dst, ProtoUDP, len(b)))) == Good
}

// PutUDP writes a UDP header and returns UDPLen. length is that of header and data. check goes into the checksum field
// as it is: 0 for none, Fold of the pseudo-header if the port is to complete it, or what UDPCheck gives.
func PutUDP(b []byte, srcPort, dstPort uint16, length int, check uint16) int {
	_ = b[UDPLen-1]
	be.PutUint16(b, srcPort)
	be.PutUint16(b[2:], dstPort)
	be.PutUint16(b[4:], uint16(length))
	be.PutUint16(b[6:], check)
	return UDPLen
}

// UDPCheck is the checksum of a datagram, from the sum of its header (with 0 in the field), its data and the
// pseudo-header. A sum of 0 is sent as 0xFFFF, as 0 would say that there is none.
func UDPCheck(sum uint64) uint16 {
	if c := ^Fold(sum); c != 0 {
		return c
	}
	return 0xffff
}
