package ring

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkStageRing is a burst of 32 entries through a connection's ring: written, published with one store, read, and
// given back with another. "go run ./cmd/dev bench --only stage" puts it in its table.
func BenchmarkStageRing(b *testing.B) {
	const burst, entries = 32, 1024
	var s Slab
	base := s.Get(entries)
	var tail, head atomic.Uint32
	var sum uint64
	took := make([]time.Duration, 0, 10000)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		start := time.Now()
		i := tail.Load()
		for k := range uint32(burst) {
			*At(base, entries-1, i+k) = Make(uintptr(i), 0x10000+uintptr(k)<<11, 64)
		}
		tail.Store(i + burst)
		j := head.Load()
		for n := tail.Load(); j != n; j++ {
			e := At(base, entries-1, j)
			sum += uint64(e.Handle) + uint64(e.Addr()) + uint64(e.Len())
		}
		head.Store(j)
		if d := time.Since(start); len(took) < cap(took) {
			took = append(took, d)
		}
	}
	slices.Sort(took) // the lower quartile: other threads can only make a burst longer
	b.ReportMetric(float64(took[len(took)/4].Nanoseconds())/burst, "ns/segment")
	if sum == 0 {
		b.Fatal("nothing was read")
	}
}
