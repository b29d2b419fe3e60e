package wire

import (
	"bytes"
	"testing"
)

func TestTCP(t *testing.T) {
	b := make([]byte, 30)
	f := TCPFields{Seq: 0x01020304, Ack: 0xfffefdfc, Window: 0x1234, Flags: SYN | ACK}
	if n := PutTCP(b, 80, 0xffff, f, 8); n != TCPLen {
		t.Errorf("length %d", n)
	}
	want := unhex(t, "0050 ffff 01020304 fffefdfc 70 12 1234 0000 0000")
	if !bytes.Equal(b[:TCPLen], want) {
		t.Errorf("header % x, want % x", b[:TCPLen], want)
	}
	h, reason := ParseTCP(b)
	if reason != OK || h.SrcPort() != 80 || h.DstPort() != 0xffff || h.Seq() != f.Seq || h.Ack() != f.Ack ||
		h.Window() != f.Window || h.Flags() != f.Flags || h.HdrLen() != 28 {
		t.Errorf("read as % x, %v", h, reason)
	}
	for _, c := range []struct {
		b    []byte
		want Drop
	}{
		{b[:28], OK}, {b[:27], TCPOffset}, {b[:20], TCPOffset}, {b[:19], TCPShort}, {nil, TCPShort},
		{change(b, 12, 0x50), OK}, {change(b, 12, 0x4f), TCPOffset}, {change(b, 12, 0), TCPOffset}, {change(b, 12, 0xf0), TCPOffset},
	} {
		if _, got := ParseTCP(c.b); got != c.want {
			t.Errorf("% x: %v, want %v", c.b, got, c.want)
		}
	}
	SetTCPCheck(b, ipA, ipB)
	if !TCPGood(b, ipA, ipB) || TCPGood(b, ipA, ipB+1) || TCPGood(b[:29], ipA, ipB) || TCPGood(change(b, 8, 1), ipA, ipB) {
		t.Error("the checksum is not told right from wrong")
	}
	pseudo := unhex(t, "0a000001 0a000002 0006 001e")
	SetPartialCheck(b, 16, ipA, ipB, ProtoTCP)
	if got := be.Uint16(b[16:]); got != naive(pseudo) {
		t.Errorf("partial checksum %#x, want %#x", got, naive(pseudo))
	}
	// The port then sums the segment as it stands, this field included, and puts the complement there.
	be.PutUint16(b[16:], ^naive(b))
	if !TCPGood(b, ipA, ipB) {
		t.Error("a partial checksum does not complete to a good one")
	}
}

func TestOptions(t *testing.T) {
	none := Options{Scale: NoScale}
	for _, c := range []struct {
		hex  string
		want Options
		drop Drop
	}{
		{"", none, OK},
		{"00", none, OK},
		{"01 01 01", none, OK},
		{"02 04 05b4", Options{1460, NoScale, false}, OK},
		{"02 04 05b4 01 03 03 07", Options{1460, 7, false}, OK},
		{"03 03 00", Options{0, 0, false}, OK},
		{"03 03 0e", Options{0, 14, false}, OK},
		{"03 03 0f", Options{0, 14, false}, OK},
		{"03 03 ff", Options{0, 14, false}, OK},
		{"02 04 05b4 04 02 08 0a 0000000100000000 01 03 03 09", Options{1460, 9, true}, OK}, // as Linux sends it
		{"02 04 05b4 02 04 0200", Options{512, NoScale, false}, OK},
		{"00 02 04 05b4", none, OK},                                     // nothing counts behind the end
		{"fe 02 02 04 05b4", Options{1460, NoScale, false}, OK},         // an unknown kind
		{"04 03 00", none, TCPOptions},                                  // not the length of its kind
		{"02", none, TCPOptions},                                        // no length
		{"02 04", none, TCPOptions},                                     // cut
		{"02 04 05", none, TCPOptions},                                  //
		{"02 00 05b4", none, TCPOptions},                                // length 0
		{"fe 01", none, TCPOptions},                                     // length 1
		{"02 03 05", none, TCPOptions},                                  // not the length of its kind
		{"03 04 05 06", none, TCPOptions},                               //
		{"02 04 05b4 fe ff", Options{1460, NoScale, false}, TCPOptions}, // leads outside
	} {
		if got, drop := ParseOptions(unhex(t, c.hex)); got != c.want || drop != c.drop {
			t.Errorf("%q: %+v, %v; want %+v, %v", c.hex, got, drop, c.want, c.drop)
		}
	}
	b := make([]byte, 40)
	for _, o := range []Options{none, {1460, NoScale, false}, {0, 0, false}, {8960, 14, true}, {1, 3, false}, {0, NoScale, true}} {
		n := PutOptions(b, o)
		if got, drop := ParseOptions(b[:n]); got != o || drop != OK || n%4 != 0 {
			t.Errorf("%+v came back as %+v, %v from % x", o, got, drop, b[:n])
		}
	}
}

