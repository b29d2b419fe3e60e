package ring

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
)

// model drives a ring and a slice with the same operations, which are the bytes of ops, and compares the two.
func model(t *testing.T, capacity int, start uint32, ops []byte) {
	t.Helper()
	r := New[int](capacity)
	r.prod.own.Store(start)
	r.prod.other = start
	r.cons.own.Store(start)
	r.cons.other = start

	var want []int
	next := 1
	buf := make([]int, 2*r.Cap())
	for i, op := range ops {
		n := int(op>>3) % (len(buf) + 1)
		switch op & 7 {
		case 0, 1:
			if ok := r.Push(next); ok != (len(want) < r.Cap()) {
				t.Fatalf("step %d: push with %d of %d: %v", i, len(want), r.Cap(), ok)
			} else if ok {
				want = append(want, next)
				next++
			}
		case 2, 3:
			vs := buf[:n]
			for k := range vs {
				vs[k] = next + k
			}
			got := r.PushBulk(vs)
			if got != min(n, r.Cap()-len(want)) {
				t.Fatalf("step %d: push of %d with %d of %d took %d", i, n, len(want), r.Cap(), got)
			}
			want = append(want, vs[:got]...)
			next += got
		case 4:
			v, ok := r.Pop()
			if ok != (len(want) > 0) || ok && v != want[0] {
				t.Fatalf("step %d: pop gave %d, %v; want %v", i, v, ok, want)
			}
			if ok {
				want = want[1:]
			}
		case 5:
			got := r.PopBulk(buf[:n])
			if got != min(n, len(want)) || !slices.Equal(buf[:got], want[:got]) {
				t.Fatalf("step %d: pop of %d gave %v; want %v", i, n, buf[:got], want)
			}
			want = want[got:]
		default:
			p, ok := r.Peek()
			if ok != (len(want) > 0) || ok && *p != want[0] {
				t.Fatalf("step %d: peek gave %v; want %v", i, ok, want)
			}
			n = min(n, len(want))
			r.Release(n)
			want = want[n:]
		}
		if r.Len() != len(want) {
			t.Fatalf("step %d: length %d, want %d", i, r.Len(), len(want))
		}
	}
	if got := r.PopBulk(buf); !slices.Equal(buf[:got], want) {
		t.Fatalf("left over: %v, want %v", buf[:got], want)
	}
	if slices.ContainsFunc(r.buf, func(v int) bool { return v != 0 }) {
		t.Fatalf("an empty ring still holds %v", r.buf)
	}
}

func TestSPSCModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		ops := make([]byte, 500)
		for i := range ops {
			ops[i] = byte(rnd.Uint32())
		}
		model(t, 1+rnd.IntN(20), rnd.Uint32(), ops)
		model(t, 1+rnd.IntN(20), -rnd.Uint32N(100), ops) // wraps at 2^32
	}
}

func FuzzSPSC(f *testing.F) {
	f.Add(uint8(1), uint32(0), []byte{0, 0, 4, 4})
	f.Add(uint8(8), ^uint32(0)-3, []byte{0, 0x42, 5, 0x45, 6, 0xff, 0x7a})
	f.Fuzz(func(t *testing.T, capacity uint8, start uint32, ops []byte) {
		model(t, 1+int(capacity)%32, start, ops)
	})
}

func TestSPSCCapacity(t *testing.T) {
	for _, c := range [][2]int{{1, 1}, {2, 2}, {3, 4}, {4, 4}, {5, 8}, {1000, 1024}} {
		if got := New[byte](c[0]).Cap(); got != c[1] {
			t.Errorf("New(%d).Cap() = %d, want %d", c[0], got, c[1])
		}
	}
	mustPanic(t, "New(0)", func() { New[byte](0) })
	mustPanic(t, "New(2^30+1)", func() { New[byte](maxCap + 1) })
}

func TestSPSCReleaseTooMany(t *testing.T) {
	r := New[int](4)
	r.Push(1)
	mustPanic(t, "Release(2) of 1", func() { r.Release(2) })
	mustPanic(t, "Release(-1)", func() { r.Release(-1) })
	r.Release(1)
	mustPanic(t, "Release(1) of 0", func() { r.Release(1) })
}

// Two threads, singly and in bulk, across the wrap at 2^32: every value arrives once and in order, complete.
func TestSPSCTwoThreads(t *testing.T) {
	type item struct{ n, check int }
	total := 200_000
	if testing.Short() {
		total = 20_000
	}
	r := New[item](64)
	start := ^uint32(0) - uint32(total/2)
	r.prod.own.Store(start)
	r.prod.other = start
	r.cons.own.Store(start)
	r.cons.other = start

	done := make(chan struct{})
	go func() {
		defer close(done)
		var vs [24]item
		rnd := rand.New(rand.NewPCG(3, 4))
		for n := 0; n < total; {
			k := min(rnd.IntN(len(vs)+1), total-n)
			for i := range vs[:k] {
				vs[i] = item{n + i, ^(n + i)}
			}
			got := 0
			if k == 1 {
				if r.Push(vs[0]) {
					got = 1
				}
			} else {
				got = r.PushBulk(vs[:k])
			}
			n += got
			if got == 0 {
				runtime.Gosched()
			}
		}
	}()

	var vs [24]item
	rnd := rand.New(rand.NewPCG(5, 6))
	for n := 0; n < total; {
		got := 0
		switch k := rnd.IntN(len(vs)); k {
		case 0:
			if p, ok := r.Peek(); ok {
				vs[0], got = *p, 1
				r.Release(1)
			}
		case 1:
			if v, ok := r.Pop(); ok {
				vs[0], got = v, 1
			}
		default:
			got = r.PopBulk(vs[:k])
		}
		for i, v := range vs[:got] {
			if v.n != n+i || v.check != ^v.n {
				t.Fatalf("entry %d is %+v", n+i, v)
			}
		}
		if l := r.Len(); l < 0 || l > r.Cap() {
			t.Fatalf("length %d", l)
		}
		n += got
		if got == 0 {
			runtime.Gosched()
		}
	}
	<-done
}

func TestSPSCAllocatesNothing(t *testing.T) {
	r := New[Entry](64)
	var vs [32]Entry
	if n := testing.AllocsPerRun(100, func() {
		r.Push(Entry{})
		r.PushBulk(vs[:])
		r.Peek()
		r.Pop()
		r.PopBulk(vs[:])
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s: no panic", what)
		}
	}()
	f()
}

func BenchmarkSPSC(b *testing.B) {
	b.Run("one", func(b *testing.B) {
		r := New[Entry](1024)
		for b.Loop() {
			r.Push(Entry{})
			r.Pop()
		}
	})
	b.Run("bulk32", func(b *testing.B) {
		r := New[Entry](1024)
		var vs [32]Entry
		for b.Loop() {
			r.PushBulk(vs[:])
			r.PopBulk(vs[:])
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/32, "ns/entry")
	})
}
