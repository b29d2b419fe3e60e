//go:build cgo

package dpdk

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// threadTime is how long the calling thread has had a CPU, in nanoseconds.
func threadTime() int64 {
	var r syscall.Rusage
	_ = syscall.Getrusage(1, &r) // RUSAGE_THREAD
	return r.Utime.Nano() + r.Stime.Nano()
}

// cpuTime adds the calling thread's own time to a benchmark, for machines that are busy with other things too.
func cpuTime(b *testing.B) (done func()) {
	start := threadTime()
	return func() { b.ReportMetric(float64(threadTime()-start)/float64(b.N), "cpu-ns/op") }
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

// BenchmarkTwoThreads has one thread take, fill and send buffers of 1460 bytes, and another receive, copy out and free
// them: all buffers go from one lcore to the other and come back through the pool. cpu-ns is of both together.
func BenchmarkTwoThreads(b *testing.B) {
	pool := newPool(b, 8191)
	ia, ib := ringPorts(b, 512)
	tx := newLane(b, openPort(b, ia, PortConf{RxPool: pool}), 0, 0, pool)
	rx := newLane(b, openPort(b, ib, PortConf{RxPool: pool}), 0, 0, nil)
	var wg sync.WaitGroup
	var cpu atomic.Int64
	buf, sent := make([]byte, 1460), 0
	wg.Go(func() {
		runtime.LockOSThread()
		defer func(start int64) { cpu.Add(threadTime() - start) }(threadTime())
		lcoreLoop(b, func() bool {
			tx.Exchange(OpStock)
			for range min(32, tx.TxRoom(), b.N-sent) {
				f, ok := tx.Take()
				if !ok {
					break
				}
				f.Len = uint32(copy(f.Bytes(), buf))
				tx.Queue(f)
				sent++
			}
			tx.Exchange(OpTx)
			if tx.NTx > 0 {
				tx.Exchange(OpYield)
			}
			return sent < b.N || tx.NTx > 0
		})
	})
	dst, got := make([]byte, 1460), 0
	wg.Go(func() {
		runtime.LockOSThread()
		defer func(start int64) { cpu.Add(threadTime() - start) }(threadTime())
		lcoreLoop(b, func() bool {
			rx.Exchange(OpFree | OpRx)
			if rx.NRx == 0 {
				rx.Exchange(OpYield)
			}
			for i := range rx.NRx {
				copy(dst, rx.Rx[i].Bytes())
				rx.Release(rx.Rx[i].Handle)
			}
			got += int(rx.NRx)
			return got < b.N
		})
		rx.Exchange(OpFree)
	})
	wg.Wait()
	b.ReportMetric(float64(cpu.Load())/float64(b.N), "cpu-ns/op")
}
