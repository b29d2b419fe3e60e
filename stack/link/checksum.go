package link

import (
	"encoding/binary"
	"fmt"

	"ndpip/dpdk"
	"ndpip/stack/wire"
)

// Where checksums stand in the headers that they belong to.
const (
	ipCheck  = 10
	tcpCheck = 16
	udpCheck = 6
)

// complete fills in the checksums that the sender asked the port for, and panics if the frame is not prepared as DPDK
// asks: the header's checksum field 0, the other's the sum of the pseudo-header.
func complete(frame []byte, flags dpdk.Flags) {
	if flags&(dpdk.TxIPSum|dpdk.TxTCPSum|dpdk.TxUDPSum) == 0 {
		return
	}
	misuse := func(format string, args ...any) { panic("link: transmit: " + fmt.Sprintf(format, args...)) }
	typ, drop := wire.ParseEthernet(frame)
	if drop != wire.OK || typ != wire.TypeIPv4 {
		misuse("checksums asked for on a frame that is not IPv4 (%v)", drop)
	}
	packet := frame[wire.EthLen:]
	h, drop := wire.ParseIPv4(packet, false)
	if drop != wire.OK {
		misuse("checksums asked for on a bad IPv4 header (%v)", drop)
	}
	if flags&dpdk.TxIPSum != 0 {
		if v := binary.BigEndian.Uint16(packet[ipCheck:]); v != 0 {
			misuse("TxIPSum with %#04x in the checksum field, which has to be 0", v)
		}
		binary.BigEndian.PutUint16(packet[ipCheck:], ^wire.Fold(wire.Sum(packet[:wire.IPv4Len], 0)))
	}
	proto, field := uint8(wire.ProtoTCP), tcpCheck
	switch flags & (dpdk.TxTCPSum | dpdk.TxUDPSum) {
	case 0:
		return
	case dpdk.TxUDPSum:
		proto, field = wire.ProtoUDP, udpCheck
	case dpdk.TxTCPSum | dpdk.TxUDPSum:
		misuse("both TxTCPSum and TxUDPSum")
	}
	l4 := packet[wire.IPv4Len:h.Len()]
	if h.Proto() != proto || len(l4) < field+2 {
		misuse("the checksum of protocol %d asked for on a packet of protocol %d with %d bytes", proto, h.Proto(), len(l4))
	}
	want := wire.Fold(wire.PseudoHeader(h.Src(), h.Dst(), proto, len(l4)))
	if v := binary.BigEndian.Uint16(l4[field:]); v%0xffff != want%0xffff { // both zeros are right
		misuse("the checksum field holds %#04x; the pseudo-header sums to %#04x", v, want)
	}
	sum := ^wire.Fold(wire.Sum(l4, 0))
	if proto == wire.ProtoUDP && sum == 0 {
		sum = 0xffff
	}
	binary.BigEndian.PutUint16(l4[field:], sum)
}

// verify gives the flags of a port that checks checksums. It knows nothing of frames that it does not understand.
func verify(frame []byte) (flags dpdk.Flags) {
	typ, drop := wire.ParseEthernet(frame)
	if drop != wire.OK || typ != wire.TypeIPv4 {
		return 0
	}
	packet := frame[wire.EthLen:]
	h, drop := wire.ParseIPv4(packet, true)
	switch drop {
	case wire.OK:
		flags = dpdk.RxIPGood
	case wire.IPChecksum:
		flags = dpdk.RxIPBad
	default:
		return 0
	}
	l4 := packet[wire.IPv4Len:h.Len()]
	var good bool
	switch {
	case h.Proto() == wire.ProtoTCP && len(l4) >= wire.TCPLen:
		good = wire.TCPGood(l4, h.Src(), h.Dst())
	case h.Proto() == wire.ProtoUDP && len(l4) >= wire.UDPLen:
		u, drop := wire.ParseUDP(l4)
		if drop != wire.OK || binary.BigEndian.Uint16(l4[udpCheck:]) == 0 {
			return flags
		}
		good = wire.UDPGood(l4[:u.Len()], h.Src(), h.Dst())
	default:
		return flags
	}
	if good {
		return flags | dpdk.RxL4Good
	}
	return flags | dpdk.RxL4Bad
}
