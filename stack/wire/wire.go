// Package wire knows the layout of headers: Ethernet, ARP, IPv4, ICMP, UDP and TCP, and the checksum that they share.
//
// Each Parse function takes the bytes that start with its header, checks every length before it uses it, and gives the
// header's fields in the machine's order, or the reason why the frame is to be dropped. Each Put function writes a
// header to the start of a buffer and returns its length; that the buffer is long enough is the caller's care, and a
// panic if it is not. Nothing here allocates, keeps state, or knows the time.
//
// The order on the way in is ParseEthernet, then ParseARP, or ParseIPv4 and by its protocol ParseTCP, ParseUDP or
// ParseICMP, each on the payload that the one before it delimits. An IPv4 address is a uint32, 10.0.0.1 being
// 0x0A000001.
//
// Not done: VLAN tags, IPv6, IP options and fragments are recognised, to be counted, and dropped.
package wire

import (
	"encoding/binary"
	"net/netip"
)

// Lengths of headers without options, in bytes.
const (
	EthLen  = 14
	ARPLen  = 28
	IPv4Len = 20
	ICMPLen = 8
	UDPLen  = 8
	TCPLen  = 20
)

// be is network order. The compiler makes one load and a byte swap of each access.
var be = binary.BigEndian

// Drop is the reason why a received frame is not accepted. OK is not a reason: the frame is good so far.
type Drop uint8

// The closed set of reasons that the bytes of a frame can give.
const (
	OK Drop = iota

	EthShort // shorter than an Ethernet header
	EthVLAN  // an IEEE 802.1Q or 802.1ad tag
	EthIPv6  // IPv6
	EthType  // another protocol, or an IEEE 802.3 length instead of a type

	ARPShort  // shorter than an ARP packet for IPv4 over Ethernet
	ARPFormat // not for IPv4 over Ethernet
	ARPOp     // neither request nor reply
	ARPSender // the sender's hardware address is a group's or zero

	IPShort     // shorter than an IPv4 header
	IPVersion   // version not 4
	IPHeaderLen // header length below 20
	IPOptions   // header length above 20
	IPLength    // total length below the header's, or above what the frame holds
	IPFragment  // a fragment
	IPChecksum  // wrong header checksum
	IPSource    // a source that no host can have, see Net.BadSource
	IPDest      // not to this host
	IPProtocol  // neither TCP, UDP nor ICMP

	ICMPShort    // shorter than an ICMP header
	ICMPChecksum // wrong checksum
	ICMPType     // a message that this host has no use for
	ICMPQuote    // quotes too little of the packet that it is about, or not one of ours

	UDPShort    // shorter than a UDP header
	UDPLength   // length below the header's, or above what the packet holds
	UDPChecksum // wrong checksum

	TCPShort    // shorter than a TCP header
	TCPOffset   // data offset below 5, or beyond the end of the segment
	TCPOptions  // an option with an impossible length
	TCPChecksum // wrong checksum

	NumDrops // how many there are
)

var dropNames = [NumDrops]string{
	"ok",
	"eth_short", "eth_vlan", "eth_ipv6", "eth_type",
	"arp_short", "arp_format", "arp_op", "arp_sender",
	"ip_short", "ip_version", "ip_header_len", "ip_options", "ip_length", "ip_fragment", "ip_checksum", "ip_source",
	"ip_dest", "ip_protocol",
	"icmp_short", "icmp_checksum", "icmp_type", "icmp_quote",
	"udp_short", "udp_length", "udp_checksum",
	"tcp_short", "tcp_offset", "tcp_options", "tcp_checksum",
}

// String is the reason's name as counters show it, for example "ip_checksum".
func (d Drop) String() string {
	if d < NumDrops {
		return dropNames[d]
	}
	return "drop_unknown"
}

// FromAddr is an address as a number, and 0 for what is not an IPv4 address.
func FromAddr(a netip.Addr) uint32 {
	if !a.Unmap().Is4() {
		return 0
	}
	b := a.As4()
	return be.Uint32(b[:])
}

// ToAddr is a number as an address.
func ToAddr(a uint32) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(a >> 24), byte(a >> 16), byte(a >> 8), byte(a)})
}
