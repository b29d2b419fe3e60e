package wire

import (
	"encoding/binary"
	"math/bits"
)

// The Internet checksum (RFC 1071).
//
// A running sum is a uint64 that holds the one's complement sum of the data's 16-bit words as a little-endian machine
// reads them; only Fold turns it into network order. One's complement addition does not mind (RFC 1071 2(B)), and
// neither does it mind that eight bytes are added at once: 2^64 is 1 modulo 65535, just as 2^16 is, as long as each
// carry out of the top comes in again at the bottom. A sum is 0 only if all data were 0.
//
// Sum and CopySum come down to sum and copySum: vector code on amd64 (sum_amd64.s), else plain Go (sum.go).

// Sum adds the bytes of b to a running sum; initial is 0, or what has been summed so far. If b has an odd number of
// bytes, a zero byte is thought after it, so b has to be the last part, or the next part be added with Join.
func Sum(b []byte, initial uint64) uint64 { return sum(b, initial) }

// CopySum copies src to dst and returns the sum of what it copied, as Sum(src, 0) would. It panics if dst is shorter
// than src. The two must not overlap.
func CopySum(dst, src []byte) uint64 { return copySum(dst[:len(src)], src) }

// Join adds the sum of a part to a running sum. offset is where the part starts in the whole: at an odd offset its
// bytes change places (RFC 1071 2(B)), which is a rotation by one byte.
func Join(total, part uint64, offset int) uint64 {
	return add(total, bits.RotateLeft64(part, (offset&1)*8))
}

// Fold is a running sum as the 16-bit number in network order, not complemented. What goes into a header is ^Fold.
// Over data that contain their own right checksum it is 0xFFFF.
func Fold(sum uint64) uint16 { return bits.ReverseBytes16(fold(sum)) }

// fold makes 16 bits of a sum and leaves their order as it is.
func fold(sum uint64) uint16 {
	sum = sum>>32 + sum&0xffff_ffff
	sum = sum>>32 + sum&0xffff_ffff
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	return uint16(sum)
}

// Good is what Fold gives over data that contain their own right checksum.
const Good = 0xffff

// PseudoHeader is the sum of the header that TCP and UDP are thought to have in front of their own (RFC 9293 3.1,
// RFC 768). length is the bytes of the transport header and its data.
func PseudoHeader(src, dst uint32, proto uint8, length int) uint64 {
	return uint64(bits.ReverseBytes32(src)) + uint64(bits.ReverseBytes32(dst)) +
		uint64(bits.ReverseBytes16(uint16(length))) + uint64(proto)<<8
}

// Update is a checksum field after one 16-bit word that it covers changed from old to new (RFC 1624, equation 3).
func Update(check, old, new uint16) uint16 {
	s := uint32(^check) + uint32(^old) + uint32(new)
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return ^uint16(s)
}

// add is one's complement addition of 64 bits.
func add(a, b uint64) uint64 {
	s, c := bits.Add64(a, b, 0)
	return s + c // does not carry again: with a carry, s is at most 2^64-2
}

// tail is up to seven bytes as a little-endian word.
func tail(b []byte) uint64 {
	switch {
	case len(b) >= 4:
		// The last four bytes overlap the first four, and the shift moves out what they have in common.
		return uint64(binary.LittleEndian.Uint32(b)) |
			uint64(binary.LittleEndian.Uint32(b[len(b)-4:]))>>(8*uint(8-len(b))&63)<<32
	case len(b) >= 2:
		return uint64(binary.LittleEndian.Uint16(b)) | uint64(b[len(b)-1])<<(8*uint(len(b)-1)&63)
	case len(b) == 1:
		return uint64(b[0])
	}
	return 0
}
