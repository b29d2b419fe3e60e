package wire

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// CopyAhead copies what it is told to and nothing else, wherever source and target lie, and whatever the hints are.
func TestCopyAhead(t *testing.T) {
	const guard = 64
	r := rand.New(rand.NewPCG(1, 2))
	src, dst, want := make([]byte, 12000), make([]byte, 12000), make([]byte, 12000)
	for i := range src {
		src[i] = byte(r.Uint32())
	}
	for n := AheadMin; n < 9100; n += 1 + n/100 {
		for range 20 {
			from, to := r.IntN(guard), guard+r.IntN(guard)
			for i := range dst {
				dst[i], want[i] = 0xa5, 0xa5
			}
			copy(want[to:], src[from:from+n])
			hints := [...]uintptr{At(src), At(dst) + uintptr(to), 0, 1, ^uintptr(0), 1 << 63, uintptr(r.Uint64())}
			CopyAhead(dst[to:to+n], src[from:from+n], hints[r.IntN(len(hints))], hints[r.IntN(len(hints))])
			if !bytes.Equal(dst, want) {
				t.Fatalf("%d bytes from offset %d to offset %d", n, from, to)
			}
		}
	}
}
