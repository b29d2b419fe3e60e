package wire

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

func echo(data string) []byte {
	b := make([]byte, ICMPLen, 100)
	b[0] = ICMPEcho
	be.PutUint32(b[4:], 0x12340001)
	b = append(b, data...)
	be.PutUint16(b[2:], ^naive(b))
	return b
}

func TestICMPEcho(t *testing.T) {
	for _, data := range []string{"", "a", "ab", "hello, world", "\xff\xff"} {
		req := echo(data)
		h, reason := ParseICMP(req)
		if reason != OK || h != (ICMP{ICMPEcho, 0, 0x12340001}) {
			t.Fatalf("%q: %+v, %v", data, h, reason)
		}
		rep := make([]byte, 100)
		n := PutEchoReply(rep, req)
		h, reason = ParseICMP(rep[:n])
		if reason != OK || h != (ICMP{ICMPEchoReply, 0, 0x12340001}) || !bytes.Equal(rep[8:n], req[8:]) {
			t.Errorf("%q: reply %+v, %v, % x", data, h, reason, rep[:n])
		}
	}
	// Every checksum that a request can have, also 0 and 0xFFFF in the reply.
	req := echo("xx")
	rep := make([]byte, len(req))
	for w := range 65536 {
		be.PutUint16(req[8:], uint16(w))
		be.PutUint16(req[2:], 0)
		be.PutUint16(req[2:], ^naive(req))
		PutEchoReply(rep, req)
		if naive(rep) != Good {
			t.Fatalf("data %04x: reply % x has a wrong checksum", w, rep)
		}
	}
	for _, c := range []struct {
		b    []byte
		want Drop
	}{
		{req[:7], ICMPShort}, {nil, ICMPShort}, {change(req, 0, 1), ICMPChecksum}, {change(req, 9, 7), ICMPChecksum},
	} {
		if _, got := ParseICMP(c.b); got != c.want {
			t.Errorf("% x: %v, want %v", c.b, got, c.want)
		}
	}
}

func TestICMPUnreachable(t *testing.T) {
	packet := frame(100)[EthLen:] // from ipB:1000 to ipA:2000
	b := make([]byte, 200)
	n := PutUnreachable(b, UnreachPort, packet)
	if n != MaxUnreachable || !bytes.Equal(b[ICMPLen:n], packet[:28]) {
		t.Fatalf("%d bytes: % x", n, b[:n])
	}
	h, reason := ParseICMP(b[:n])
	if reason != OK || h != (ICMP{ICMPUnreachable, UnreachPort, 0}) {
		t.Fatalf("%+v, %v", h, reason)
	}
	q, reason := ParseQuote(b[:n])
	if reason != OK || q != (Quote{ipB, ipA, ProtoTCP, 1000, 2000, 1}) {
		t.Fatalf("%+v, %v", q, reason)
	}
	if n := PutUnreachable(b, UnreachPort, packet[:25]); n != ICMPLen+25 {
		t.Errorf("a packet of 25 bytes: %d", n)
	}

	n = PutUnreachable(b, UnreachHost, packet)
	m := b[:n]
	withOptions := append(bytes.Clone(m[:28]), 1, 1, 1, 1, 3, 232, 7, 208, 0, 0, 0, 1)
	withOptions[8] = 0x46
	for _, c := range []struct {
		b    []byte
		want Drop
	}{
		{m, OK},
		{m[:35], ICMPQuote},
		{m[:8], ICMPQuote},
		{nil, ICMPQuote},
		{change(m, 8, 0x65), ICMPQuote},
		{change(m, 8, 0x44), ICMPQuote},
		{change(m, 8, 0x46), ICMPQuote}, // options, and so too short
		{withOptions, OK},
		{withOptions[:39], ICMPQuote},
		{change(m, 14, 0x20), OK},               // a first fragment
		{change(m, 14, 0x20, 15, 1), ICMPQuote}, // a later one
		{change(m, 17, ProtoICMP), ICMPQuote},
		{change(m, 17, ProtoUDP), OK},
	} {
		q, got := ParseQuote(c.b)
		if got != c.want {
			t.Errorf("% x: %v, want %v", c.b, got, c.want)
		}
		if got == OK && (q.SrcPort != 1000 || q.DstPort != 2000) {
			t.Errorf("% x: read as %+v", c.b, q)
		}
	}
}

// Nothing that comes in makes any of the functions panic, whatever the lengths say, and what is accepted lies inside.
func parseAll(t *testing.T, b []byte) {
	typ, reason := ParseEthernet(b)
	if reason != OK {
		return
	}
	p := b[EthLen:]
	if typ == TypeARP {
		if a, reason := ParseARP(p); reason == OK {
			PutARPReply(make([]byte, 60), a, macA, ipA)
		}
		return
	}
	h, reason := ParseIPv4(p, false)
	if reason != OK {
		return
	}
	p = p[IPv4Len:h.Len()]
	PutUnreachable(make([]byte, MaxUnreachable), UnreachPort, b[EthLen:])
	switch h.Proto() {
	case ProtoTCP:
		if s, reason := ParseTCP(p); reason == OK {
			TCPGood(p, h.Src(), h.Dst())
			ParseOptions(p[TCPLen:s.HdrLen()])
			_ = p[s.HdrLen():]
		}
	case ProtoUDP:
		if u, reason := ParseUDP(p); reason == OK {
			UDPGood(p[:u.Len()], h.Src(), h.Dst())
			_ = p[UDPLen:u.Len()]
		}
	case ProtoICMP:
		if _, reason := ParseICMP(p); reason == OK {
			PutEchoReply(make([]byte, len(p)), p)
		}
		ParseQuote(p)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(frame(0))
	f.Add(frame(9))
	b := frame(40)
	b[EthLen+9] = ProtoUDP
	f.Add(b)
	copy(b[EthLen+IPv4Len:], echo("hello"))
	b[EthLen+9] = ProtoICMP
	f.Add(b)
	b = make([]byte, 42)
	PutARPRequest(b, Broadcast, macA, ipA, ipB)
	f.Add(b)
	f.Fuzz(parseAll)
}

// A short run of the same with every test run: good frames with a few bytes changed, cut anywhere.
func TestParseMutated(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 4))
	for range 50_000 {
		b := frame(rnd.IntN(60))
		b[EthLen+9] = []byte{ProtoTCP, ProtoUDP, ProtoICMP, 2}[rnd.IntN(4)]
		for range rnd.IntN(4) {
			b[12+rnd.IntN(len(b)-12)] = byte(rnd.Uint32())
		}
		parseAll(t, b[:rnd.IntN(len(b)+1)])
	}
}
