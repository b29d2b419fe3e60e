package tcp

import (
	"math/rand/v2"
	"slices"
	"testing"

	"ndpip/ring"
)

// A sorted list against a slice.
func TestSorted(t *testing.T) {
	var slab ring.Slab
	var q sorted[span]
	q.set(slab.Get(32), 64)
	var want []span
	rnd := rand.New(rand.NewPCG(1, 2))
	const base = Seq(0xffffff00) // across the wrap
	for range 20000 {
		if s := (span{base + Seq(rnd.IntN(100))*8, 0}); rnd.IntN(2) == 0 && !q.full() {
			s.end = s.start + 4
			i := find(&q, s.start)
			j := uint32(len(want))
			for k := range want {
				if s.start.Less(want[k].end) {
					j = uint32(k)
					break
				}
			}
			if i != j {
				t.Fatalf("found place %d, want %d", i, j)
			}
			q.insert(i, s)
			want = slices.Insert(want, int(i), s)
		} else if len(want) > 0 {
			i := rnd.IntN(len(want))
			n := min(1+rnd.IntN(3), len(want)-i)
			q.cut(uint32(i), uint32(n))
			want = slices.Delete(want, i, i+n)
		}
		for i := range want {
			if *q.at(uint32(i)) != want[i] {
				t.Fatalf("place %d holds %v, want %v", i, *q.at(uint32(i)), want[i])
			}
		}
		if int(q.n) != len(want) {
			t.Fatalf("%d elements, want %d", q.n, len(want))
		}
	}
}
