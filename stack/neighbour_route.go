package stack

import (
	"golang.org/x/sys/unix"

	"ndpip/stack/wire"
)

// route says by which neighbour a destination is reached (RFC 1122 3.3.1). It never changes, so any thread may ask.
type route struct {
	net     wire.Net
	gateway uint32          // 0: none
	static  map[uint32]bool // neighbours that are on the link, whatever the prefix says
}

// hopKind is the way to a destination.
type hopKind uint8

const (
	hopNone      hopKind = iota // there is none
	hopDirect                   // the destination is a neighbour
	hopGateway                  // by the gateway
	hopSelf                     // the own address; frames to it do not come back
	hopBroadcast                // to all hosts of the link
	hopMulticast                // to a group
)

// nextHop is the neighbour that a packet to dst is handed to. For hopBroadcast and hopMulticast hop is dst; its MAC is
// that of groupMAC.
func (r *route) nextHop(dst uint32) (hop uint32, kind hopKind) {
	switch {
	case dst == r.net.Addr:
		return dst, hopSelf
	case r.net.IsBroadcast(dst):
		return dst, hopBroadcast
	case dst>>28 == 0xe:
		return dst, hopMulticast
	case r.static[dst]:
		return dst, hopDirect
	case dst>>24 == 0 || dst>>24 == 127 || dst>>28 == 0xf: // this network, loopback, class E (RFC 1122 3.2.1.3)
		return 0, hopNone
	case r.net.OnLink(dst):
		return dst, hopDirect
	case r.gateway != 0:
		return r.gateway, hopGateway
	}
	return 0, hopNone
}

// unicastHop is nextHop for TCP, which speaks to one other host only. The error is ENETUNREACH.
func (r *route) unicastHop(dst uint32) (hop uint32, err error) {
	hop, kind := r.nextHop(dst)
	if kind == hopDirect || kind == hopGateway {
		return hop, nil
	}
	return 0, unix.ENETUNREACH
}

// groupMAC is the Ethernet address of a broadcast or multicast destination (RFC 1112 section 6.4).
func groupMAC(dst uint32, kind hopKind) wire.MAC {
	if kind == hopMulticast {
		return wire.MAC{0x01, 0x00, 0x5e, byte(dst >> 16 & 0x7f), byte(dst >> 8), byte(dst)}
	}
	return wire.Broadcast
}
