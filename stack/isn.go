package stack

import (
	"math/bits"

	"ndpip/tcp"
)

// isn chooses the initial sequence number of a connection (RFC 6528): a clock of 4 µs, and a keyed hash of both
// addresses and ports, so that nobody off the path can guess it while a pair's numbers keep rising.
func (s *Stack) isn(k key) tcp.Seq {
	h := siphash(s.sec[0], s.sec[1], uint64(k.laddr)<<32|uint64(k.raddr), uint64(k.lport)<<16|uint64(k.rport))
	return tcp.Seq(uint32(h) + uint32(s.now/4000))
}

// siphash is SipHash-2-4 (Aumasson and Bernstein, 2012) of the 16 bytes m0, m1: a keyed hash made for short inputs.
func siphash(k0, k1, m0, m1 uint64) uint64 {
	v0, v1 := k0^0x736f6d6570736575, k1^0x646f72616e646f6d
	v2, v3 := k0^0x6c7967656e657261, k1^0x7465646279746573
	round := func() {
		v0 += v1
		v1 = bits.RotateLeft64(v1, 13) ^ v0
		v0 = bits.RotateLeft64(v0, 32)
		v2 += v3
		v3 = bits.RotateLeft64(v3, 16) ^ v2
		v0 += v3
		v3 = bits.RotateLeft64(v3, 21) ^ v0
		v2 += v1
		v1 = bits.RotateLeft64(v1, 17) ^ v2
		v2 = bits.RotateLeft64(v2, 32)
	}
	for _, m := range [3]uint64{m0, m1, 16 << 56} {
		v3 ^= m
		round()
		round()
		v0 ^= m
	}
	v2 ^= 0xff
	for range 4 {
		round()
	}
	return v0 ^ v1 ^ v2 ^ v3
}
