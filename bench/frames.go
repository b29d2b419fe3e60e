package main

import (
	"encoding/binary"

	"ndpip/stack"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// header is the 54 bytes in front of a segment's payload, or a segment without payload and without options.
type header [64]byte

// The fields of a header that are changed in place.
const (
	seqAt   = wire.EthLen + wire.IPv4Len + 4
	ackAt   = seqAt + 4
	flagsAt = ackAt + 5
)

// path names both ends of a connection, as seen by the one who sends.
type path struct {
	srcMAC, dstMAC   stack.MAC
	src, dst         uint32
	srcPort, dstPort uint16
}

// segment writes a segment of n bytes of payload and options (no checksum of TCP's) and returns its header's length.
func (p *path) segment(b []byte, f wire.TCPFields, options, n int) int {
	at := wire.PutEthernet(b, p.dstMAC, p.srcMAC, wire.TypeIPv4)
	at += wire.PutIPv4(b[at:], p.src, p.dst, wire.ProtoTCP, wire.IPv4Len+wire.TCPLen+options+n, 0)
	return at + wire.PutTCP(b[at:], p.srcPort, p.dstPort, f, options)
}

func (h *header) setSeq(s tcp.Seq) { binary.BigEndian.PutUint32(h[seqAt:], uint32(s)) }
func (h *header) setAck(s tcp.Seq) { binary.BigEndian.PutUint32(h[ackAt:], uint32(s)) }
