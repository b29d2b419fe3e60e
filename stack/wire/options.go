package wire

// The kinds of TCP options (RFC 9293 3.1, RFC 7323 2).
const (
	optEnd   = 0
	optNop   = 1
	optMSS   = 2
	optScale = 3
)

// MaxScale is the greatest window scale. A greater one that is received counts as this (RFC 7323 2.3).
const MaxScale = 14

// NoScale in Options means that the sender does not offer window scaling.
const NoScale = -1

// MaxOptions is the greatest length that PutOptions writes.
const MaxOptions = 8

// Options are the options of a SYN or SYN-ACK that the stack knows. They mean nothing in other segments.
type Options struct {
	MSS   uint16 // 0: not there
	Scale int8   // 0 to MaxScale, or NoScale
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
		}
		b = b[n:]
	}
	return o, OK
}

// PutOptions writes the options of a SYN and returns their length, a multiple of 4: 4 for an MSS other than 0, and 4
// for a scale other than NoScale.
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
	return n
}
