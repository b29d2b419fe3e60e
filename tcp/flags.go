package tcp

// Control bits of a segment (RFC 9293 3.1).
const (
	FIN uint8 = 1 << iota
	SYN
	RST
	PSH
	ACK
	URG
	ECE
	CWR
)

// Segment is one received segment: the header as numbers, the payload as a ring entry.
type Segment struct {
	Seq, Ack Seq
	Wnd      uint16 // as on the wire, not scaled
	Flags    uint8
	Len      uint32  // payload bytes
	Handle   uintptr // the buffer
	Addr     uintptr // the payload's first byte
	Opts     *Options
}

// seqLen is the room that the segment takes in sequence space (SEG.LEN): payload, SYN and FIN.
func (s *Segment) seqLen() uint32 {
	n := s.Len
	if s.Flags&SYN != 0 {
		n++
	}
	if s.Flags&FIN != 0 {
		n++
	}
	return n
}

// Options are the options that this stack knows (RFC 9293 3.7.1, RFC 7323 2.2, RFC 2018).
type Options struct {
	MSS      uint16 // 0: not given
	WndScale int8   // -1: not given; at most 14
	SackOK   bool   // selective acknowledgements are permitted (RFC 2018 2)

	// In segments that are no SYN, and only for connections that have agreed on them: Sacks blocks.
	Sack  [4][2]Seq
	Sacks int
}
