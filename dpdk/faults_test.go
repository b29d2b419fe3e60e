package dpdk

import (
	"encoding/binary"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// counter is a port that receives frames with the numbers 0, 1, 2 … in them, and counts its buffers.
type counter struct {
	mem  [2048][8]byte
	free []Handle
	next uint64
	last uint64
}

func newCounter() *counter {
	c := &counter{}
	for i := range c.mem {
		c.free = append(c.free, Handle(i+1))
	}
	return c
}

func (c *counter) Hz() uint64 { return 1e6 }

func (c *counter) take() Frame {
	h := c.free[0]
	c.free = c.free[1:]
	return Frame{Handle: h, Addr: uintptr(unsafe.Pointer(&c.mem[h-1])), Len: 8}
}

func (c *counter) Exchange(b *Block, op Op) {
	if op&OpFree != 0 {
		c.free = append(c.free, b.Free[:b.NFree]...)
		b.NFree = 0
	}
	for op&OpStock != 0 && b.NStock < b.Want {
		b.Stock[b.NStock] = c.take()
		b.NStock++
	}
	b.NRx = 0
	if op&OpRx != 0 {
		for c.next < c.last && b.NRx < b.RxMax {
			f := c.take()
			binary.NativeEndian.PutUint64(f.Bytes(), c.next)
			b.Rx[b.NRx] = f
			b.NRx++
			c.next++
		}
		b.TSC++
	}
}

// run receives n frames with faults, and gives their numbers as they came. Every buffer must be back at the end.
func (c *counter) run(t *testing.T, n uint64, burst uint32, f Faults) (got []uint64, counts FaultCounts) {
	t.Helper()
	c.last = c.next + n
	l := NewLane(&Block{RxMax: burst, Want: StockCap}, c)
	read := l.Inject(f)
	for range 2*n + 3000 {
		l.Exchange(OpFree | OpStock | OpRx)
		require.LessOrEqual(t, l.NRx, burst)
		require.Equal(t, burst, l.RxMax)
		for _, f := range l.Rx[:l.NRx] {
			got = append(got, binary.NativeEndian.Uint64(f.Bytes()))
			l.Release(f.Handle)
		}
	}
	for l.NStock > 0 {
		f, _ := l.Take()
		l.Release(f.Handle)
	}
	l.drv.(*faulty).giveBack(l.Block)
	l.Exchange(OpFree)
	require.Len(t, c.free, len(c.mem), "buffers")
	return got, read()
}

func TestFaults(t *testing.T) {
	const n = 20000
	for name, f := range map[string]Faults{
		"none": {}, "loss": {Loss: 0.1}, "duplicates": {Duplicate: 0.1}, "reordering": {Reorder: 0.1},
		"all": {Loss: 0.2, Duplicate: 0.3, Reorder: 0.4}, "everything": {Duplicate: 1, Reorder: 1}, "nothing arrives": {Loss: 1},
	} {
		for _, burst := range []uint32{1, 32, RxCap} {
			t.Run(name, func(t *testing.T) {
				got, counts := newCounter().run(t, n, burst, f)
				require.EqualValues(t, n-counts.Lost+counts.Duplicated, len(got))
				require.InDelta(t, n*f.Loss, counts.Lost, n/50)
				require.InDelta(t, (n-float64(counts.Lost))*f.Duplicate, counts.Duplicated, n/50)
				require.InDelta(t, (n-float64(counts.Lost))*f.Reorder, counts.Reordered, n/50)

				times, behind, back := map[uint64]int{}, 0, uint64(0)
				for _, v := range got {
					if times[v]++; times[v] == 1 && v < back {
						behind++
					}
					back = max(back, v)
				}
				for v, k := range times {
					require.LessOrEqual(t, k, 2, "frame %d", v)
				}
				require.EqualValues(t, n-counts.Lost, len(times))
				require.Equal(t, f.Reorder > 0 && f.Reorder < 1, behind > 0)

				again, _ := newCounter().run(t, n, burst, f)
				require.Equal(t, got, again, "the same seed")
			})
		}
	}
}

// A frame that is held back comes though nothing follows it, and one that has not come is given back with the lane.
func TestFaultsLate(t *testing.T) {
	c := newCounter()
	c.last = 1
	l := NewLane(&Block{RxMax: 32}, c)
	l.Inject(Faults{Reorder: 1})
	turns := 0
	for ; l.NRx == 0; turns++ {
		require.Less(t, turns, 2000)
		l.Exchange(OpRx)
	}
	require.InDelta(t, 1e6/lateTime, turns, 2, "a millisecond")
	l.Release(l.Rx[0].Handle)

	c.last = 2
	l.Exchange(OpRx)
	require.Zero(t, l.NRx)
	l.RxMax = 0
	l.Exchange(OpRx)
	require.Zero(t, l.NRx)
	l.drv.(*faulty).giveBack(l.Block)
	l.Exchange(OpFree)
	require.Len(t, c.free, len(c.mem))
}
