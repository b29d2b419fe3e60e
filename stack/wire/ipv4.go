package wire

import (
	"encoding/binary"
	"math/bits"
	"net/netip"
)

// The protocols in an IPv4 packet that are told apart.
const (
	ProtoICMP = 1
	ProtoTCP  = 6
	ProtoUDP  = 17
)

// TTL is the time to live of what is sent (RFC 1700 recommends 64).
const TTL = 64

const (
	dontFragment = 0x4000
	fragmentMask = 0x3fff // more fragments, and the offset
)

// IPv4 is an IPv4 header without options, where it lies in the frame. Its fields are read from there when they are asked
// for: filling a struct first, and copying it, was measured at four times the cost. The payload lies between IPv4Len
// and Len.
type IPv4 [IPv4Len]byte

// Src is the source address.
func (h *IPv4) Src() uint32 { return be.Uint32(h[12:]) }

// Dst is the destination address.
func (h *IPv4) Dst() uint32 { return be.Uint32(h[16:]) }

// Len is the total length: header and payload, in bytes.
func (h *IPv4) Len() int { return int(be.Uint16(h[2:])) }

// Proto is the protocol of the payload.
func (h *IPv4) Proto() uint8 { return h[9] }

// ParseIPv4 checks the IPv4 header (RFC 791) at the start of b, which goes on at least to the end of the packet. verify
// is false if the port has checked the header checksum already. h is nil if b is shorter than a header.
//
// The time to live is not looked at: a host accepts what reaches it (RFC 1122 3.2.1.7).
func ParseIPv4(b []byte, verify bool) (h *IPv4, reason Drop) {
	if len(b) < IPv4Len {
		return nil, IPShort
	}
	h = (*IPv4)(b)
	if h[0] != 4<<4|5 {
		return h, badStart(h[0])
	}
	if n := h.Len(); n < IPv4Len || n > len(b) {
		return h, IPLength
	}
	if be.Uint16(h[6:])&fragmentMask != 0 {
		return h, IPFragment
	}
	if verify && Fold(headerSum(h)) != Good {
		return h, IPChecksum
	}
	return h, OK
}

// badStart is what is wrong with a first byte that is not version 4 and five words.
func badStart(b byte) Drop {
	switch {
	case b>>4 != 4:
		return IPVersion
	case b&15 < 5:
		return IPHeaderLen
	}
	return IPOptions
}

// PutIPv4 writes an IPv4 header without options and with its checksum, and returns IPv4Len. length is the total
// length. The packet must not be fragmented on its way, so that its id means nothing to others (RFC 6864 4.1) and
// may be any number.
func PutIPv4(b []byte, src, dst uint32, proto uint8, length int, id uint16) int {
	h := (*IPv4)(b)
	be.PutUint32(h[0:], 4<<28|5<<24|uint32(uint16(length)))
	be.PutUint32(h[4:], uint32(id)<<16|dontFragment)
	be.PutUint32(h[8:], TTL<<24|uint32(proto)<<16)
	be.PutUint32(h[12:], src)
	be.PutUint32(h[16:], dst)
	be.PutUint16(h[10:], ^Fold(headerSum(h)))
	return IPv4Len
}

// SetService changes the type of service and the time to live of a header that PutIPv4 has written.
func SetService(b []byte, tos, ttl uint8) {
	h := (*IPv4)(b)
	h[1], h[8] = tos, ttl
	be.PutUint16(h[10:], 0)
	be.PutUint16(h[10:], ^Fold(headerSum(h)))
}

// headerSum is Sum(h[:], 0).
func headerSum(h *IPv4) uint64 {
	s, c := bits.Add64(binary.LittleEndian.Uint64(h[0:]), binary.LittleEndian.Uint64(h[8:]), 0)
	s, c = bits.Add64(s, uint64(binary.LittleEndian.Uint32(h[16:])), c)
	return s + c
}

// Net is a host's address and the mask of its network.
type Net struct{ Addr, Mask uint32 }

// NewNet is the Net of an address with prefix length, such as 10.0.0.1/24.
func NewNet(p netip.Prefix) Net {
	return Net{FromAddr(p.Addr()), uint32(0xffff_ffff) << uint(32-max(p.Bits(), 0))}
}

// OnLink says whether an address lies in the host's own network.
func (n Net) OnLink(a uint32) bool { return (a^n.Addr)&n.Mask == 0 }

// IsBroadcast says whether a packet to dst is for all hosts: 255.255.255.255, or the broadcast address of the network.
// Networks of one or two hosts have none (RFC 3021).
func (n Net) IsBroadcast(dst uint32) bool {
	return dst == 0xffff_ffff || n.OnLink(dst) && dst|n.Mask == 0xffff_ffff && n.Mask < 0xffff_fffe
}

// BadSource says whether no packet can come from src (RFC 1122 3.2.1.3): this host itself, network 0, loopback,
// multicast and the reserved class E, which has the broadcast address in it, and the first and last address of the
// host's own network. Whatever answers such a packet would answer a forgery.
func (n Net) BadSource(src uint32) bool {
	if src >= 224<<24 || src>>24 == 0 || src>>24 == 127 || src == n.Addr {
		return true
	}
	host := src &^ n.Mask
	return n.OnLink(src) && n.Mask < 0xffff_fffe && (host == 0 || host == ^n.Mask)
}

// Good says whether the header's checksum is right.
func (h *IPv4) Good() bool { return Fold(headerSum(h)) == Good }
