package wire

import (
	"encoding/binary"
	"math/bits"
)

// sumGo is Sum in plain Go: eight bytes per addition, in two chains that the processor works on at the same time. The
// carries out of a chain are counted aside, so that they do not lengthen it.
func sumGo(b []byte, s uint64) uint64 {
	le := binary.LittleEndian
	var t, n, c, d uint64
	i := 0
	for ; i <= len(b)-64; i += 64 {
		p := b[i : i+64 : i+64]
		s, c = bits.Add64(s, le.Uint64(p), 0)
		s, c = bits.Add64(s, le.Uint64(p[8:]), c)
		s, c = bits.Add64(s, le.Uint64(p[16:]), c)
		s, c = bits.Add64(s, le.Uint64(p[24:]), c)
		n += c
		t, d = bits.Add64(t, le.Uint64(p[32:]), 0)
		t, d = bits.Add64(t, le.Uint64(p[40:]), d)
		t, d = bits.Add64(t, le.Uint64(p[48:]), d)
		t, d = bits.Add64(t, le.Uint64(p[56:]), d)
		n += d
	}
	b = b[i:]
	if len(b) >= 32 {
		s, c = bits.Add64(s, le.Uint64(b), 0)
		s, c = bits.Add64(s, le.Uint64(b[8:]), c)
		s, c = bits.Add64(s, le.Uint64(b[16:]), c)
		s, c = bits.Add64(s, le.Uint64(b[24:]), c)
		n += c
		b = b[32:]
	}
	if len(b) >= 16 {
		t, d = bits.Add64(t, le.Uint64(b), 0)
		t, d = bits.Add64(t, le.Uint64(b[8:]), d)
		n += d
		b = b[16:]
	}
	if len(b) >= 8 {
		s, c = bits.Add64(s, le.Uint64(b), 0)
		n += c
		b = b[8:]
	}
	s, c = bits.Add64(s, tail(b), 0)
	s, c = bits.Add64(s, t, c)
	s, c = bits.Add64(s, n, c)
	return s + c
}

// copySumGo is CopySum in plain Go; dst is as long as src. Go's copy moves 32 bytes at a time where Go code moves eight, so
// two passes, the second over what the first left in the nearest cache, take 2/3 of the time of one pass (measured from
// 64 to 9000 bytes). The vector code of sum_amd64.s does it in one.
func copySumGo(dst, src []byte) uint64 {
	copy(dst, src)
	return sumGo(src, 0)
}
