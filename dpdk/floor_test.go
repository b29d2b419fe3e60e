//go:build cgo

package dpdk

import (
	"fmt"
	"syscall"
	"testing"
)

// cpuTime adds the calling thread's own time to a benchmark, for machines that are busy with other things too.
func cpuTime(b *testing.B) (done func()) {
	now := func() int64 {
		var r syscall.Rusage
		_ = syscall.Getrusage(1, &r) // RUSAGE_THREAD
		return r.Utime.Nano() + r.Stime.Nano()
	}
	start := now()
	return func() { b.ReportMetric(float64(now()-start)/float64(b.N), "cpu-ns/op") }
}

// BenchmarkCall is what one exchange costs that does nothing.
func BenchmarkCall(b *testing.B) {
	l, _, _ := ringLanes(b, 255, 64)
	b.ResetTimer()
	defer cpuTime(b)()
	for range b.N {
		l.Exchange(0)
	}
}

// BenchmarkFloor is the loop that the rest of the stack is measured against: allocate, fill, send over a net_ring pair,
// receive, copy out, free; bursts of 32, all on one core. With 4 exchanges per burst each step has its own; with 3 the
// receiver frees as it receives, with 2 the sender also stocks up as it sends.
func BenchmarkFloor(b *testing.B) {
	for _, calls := range []int{4, 3, 2} {
		for _, size := range []int{64, 256, 512, 1460} {
			b.Run(fmt.Sprintf("calls=%d/payload=%d", calls, size), func(b *testing.B) { floor(b, calls, size) })
		}
	}
}

func floor(b *testing.B, calls, size int) {
	const burst, head = 32, 54
	tx, rx, _ := ringLanes(b, 8191, 1024)
	tx.Want, rx.RxMax = burst, burst
	src, dst := make([]byte, head+size), make([]byte, head+size)
	tx.Exchange(OpStock)
	b.SetBytes(int64(size))
	b.ResetTimer()
	defer cpuTime(b)()
	for n := 0; n < b.N; n += burst {
		if calls > 2 {
			tx.Exchange(OpStock)
		}
		for range burst {
			f, ok := tx.Take()
			if !ok {
				b.Fatal("no buffer")
			}
			f.Len = uint32(head + size)
			copy(f.Bytes(), src)
			tx.Queue(f)
		}
		if calls > 2 {
			tx.Exchange(OpTx)
		} else {
			tx.Exchange(OpTx | OpStock)
		}
		if calls > 3 {
			rx.Exchange(OpRx)
		} else {
			rx.Exchange(OpFree | OpRx)
		}
		for i := range rx.NRx {
			f := &rx.Rx[i]
			copy(dst, f.Bytes())
			rx.Release(f.Handle)
		}
		if calls > 3 {
			rx.Exchange(OpFree)
		}
	}
}

// BenchmarkHeld frees each frame 6144 frames after it arrived, as a sender does that waits for acknowledgements: then
// what is freed is no longer in the nearest caches.
func BenchmarkHeld(b *testing.B) {
	const burst, hold = 32, 6144
	tx, rx, _ := ringLanes(b, 8191, 1024)
	tx.Want, rx.RxMax = burst, burst
	var held [hold]Handle
	pos := 0
	tx.Exchange(OpStock)
	b.ResetTimer()
	defer cpuTime(b)()
	for n := 0; n < b.N; n += burst {
		for range burst {
			f, ok := tx.Take()
			if !ok {
				b.Fatal("no buffer")
			}
			f.Len = 64
			tx.Queue(f)
		}
		tx.Exchange(OpTx | OpStock)
		rx.Exchange(OpFree | OpRx)
		for i := range rx.NRx {
			if h := held[pos]; h != 0 {
				rx.Release(h)
			}
			held[pos] = rx.Rx[i].Handle
			pos = (pos + 1) % hold
		}
	}
	b.StopTimer()
	for _, h := range held {
		if h != 0 {
			rx.Release(h)
		}
	}
	rx.Exchange(OpFree)
}
