package wire

// The operations of ARP (RFC 826).
const (
	ARPRequest = 1
	ARPReply   = 2
)

const (
	arpEthernet = 1 // hardware type
)

// ARP is an ARP packet for IPv4 over Ethernet.
type ARP struct {
	Op        uint16 // ARPRequest or ARPReply
	SenderMAC MAC
	TargetMAC MAC    // without meaning in a request
	SenderIP  uint32 // 0 in a probe for an address conflict (RFC 5227)
	TargetIP  uint32
}

// ParseARP reads an ARP packet; b starts behind the Ethernet header and may be longer than the packet.
func ParseARP(b []byte) (a ARP, reason Drop) {
	if len(b) < ARPLen {
		return a, ARPShort
	}
	if be.Uint16(b) != arpEthernet || be.Uint16(b[2:]) != TypeIPv4 || b[4] != 6 || b[5] != 4 {
		return a, ARPFormat
	}
	a = ARP{
		Op:        be.Uint16(b[6:]),
		SenderMAC: MAC(b[8:14]),
		SenderIP:  be.Uint32(b[14:]),
		TargetMAC: MAC(b[18:24]),
		TargetIP:  be.Uint32(b[24:]),
	}
	if a.Op != ARPRequest && a.Op != ARPReply {
		return a, ARPOp
	}
	if a.SenderMAC.Group() || a.SenderMAC.IsZero() {
		return a, ARPSender
	}
	return a, OK
}

// PutARP writes an ARP packet and returns ARPLen.
func PutARP(b []byte, a ARP) int {
	_ = b[ARPLen-1]
	be.PutUint16(b, arpEthernet)
	be.PutUint16(b[2:], TypeIPv4)
	b[4], b[5] = 6, 4
	be.PutUint16(b[6:], a.Op)
	copy(b[8:14], a.SenderMAC[:])
	be.PutUint32(b[14:], a.SenderIP)
	copy(b[18:24], a.TargetMAC[:])
	be.PutUint32(b[24:], a.TargetIP)
	return ARPLen
}

// PutARPRequest writes a whole frame that asks who has target, and returns its length. to is Broadcast, or the
// address that is to be confirmed by unicast (RFC 1122 2.3.2.1).
func PutARPRequest(b []byte, to, mac MAC, ip, target uint32) int {
	n := PutEthernet(b, to, mac, TypeARP)
	a := ARP{Op: ARPRequest, SenderMAC: mac, SenderIP: ip, TargetIP: target}
	if !to.Group() {
		a.TargetMAC = to
	}
	return n + PutARP(b[n:], a)
}

// PutARPReply writes a whole frame that answers the request req: ip is at mac. It returns the frame's length.
func PutARPReply(b []byte, req ARP, mac MAC, ip uint32) int {
	n := PutEthernet(b, req.SenderMAC, mac, TypeARP)
	return n + PutARP(b[n:], ARP{Op: ARPReply, SenderMAC: mac, SenderIP: ip, TargetMAC: req.SenderMAC, TargetIP: req.SenderIP})
}
