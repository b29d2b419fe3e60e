package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
)

// naive is RFC 1071 as it stands there: 16 bits at a time.
func naive(b []byte) uint16 {
	var s uint32
	for i := 0; i < len(b); i += 2 {
		w := uint32(b[i]) << 8
		if i+1 < len(b) {
			w |= uint32(b[i+1])
		}
		s += w
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

func random(rnd *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	return b
}

func checkSums(t *testing.T, b []byte, cut int) {
	t.Helper()
	want := naive(b)
	if got := Fold(Sum(b, 0)); got != want {
		t.Fatalf("Sum of %d bytes is %#04x, want %#04x", len(b), got, want)
	}
	dst := bytes.Repeat([]byte{0xa5}, len(b)+1)
	if got := Fold(CopySum(dst, b)); got != want {
		t.Fatalf("CopySum of %d bytes is %#04x, want %#04x", len(b), got, want)
	}
	if !bytes.Equal(dst[:len(b)], b) || dst[len(b)] != 0xa5 {
		t.Fatalf("CopySum of %d bytes copied other bytes", len(b))
	}
	if got := Fold(Join(Sum(b[:cut], 0), CopySum(dst, b[cut:]), cut)); got != want {
		t.Fatalf("parts of %d and %d bytes sum to %#04x, want %#04x", cut, len(b)-cut, got, want)
	}
	if cut&1 == 0 {
		if got := Fold(Sum(b[cut:], Sum(b[:cut], 0))); got != want {
			t.Fatalf("Sum continued at %d of %d bytes is %#04x, want %#04x", cut, len(b), got, want)
		}
	}
}

func TestSum(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	buf := random(rnd, 2100)
	for n := range 300 {
		checkSums(t, buf[n%9:][:n], rnd.IntN(n+1))
		checkSums(t, bytes.Repeat([]byte{0xff}, n), rnd.IntN(n+1))
		checkSums(t, make([]byte, n), rnd.IntN(n+1))
	}
	for range 2000 {
		n := rnd.IntN(2000)
		checkSums(t, buf[rnd.IntN(100):][:n], rnd.IntN(n+1))
	}
}

func FuzzSum(f *testing.F) {
	f.Add([]byte{1, 2, 3}, 1)
	f.Add(bytes.Repeat([]byte{0xff}, 131), 64)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		checkSums(t, b, int(uint(cut)%uint(len(b)+1)))
	})
}

// The example of RFC 1071 section 3.
func TestSumExample(t *testing.T) {
	if got := Fold(Sum([]byte{0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7}, 0)); got != 0xddf2 {
		t.Errorf("%#04x, want 0xddf2", got)
	}
}

// The example of RFC 1624 section 4, and random ones: as if it were computed anew.
func TestUpdate(t *testing.T) {
	if got := Update(0xdd2f, 0x5555, 0x3285); got != 0x0000 {
		t.Errorf("Update(0xdd2f, 0x5555, 0x3285) = %#04x, want 0x0000", got)
	}
	rnd := rand.New(rand.NewPCG(2, 2))
	for range 5000 {
		b := random(rnd, 40)
		check := ^naive(b)
		i := rnd.IntN(20) * 2
		old, new := binary.BigEndian.Uint16(b[i:]), uint16(rnd.Uint32())
		binary.BigEndian.PutUint16(b[i:], new)
		if got, want := Update(check, old, new), ^naive(b); got != want {
			t.Fatalf("Update(%#04x, %#04x, %#04x) = %#04x, want %#04x", check, old, new, got, want)
		}
	}
}

func TestPseudoHeader(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 3))
	for range 1000 {
		src, dst, proto, n := rnd.Uint32(), rnd.Uint32(), uint8(rnd.Uint32()), rnd.IntN(65536)
		b := binary.BigEndian.AppendUint32(nil, src)
		b = binary.BigEndian.AppendUint32(b, dst)
		b = append(b, 0, proto, byte(n>>8), byte(n))
		if got, want := Fold(PseudoHeader(src, dst, proto, n)), naive(b); got != want {
			t.Fatalf("PseudoHeader(%#x, %#x, %d, %d) is %#04x, want %#04x", src, dst, proto, n, got, want)
		}
	}
}

func BenchmarkSum(b *testing.B) {
	for _, n := range []int{20, 64, 256, 512, 1460, 8960} {
		buf, dst := make([]byte, n), make([]byte, n)
		b.Run(fmt.Sprintf("Sum/%d", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			var s uint64
			for b.Loop() {
				s += Sum(buf, 0)
			}
		})
		b.Run(fmt.Sprintf("CopySum/%d", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				CopySum(dst, buf)
			}
		})
		b.Run(fmt.Sprintf("copy/%d", n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				copy(dst, buf)
			}
		})
	}
}
