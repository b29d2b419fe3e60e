package wire

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"strings"
	"testing"
)

const (
	ipA = 0x0a000001 // 10.0.0.1
	ipB = 0x0a000002
)

var macA, macB = MAC{2, 0, 0, 0, 0, 1}, MAC{2, 0, 0, 0, 0, 2}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// change gives b with some bytes set: pairs of index and value.
func change(b []byte, pairs ...int) []byte {
	b = bytes.Clone(b)
	for i := 0; i < len(pairs); i += 2 {
		b[pairs[i]] = byte(pairs[i+1])
	}
	return b
}

func TestDropNames(t *testing.T) {
	seen := map[string]bool{}
	for d := range NumDrops {
		if s := d.String(); s == "" || seen[s] {
			t.Errorf("reason %d has the name %q", d, s)
		} else {
			seen[s] = true
		}
	}
	if IPChecksum.String() != "ip_checksum" || TCPChecksum.String() != "tcp_checksum" || Drop(200).String() != "drop_unknown" {
		t.Error("names and reasons are out of step")
	}
}

func TestEthernet(t *testing.T) {
	b := make([]byte, 60)
	if n := PutEthernet(b, macA, macB, TypeARP); n != EthLen || EthDst(b) != macA || EthSrc(b) != macB {
		t.Errorf("wrote % x", b[:EthLen])
	}
	for _, c := range []struct {
		b    []byte
		typ  uint16
		want Drop
	}{
		{b, TypeARP, OK},
		{b[:14], TypeARP, OK},
		{b[:13], 0, EthShort},
		{nil, 0, EthShort},
		{change(b, 12, 0x08, 13, 0x00), TypeIPv4, OK},
		{change(b, 12, 0x81, 13, 0x00), 0x8100, EthVLAN},
		{change(b, 12, 0x88, 13, 0xa8), 0x88a8, EthVLAN},
		{change(b, 12, 0x91, 13, 0x00), 0x9100, EthVLAN},
		{change(b, 12, 0x86, 13, 0xdd), 0x86dd, EthIPv6},
		{change(b, 12, 0x00, 13, 0x2e), 0x002e, EthType},
	} {
		if typ, got := ParseEthernet(c.b); got != c.want || typ != c.typ {
			t.Errorf("% x: %#x, %v; want %#x, %v", c.b[:min(14, len(c.b))], typ, got, c.typ, c.want)
		}
	}
	if !Broadcast.Group() || macA.Group() || !(MAC{1}).Group() || !(MAC{}).IsZero() || macA.IsZero() {
		t.Error("MAC: group or zero is wrong")
	}
	if s := macB.String(); s != "02:00:00:00:00:02" {
		t.Error(s)
	}
}

func TestARP(t *testing.T) {
	b := make([]byte, 60)
	n := PutARPRequest(b, Broadcast, macA, ipA, ipB)
	want := unhex(t, `ffffffffffff 020000000001 0806 0001 0800 06 04 0001
		020000000001 0a000001 000000000000 0a000002`)
	if !bytes.Equal(b[:n], want) {
		t.Errorf("request\n% x, want\n% x", b[:n], want)
	}
	req, reason := ParseARP(b[EthLen:])
	if reason != OK || req != (ARP{ARPRequest, macA, MAC{}, ipA, ipB}) {
		t.Errorf("request read as %+v, %v", req, reason)
	}

	r := make([]byte, 42)
	n = PutARPReply(r, req, macB, ipB)
	want = unhex(t, `020000000001 020000000002 0806 0001 0800 06 04 0002
		020000000002 0a000002 020000000001 0a000001`)
	if !bytes.Equal(r[:n], want) {
		t.Errorf("reply\n% x, want\n% x", r[:n], want)
	}

	PutARPRequest(r, macB, macA, ipA, ipB) // to confirm an entry
	if a, reason := ParseARP(r[EthLen:]); reason != OK || a.TargetMAC != macB || EthDst(r) != macB {
		t.Errorf("unicast request: %+v, %v", a, reason)
	}

	p := b[EthLen:][:ARPLen]
	for _, c := range []struct {
		b    []byte
		want Drop
	}{
		{p[:27], ARPShort},
		{nil, ARPShort},
		{change(p, 1, 6), ARPFormat},
		{change(p, 2, 0x86, 3, 0xdd), ARPFormat},
		{change(p, 4, 8), ARPFormat},
		{change(p, 5, 16), ARPFormat},
		{change(p, 7, 0), ARPOp},
		{change(p, 7, 3), ARPOp},
		{change(p, 8, 1), ARPSender},
		{change(p, 8, 0, 13, 0), ARPSender},
	} {
		if _, got := ParseARP(c.b); got != c.want {
			t.Errorf("% x: %v, want %v", c.b, got, c.want)
		}
	}
}