func TestSack(t *testing.T) {
	b := make([]byte, MaxSackOptions)
	for n := range MaxSacks + 1 {
		want := [MaxSacks][2]uint32{{1, 2}, {0xfffffff0, 5}, {7, 9}, {11, 13}}
		clear(want[n:])
		k := PutSack(b, want[:n])
		if got, m := ParseSack(b[:k]); got != want || m != n || k%4 != 0 {
			t.Errorf("%d blocks came back as %d: %v", n, m, got)
		}
	}
	for _, c := range []struct {
		hex string
		n   int
	}{
		{"", 0},
		{"08 0a 0000000100000000 01 01 05 0a 00000001 00000002", 1}, // behind a timestamp
		{"05 0a 00000001 00000002 05 0a 00000003 00000004", 2},
		{"05 0c 00000001 00000002 0000", 1}, // half a block more
		{"05 02", 0},
		{"05 0a 00000001", 0},             // cut
		{"00 05 0a 00000001 00000002", 0}, // behind the end
		{"05 00 00000001 00000002", 0},    // no length
		{"05", 0},                         //
	} {
		if _, n := ParseSack(unhex(t, c.hex)); n != c.n {
			t.Errorf("%q: %d blocks, want %d", c.hex, n, c.n)
		}
	}
}

// What is read from any bytes can be written, and reads the same again.
func FuzzOptions(f *testing.F) {
	f.Add([]byte{2, 4, 5, 0xb4, 1, 3, 3, 7})
	f.Add([]byte{4, 2, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		ParseSack(b)
		o, _ := ParseOptions(b)
		if o.Scale < NoScale || o.Scale > MaxScale {
			t.Fatalf("scale %d", o.Scale)
		}
		var w [MaxOptions]byte
		n := PutOptions(w[:], o)
		if got, drop := ParseOptions(w[:n]); got != o || drop != OK {
			t.Fatalf("%+v came back as %+v, %v", o, got, drop)
		}
	})
}

func TestNothingAllocates(t *testing.T) {
	f := frame(100)
	b := make([]byte, 200)
	if n := testing.AllocsPerRun(100, func() {
		parseAll(t, f[:20])
		CopySum(b, f)
		PutTCP(b, 1, 2, TCPFields{}, 0)
		h, _ := ParseIPv4(f[EthLen:], true)
		s, _ := ParseTCP(f[EthLen+IPv4Len : EthLen+h.Len()])
		ParseOptions(f[EthLen+IPv4Len+TCPLen:][:s.HdrLen()-TCPLen])
		TCPGood(f[EthLen+IPv4Len:], h.Src(), h.Dst())
		PutOptions(b, Options{MSS: 1460, Scale: 7})
		PutUDP(b, 1, 2, 100, 0)
		UDPGood(b[:100], ipA, ipB)
		n := PutUnreachable(b, UnreachPort, f[EthLen:])
		ParseICMP(b[:n])
		ParseQuote(b[:n])
		n = PutARPRequest(b, Broadcast, macA, ipA, ipB)
		ParseARP(b[EthLen:n])
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
