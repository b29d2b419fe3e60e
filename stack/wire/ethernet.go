package wire

import "net"

// MAC is an Ethernet address.
type MAC [6]byte

// Broadcast is the Ethernet address of all stations.
var Broadcast = MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// Group says whether the address is that of a group, the broadcast address included.
func (m MAC) Group() bool { return m[0]&1 != 0 }

// IsZero says whether the address is all zeros, which no station has.
func (m MAC) IsZero() bool { return m == MAC{} }

// String is the address as six pairs of hexadecimal digits with colons.
func (m MAC) String() string { return net.HardwareAddr(m[:]).String() }

// The Ethernet types that are told apart.
const (
	TypeIPv4 = 0x0800
	TypeARP  = 0x0806

	typeVLAN    = 0x8100 // IEEE 802.1Q
	typeQinQ    = 0x88A8 // IEEE 802.1ad
	typeQinQOld = 0x9100 // the same, before the standard
	typeIPv6    = 0x86DD
)

// ParseEthernet gives the type of the frame b, which is TypeIPv4 or TypeARP if the reason is OK. The payload starts at
// EthLen; its end is not known here, as frames are padded to 60 bytes and a driver may leave more behind them.
func ParseEthernet(b []byte) (typ uint16, reason Drop) {
	if len(b) < EthLen {
		return 0, EthShort
	}
	typ = be.Uint16(b[12:])
	switch typ {
	case TypeIPv4, TypeARP:
		return typ, OK
	case typeVLAN, typeQinQ, typeQinQOld:
		return typ, EthVLAN
	case typeIPv6:
		return typ, EthIPv6
	}
	return typ, EthType
}

// EthDst is the address that a frame is sent to. The frame has at least EthLen bytes.
func EthDst(b []byte) MAC { return MAC(b[0:6]) }

// EthSrc is the address that a frame comes from. The frame has at least EthLen bytes.
func EthSrc(b []byte) MAC { return MAC(b[6:12]) }

// PutEthernet writes an Ethernet header and returns EthLen.
func PutEthernet(b []byte, dst, src MAC, typ uint16) int {
	_ = b[EthLen-1]
	copy(b[0:6], dst[:])
	copy(b[6:12], src[:])
	be.PutUint16(b[12:], typ)
	return EthLen
}