func TestIPv4(t *testing.T) {
	b := make([]byte, 46) // as the padding leaves it
	if n := PutIPv4(b, ipA, ipB, ProtoTCP, 44, 0x1234); n != IPv4Len {
		t.Errorf("length %d", n)
	}
	want := unhex(t, "4500 002c 1234 4000 4006 1496 0a000001 0a000002")
	if !bytes.Equal(b[:IPv4Len], want) {
		t.Errorf("header % x, want % x", b[:IPv4Len], want)
	}
	h, reason := ParseIPv4(b, true)
	if reason != OK || h.Src() != ipA || h.Dst() != ipB || h.Len() != 44 || h.Proto() != ProtoTCP {
		t.Fatalf("read as % x, %v", h, reason)
	}
	for _, c := range []struct {
		b    []byte
		want Drop
	}{
		{b[:44], OK},
		{b[:43], IPLength},
		{b[:20], IPLength},
		{b[:19], IPShort},
		{nil, IPShort},
		{change(b, 0, 0x65), IPVersion},
		{change(b, 0, 0x05), IPVersion},
		{change(b, 0, 0x44), IPHeaderLen},
		{change(b, 0, 0x40), IPHeaderLen},
		{change(b, 0, 0x46), IPOptions},
		{change(b, 0, 0x4f), IPOptions},
		{change(b, 3, 19), IPLength},
		{change(b, 3, 0), IPLength},
		{change(b, 2, 255), IPLength},
		{change(b, 6, 0x20), IPFragment},
		{change(b, 6, 0x40, 7, 1), IPFragment},
		{change(b, 6, 0x00), IPChecksum}, // may be fragmented, but is not
		{change(b, 8, 63), IPChecksum},
		{change(b, 11, 0), IPChecksum},
	} {
		if _, got := ParseIPv4(c.b, true); got != c.want {
			t.Errorf("% x: %v, want %v", c.b, got, c.want)
		}
		if c.want == IPChecksum {
			if _, got := ParseIPv4(c.b, false); got != OK {
				t.Errorf("% x, checksum not asked for: %v", c.b, got)
			}
		}
	}
}

func TestNet(t *testing.T) {
	n := NewNet(netip.MustParsePrefix("10.0.0.1/24"))
	if n != (Net{ipA, 0xffffff00}) || ToAddr(ipB) != netip.MustParseAddr("10.0.0.2") || FromAddr(netip.MustParseAddr("::1")) != 0 {
		t.Fatalf("%#x", n)
	}
	if FromAddr(netip.MustParseAddr("::ffff:10.0.0.2")) != ipB || FromAddr(netip.Addr{}) != 0 {
		t.Error("FromAddr")
	}
	for _, c := range []struct {
		addr                      string
		onLink, broadcast, badSrc bool
	}{
		{"10.0.0.1", true, false, true},
		{"10.0.0.2", true, false, false},
		{"10.0.0.0", true, false, true},
		{"10.0.0.255", true, true, true},
		{"10.0.1.255", false, false, false},
		{"192.168.0.1", false, false, false},
		{"0.0.0.0", false, false, true},
		{"0.1.2.3", false, false, true},
		{"127.0.0.1", false, false, true},
		{"223.255.255.1", false, false, false},
		{"224.0.0.1", false, false, true},
		{"240.0.0.1", false, false, true},
		{"255.255.255.255", false, true, true},
	} {
		a := FromAddr(netip.MustParseAddr(c.addr))
		if n.OnLink(a) != c.onLink || n.IsBroadcast(a) != c.broadcast || n.BadSource(a) != c.badSrc {
			t.Errorf("%s: on link %v, broadcast %v, bad source %v", c.addr, n.OnLink(a), n.IsBroadcast(a), n.BadSource(a))
		}
	}
	for _, s := range []string{"10.0.0.2/31", "10.0.0.2/32"} {
		n := NewNet(netip.MustParsePrefix(s))
		if n.IsBroadcast(ipB+1) || n.BadSource(ipB+1) || !n.BadSource(ipB) {
			t.Errorf("%s has a broadcast address, or not itself", s)
		}
	}
	if n := NewNet(netip.MustParsePrefix("10.0.0.2/0")); n.Mask != 0 || !n.OnLink(0xc0000001) {
		t.Errorf("%#x", n)
	}
}

func TestUDP(t *testing.T) {
	b := make([]byte, 20)
	PutUDP(b, 1000, 53, 11, 0)
	copy(b[8:], "abc")
	be.PutUint16(b[6:], UDPCheck(Sum(b[:11], PseudoHeader(ipA, ipB, ProtoUDP, 11))))
	h, reason := ParseUDP(b)
	if reason != OK || h.SrcPort() != 1000 || h.DstPort() != 53 || h.Len() != 11 {
		t.Fatalf("read as % x, %v", h, reason)
	}
	if !UDPGood(b[:11], ipA, ipB) || UDPGood(b[:11], ipA, ipB+1) || UDPGood(change(b[:11], 9, 0), ipA, ipB) {
		t.Error("the checksum is not told right from wrong")
	}
	if !UDPGood(change(b[:11], 6, 0, 7, 0, 9, 0), ipA, ipB) {
		t.Error("no checksum is not accepted")
	}
	for _, c := range []struct {
		b    []byte
		want Drop
	}{
		{b[:11], OK}, {b[:10], UDPLength}, {b[:8], UDPLength}, {b[:7], UDPShort}, {nil, UDPShort},
		{change(b, 5, 8), OK}, {change(b, 5, 7), UDPLength}, {change(b, 5, 0), UDPLength}, {change(b, 4, 1), UDPLength},
	} {
		if _, got := ParseUDP(c.b); got != c.want {
			t.Errorf("% x: %v, want %v", c.b, got, c.want)
		}
	}
	// Data that make the checksum 0, which is sent as 0xFFFF.
	PutUDP(b, 0, 0, 10, 0)
	be.PutUint16(b[8:], 0)
	s := Sum(b[:10], PseudoHeader(ipA, ipB, ProtoUDP, 10))
	be.PutUint16(b[8:], ^Fold(s))
	if c := UDPCheck(Sum(b[:10], PseudoHeader(ipA, ipB, ProtoUDP, 10))); c != 0xffff {
		t.Errorf("checksum %#x, want 0xffff", c)
	}
	be.PutUint16(b[6:], 0xffff)
	if !UDPGood(b[:10], ipA, ipB) {
		t.Error("a checksum of 0 sent as 0xffff is not accepted")
	}
}
