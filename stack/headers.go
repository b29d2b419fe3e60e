package stack

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"

	"ndpip/dpdk"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// Frame layout of a TCP segment without options: Ethernet 14, IPv4 20, TCP 20 bytes, then the payload.
const (
	ethLen = 14
	ipLen  = 20
	tcpLen = 20
	udpLen = 8
	hdrLen = ethLen + ipLen + tcpLen
	// lead is left free in front of a data segment's frame, so that its payload begins on a cache line: who fills a
	// buffer in place may count on that. For the copying calls it makes no difference here (docs/performance.md).
	lead = 64 - hdrLen
)

// sumMode says who fills in the checksums of TCP and UDP.
type sumMode uint8

const (
	sumSoft sumMode = iota // we do
	sumPort                // the port does
	sumOff                 // nobody does: the wire is memory
)

// words are the headers of a frame as seven words: 54 bytes, and the first two of the payload, which is written later.
type words [7]uint64

func wordsAt(addr uintptr) *words { return (*words)(dpdk.Pointer(addr)) }

// sameFlow says whether two frames' headers have the same protocol, addresses and ports.
func sameFlow(a, b *words) bool {
	return (a[2]^b[2])>>56 == 0 && (a[3]^b[3])>>16 == 0 && (a[4]^b[4])<<16 == 0
}

func bswap16(v uint16) uint64 { return uint64(bits.ReverseBytes16(v)) }

func fold16(s uint64) uint64 {
	s = s>>32 + s&0xffff_ffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return s>>16 + s&0xffff
}

// template fills c.Hdr. What differs from frame to frame is left 0; the two checksum fields hold the folded sums of
// what does not differ: of the IPv4 header, and of the pseudo-header without its length.
func (s *Stack) template(c *tcp.Conn, ip Service, dst MAC) {
	var b [8 * len(c.Hdr)]byte
	copy(b[0:], dst[:])
	copy(b[6:], s.mac[:])
	binary.BigEndian.PutUint16(b[12:], 0x0800)
	b[14], b[15] = 0x45, ip.TOS
	// The identification stays 0: the datagram is atomic, DF is set (RFC 6864 4.1).
	binary.BigEndian.PutUint16(b[20:], 0x4000)
	b[22], b[23] = ip.ttl(), wire.ProtoTCP
	binary.BigEndian.PutUint32(b[26:], c.Laddr)
	binary.BigEndian.PutUint32(b[30:], c.Raddr)
	binary.BigEndian.PutUint16(b[34:], c.Lport)
	binary.BigEndian.PutUint16(b[36:], c.Rport)
	binary.LittleEndian.PutUint16(b[24:], uint16(fold16(wire.Sum(b[14:34], 0))))
	binary.LittleEndian.PutUint16(b[50:], uint16(fold16(wire.PseudoHeader(c.Laddr, c.Raddr, wire.ProtoTCP, 0))))
	for i := 1; i < len(c.Hdr); i++ {
		c.Hdr[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	atomic.StoreUint64(&c.Hdr[0], binary.LittleEndian.Uint64(b[:]))
}

// setMAC changes the destination of a template that both threads may be reading: word 0 holds all of it.
func setMAC(c *tcp.Conn, dst MAC) {
	old := atomic.LoadUint64(&c.Hdr[0])
	w := old &^ (1<<48 - 1)
	for i, b := range dst {
		w |= uint64(b) << (8 * i)
	}
	if w != old { // or the line would be taken from the application's core for nothing
		atomic.StoreUint64(&c.Hdr[0], w)
	}
}

// headers writes the headers of one segment: n bytes of TCP options and payload, whose sum is sum (mode sumSoft only).
// off is the TCP header's length in 32-bit words.
func headers(w *words, h *[7]uint64, seq, ack tcp.Seq, off uint8, flags uint8, wnd uint16, n int, mode sumMode, sum uint64) {
	l4 := bswap16(uint16(tcpLen + n))
	total := bswap16(uint16(ipLen + tcpLen + n))
	w[0] = atomic.LoadUint64(&h[0])
	w[1] = h[1]
	w[2] = h[2] | total
	ip := h[3]&0xffff + total
	ip = ip>>16 + ip&0xffff
	w[3] = h[3]&^0xffff | (^ip & 0xffff)
	q := uint64(bits.ReverseBytes32(uint32(seq)))
	w4 := h[4] | q<<48
	w5 := q>>16 | uint64(bits.ReverseBytes32(uint32(ack)))<<16 | uint64(off)<<52 | uint64(flags)<<56
	w[4], w[5] = w4, w5
	win := bswap16(wnd)
	var check uint64
	switch mode {
	case sumPort:
		check = fold16(h[6]>>16&0xffff + l4)
	case sumSoft:
		s, c := bits.Add64(sum, w5, 0)
		s, c = bits.Add64(s, w4>>16, c) // ports and the first half of seq; 34 is not a multiple of 8
		check = ^fold16add(s+c, h[6]>>16&0xffff+l4+win) & 0xffff
	case sumOff:
	}
	w[6] = win | check<<16
}

// fold16add folds a 64-bit sum and a small one.
func fold16add(s, t uint64) uint64 { return fold16(s>>32 + s&0xffff_ffff + t) }

// stamp writes the headers h, made for sequence number 0 without a checksum of ours, with another sequence number.
func (h *words) stamp(w *words, seq tcp.Seq) {
	q := uint64(bits.ReverseBytes32(uint32(seq)))
	w[0], w[1], w[2], w[3] = h[0], h[1], h[2], h[3]
	w[4], w[5], w[6] = h[4]|q<<48, h[5]|q>>16, h[6]
}
