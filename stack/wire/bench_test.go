package wire

import "testing"

// frame is a TCP segment with n bytes of data from 10.0.0.2:1000 to 10.0.0.1:2000, as it comes off the wire.
func frame(n int) []byte {
	b := make([]byte, EthLen+IPv4Len+TCPLen+n)
	PutEthernet(b, MAC{2, 0, 0, 0, 0, 1}, MAC{2, 0, 0, 0, 0, 2}, TypeIPv4)
	PutIPv4(b[EthLen:], 0x0a000002, 0x0a000001, ProtoTCP, len(b)-EthLen, 7)
	t := b[EthLen+IPv4Len:]
	PutTCP(t, 1000, 2000, TCPFields{1, 2, 1000, ACK}, 0)
	for i := range t[TCPLen:] {
		t[TCPLen+i] = byte(i)
	}
	SetTCPCheck(t, 0x0a000002, 0x0a000001)
	return b
}

// What the headers of a segment cost on the way in, without and with the checks that a port may have done.
func BenchmarkParse(b *testing.B) {
	f := frame(64)
	for _, verify := range []bool{false, true} {
		name := "offload"
		if verify {
			name = "software"
		}
		b.Run(name, func(b *testing.B) {
			var n, bad int
			for b.Loop() {
				typ, reason := ParseEthernet(f)
				if reason != OK || typ != TypeIPv4 {
					bad++
					continue
				}
				ip, reason := ParseIPv4(f[EthLen:], verify)
				if reason != OK || ip.Proto() != ProtoTCP {
					bad++
					continue
				}
				seg := f[EthLen+IPv4Len : EthLen+ip.Len()]
				h, reason := ParseTCP(seg)
				if reason != OK || verify && !TCPGood(seg, ip.Src(), ip.Dst()) {
					bad++
					continue
				}
				n += h.HdrLen() + int(h.Seq()) + int(h.Window()) + int(h.Flags())
			}
			if bad != 0 {
				b.Fatal(bad)
			}
		})
	}
}

// What the headers of a segment cost on the way out.
func BenchmarkPut(b *testing.B) {
	f := frame(64)
	b.Run("offload", func(b *testing.B) {
		for b.Loop() {
			n := PutEthernet(f, MAC{2, 0, 0, 0, 0, 1}, MAC{2, 0, 0, 0, 0, 2}, TypeIPv4)
			n += PutIPv4(f[n:], 0x0a000002, 0x0a000001, ProtoTCP, len(f)-EthLen, 7)
			t := f[n:]
			PutTCP(t, 1000, 2000, TCPFields{1, 2, 1000, ACK}, 0)
			SetPartialCheck(t, 16, 0x0a000002, 0x0a000001, ProtoTCP)
		}
	})
	b.Run("software", func(b *testing.B) {
		for b.Loop() {
			n := PutEthernet(f, MAC{2, 0, 0, 0, 0, 1}, MAC{2, 0, 0, 0, 0, 2}, TypeIPv4)
			n += PutIPv4(f[n:], 0x0a000002, 0x0a000001, ProtoTCP, len(f)-EthLen, 7)
			t := f[n:]
			PutTCP(t, 1000, 2000, TCPFields{1, 2, 1000, ACK}, 0)
			SetTCPCheck(t, 0x0a000002, 0x0a000001)
		}
	})
}
