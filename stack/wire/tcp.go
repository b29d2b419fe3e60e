package wire

// Flags are the control bits of a TCP header (RFC 9293 3.1), as they stand in its byte 13.
type Flags uint8

// The control bits.
const (
	FIN Flags = 1 << iota
	SYN
	RST
	PSH
	ACK
	URG
	ECE
	CWR
)

// TCP is the fixed part of a TCP header (RFC 9293 3.1), where it lies in the frame.
type TCP [TCPLen]byte

// SrcPort is the sender's port.
func (h *TCP) SrcPort() uint16 { return be.Uint16(h[0:]) }

// DstPort is the receiver's port.
func (h *TCP) DstPort() uint16 { return be.Uint16(h[2:]) }

// Seq is SEG.SEQ.
func (h *TCP) Seq() uint32 { return be.Uint32(h[4:]) }

// Ack is SEG.ACK.
func (h *TCP) Ack() uint32 { return be.Uint32(h[8:]) }

// HdrLen is the length of the header with its options, in bytes: where the data start.
func (h *TCP) HdrLen() int { return int(h[12] >> 4 * 4) }

// Flags are the control bits.
func (h *TCP) Flags() Flags { return Flags(h[13]) }

// Window is SEG.WND as it stands there, not scaled.
func (h *TCP) Window() uint16 { return be.Uint16(h[14:]) }

// ParseTCP checks the TCP header at the start of b, the packet's whole payload and no more. The options lie between
// TCPLen and HdrLen (ParseOptions); the checksum is checked by TCPGood. h is nil if b is shorter than a header.
func ParseTCP(b []byte) (h *TCP, reason Drop) {
	if len(b) < TCPLen {
		return nil, TCPShort
	}
	h = (*TCP)(b)
	if n := h.HdrLen(); n < TCPLen || n > len(b) {
		return h, TCPOffset
	}
	return h, OK
}

// TCPGood says whether a segment's checksum is right. b is the header, the options and the data.
func TCPGood(b []byte, src, dst uint32) bool {
	return Fold(Sum(b, PseudoHeader(src, dst, ProtoTCP, len(b)))) == Good
}

// TCPFields is what PutTCP writes that changes from segment to segment.
type TCPFields struct {
	Seq, Ack uint32
	Window   uint16 // as it stands there, not scaled
	Flags    Flags
}

// PutTCP writes a TCP header, with 0 for its checksum and urgent pointer, and returns TCPLen. options is the length of
// the options that the caller puts behind it, a multiple of 4.
func PutTCP(b []byte, srcPort, dstPort uint16, f TCPFields, options int) int {
	h := (*TCP)(b)
	be.PutUint32(h[0:], uint32(srcPort)<<16|uint32(dstPort))
	be.PutUint32(h[4:], f.Seq)
	be.PutUint32(h[8:], f.Ack)
	be.PutUint32(h[12:], uint32(TCPLen+options)<<26|uint32(f.Flags)<<16|uint32(f.Window))
	be.PutUint32(h[16:], 0)
	return TCPLen
}

// SetTCPCheck computes the checksum of the segment b (header, options and data) and writes it into its field.
func SetTCPCheck(b []byte, src, dst uint32) {
	be.PutUint16(b[16:], 0)
	be.PutUint16(b[16:], ^Fold(Sum(b, PseudoHeader(src, dst, ProtoTCP, len(b)))))
}

// SetPartialCheck writes what a port that completes the checksum wants in the field: the folded, not complemented sum
// of the pseudo-header. b is the header and all that follows it; field is where its checksum is, 16 in TCP, 6 in UDP.
func SetPartialCheck(b []byte, field int, src, dst uint32, proto uint8) {
	be.PutUint16(b[field:], Fold(PseudoHeader(src, dst, proto, len(b))))
}
