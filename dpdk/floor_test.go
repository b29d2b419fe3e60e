//go:build cgo

package dpdk

import (
	"fmt"
	"testing"
)

// BenchmarkCall is what one exchange costs that does nothing.
func BenchmarkCall(b *testing.B) {
	l, _, _ := ringLanes(b, 255, 64)
	b.ResetTimer()
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
