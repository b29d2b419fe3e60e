package dpdk

import (
	"fmt"
	"runtime"
	"testing"
)

// floorRig is a net_ring pair with a lane at each end, on the calling thread, which becomes an lcore.
func BenchmarkCall(b *testing.B) {
	_, l, _ := ringRig(b, "call")
	b.ResetTimer()
	for range b.N {
		l.Exchange(0)
	}
}

func ringRig(b testing.TB, name string) (*Lane, *Lane, *Mempool) {
	b.Helper()
	runtime.LockOSThread()
	b.Cleanup(runtime.UnlockOSThread)
	if _, err := RegisterLcore(-1); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(UnregisterLcore)
	pool, err := NewMempool(name, 2047, 0, -1, -1)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Free)
	ia, ib, err := RingPair(name, 1024)
	if err != nil {
		b.Fatal(err)
	}
	var lanes []*Lane
	for _, id := range []uint16{ia, ib} {
		p, err := ConfigurePort(id, PortConf{RxPool: pool})
		if err != nil {
			b.Fatal(err)
		}
		if err := p.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			if err := p.Stop(); err != nil {
				b.Error(err)
			}
			if err := p.Close(); err != nil {
				b.Error(err)
			}
		})
		l, err := p.NewLane(0, 0, pool)
		if err != nil {
			b.Fatal(err)
		}
		lanes = append(lanes, l)
	}
	return lanes[0], lanes[1], pool
}

// BenchmarkFloor is the loop that the rest of the stack is measured against: allocate, fill, send over a net_ring pair,
// receive, copy out, free; bursts of 32, all on one core. "calls4" makes four exchanges per burst, "calls2" merges them.
func BenchmarkFloor(b *testing.B) {
	for _, calls := range []int{4, 3, 2} {
		for _, size := range []int{64, 256, 512, 1460} {
			b.Run(fmt.Sprintf("calls=%d/payload=%d", calls, size), func(b *testing.B) {
				floor(b, calls, size)
			})
		}
	}
}

func floor(b *testing.B, calls, size int) {
	const burst, head = 32, 54
	tx, rx, _ := ringRig(b, "floor")
	tx.Want, rx.RxMax = burst, burst
	src := make([]byte, head+size)
	dst := make([]byte, head+size)
	b.SetBytes(int64(size))
	b.ResetTimer()
	for n := 0; n < b.N; n += burst {
		if calls != 2 {
			tx.Exchange(OpStock)
		}
		for range burst {
			f, ok := tx.Take()
			if !ok {
				if n == 0 && calls == 2 {
					tx.Exchange(OpStock)
					continue
				}
				b.Fatal("no buffer")
			}
			f.Len = uint32(head + size)
			copy(f.Bytes(), src)
			tx.Queue(f)
		}
		switch calls {
		case 2:
			tx.Exchange(OpTx | OpStock)
		default:
			tx.Exchange(OpTx)
		}
		if calls == 4 {
			rx.Exchange(OpRx)
		} else {
			rx.Exchange(OpFree | OpRx)
		}
		for i := range rx.NRx {
			f := &rx.Rx[i]
			copy(dst, f.Bytes())
			rx.Release(f.Handle)
		}
		if calls == 4 {
			rx.Exchange(OpFree)
		}
	}
	b.StopTimer()
}
