package wire

// The kinds of TCP options (RFC 9293 3.1, RFC 7323 2).
const (
	optEnd    = 0
	optNop    = 1
	optMSS    = 2
	optScale  = 3
	optSackOK = 4
	optSack   = 5
)

// MaxScale is the greatest window scale. A greater one that is received counts as this (RFC 7323 2.3).
const MaxScale = 14

// NoScale in Options means that the sender does not offer window scaling.
const NoScale = -1

// MaxOptions is the greatest length that PutOptions writes.
const MaxOptions = 12

// Options are the options of a SYN or SYN-ACK that the stack knows. They mean nothing in other segments.
type Options struct {
	MSS    uint16 // 0: not there
	Scale  int8   // 0 to MaxScale, or NoScale
	SackOK bool   // selective acknowledgements are permitted
}

// ParseOptions reads the options of a SYN, the bytes between TCPLen and HdrLen. Kinds that it does not know are passed
// over. The reason is TCPOptions if a length is impossible, be it the known one of a kind or one that leads outside;
// o holds what came before. Of a kind that comes twice the last one counts.
func ParseOptions(b []byte) (o Options, reason Drop) {
	o.Scale = NoScale
	for len(b) > 0 {
		switch b[0] {
		case optEnd:
			return o, OK
		case optNop:
			b = b[1:]
			continue
		}
		if len(b) < 2 || b[1] < 2 || int(b[1]) > len(b) {
			return o, TCPOptions
		}
		n := int(b[1])
		switch b[0] {
		case optMSS:
			if n != 4 {
				return o, TCPOptions
			}
			o.MSS = be.Uint16(b[2:])
		case optScale:
			if n != 3 {
				return o, TCPOptions
			}
			o.Scale = int8(min(b[2], MaxScale))
		case optSackOK:
			if n != 2 {
				return o, TCPOptions
			}
			o.SackOK = true
		}
		b = b[n:]
	}
	return o, OK
}

// MaxSacks is how many blocks fit into the options of a segment (RFC 2018 3).
const MaxSacks = 4

// ParseSack reads the selective acknowledgements of a segment that is no SYN: start and end of each block, as they stand
// there. Malformed options end the list.
func ParseSack(b []byte) (blocks [MaxSacks][2]uint32, n int) {
	for len(b) > 0 && b[0] != optEnd {
		if b[0] == optNop {
			b = b[1:]
			continue
		}
		if len(b) < 2 || b[1] < 2 || int(b[1]) > len(b) {
			break
		}
		if b[0] == optSack {
			for s := b[2:b[1]]; len(s) >= 8 && n < MaxSacks; s = s[8:] {
				blocks[n] = [2]uint32{be.Uint32(s), be.Uint32(s[4:])}
				n++
			}
		}
		b = b[b[1]:]
	}
	return blocks, n
}

// MaxSackOptions is the greatest length that PutSack writes.
const MaxSackOptions = 4 + 8*MaxSacks

// PutSack writes blocks of a selective acknowledgement and returns their length: 4 and 8 for each.
func PutSack(b []byte, blocks [][2]uint32) int {
	if len(blocks) == 0 {
		return 0
	}
	be.PutUint32(b, optNop<<24|optNop<<16|optSack<<8|uint32(2+8*len(blocks)))
	n := 4
	for _, s := range blocks {
		be.PutUint32(b[n:], s[0])
		be.PutUint32(b[n+4:], s[1])
		n += 8
	}
	return n
}

// PutOptions writes the options of a SYN and returns their length, a multiple of 4: 4 for an MSS other than 0, 4 for a
// scale other than NoScale, and 4 for SackOK.
func PutOptions(b []byte, o Options) int {
	n := 0
	if o.MSS != 0 {
		be.PutUint32(b, optMSS<<24|4<<16|uint32(o.MSS))
		n = 4
	}
	if o.Scale >= 0 {
		be.PutUint32(b[n:], optNop<<24|optScale<<16|3<<8|uint32(min(o.Scale, MaxScale)))
		n += 4
	}
	if o.SackOK {
		be.PutUint32(b[n:], optNop<<24|optNop<<16|optSackOK<<8|2)
		n += 4
	}
	return n
}
