package stack_test

import (
	"net/netip"
	"testing"
	"unsafe"

	"ndpip/dpdk"
	"ndpip/stack"
	"ndpip/tcp"
)

// memPool is packet memory for what has to be fast and to leave no rubbish: benchmarks, and tests that count
// allocations. It is as forgiving as DPDK is; stack/link is the one that finds mistakes.
type memPool struct {
	mem  []byte
	base uintptr
	refs []int32
	free []uint32
}

const (
	memSize = 2048 + 128
	memHead = 128
)

func newMemPool(n int) *memPool {
	p := &memPool{mem: make([]byte, n*memSize+64), refs: make([]int32, n), free: make([]uint32, 0, n)}
	p.base = (uintptr(unsafe.Pointer(&p.mem[0])) + 63) &^ 63
	for i := range n {
		p.free = append(p.free, uint32(i))
	}
	return p
}

func (p *memPool) release(h dpdk.Handle) {
	i := uint32(h) - 1
	if p.refs[i]--; p.refs[i] == 0 {
		p.free = append(p.free, i)
	}
}

// memQueue is a wire: what one end has sent and the other not received.
type memQueue struct {
	frames     []dpdk.Frame
	head, tail uint32
}

// memDriver is one lane of an end. As over net_ring, the receiver gets the sender's own buffer.
type memDriver struct {
	pool    *memPool
	out, in *memQueue // in: nil for a lane that does not receive
	tsc     *uint64
	tap     func(frame []byte) // sees what is sent; nil: nobody looks
}

func (d *memDriver) Hz() uint64 { return 1e9 }

func (d *memDriver) Exchange(b *dpdk.Block, op dpdk.Op) {
	p := d.pool
	if op&dpdk.OpFree != 0 {
		for _, h := range b.Free[:b.NFree] {
			p.release(h)
		}
		b.NFree = 0
	}
	if op&dpdk.OpTx != 0 {
		for i := range b.Tx[:b.NTx] {
			f := b.Tx[i]
			if d.tap != nil {
				d.tap(f.Bytes())
			}
			if f.Flags&dpdk.TxRetain != 0 {
				p.refs[f.Handle-1]++
			}
			f.Flags = 0
			d.out.frames[d.out.tail%uint32(len(d.out.frames))] = f
			d.out.tail++
		}
		b.TxSent += uint64(b.NTx)
		b.NTx = 0
	}
	if op&dpdk.OpStock != 0 {
		for b.NStock < b.Want && len(p.free) > 0 {
			i := p.free[len(p.free)-1]
			p.free = p.free[:len(p.free)-1]
			p.refs[i] = 1
			b.Stock[b.NStock] = dpdk.Frame{Handle: dpdk.Handle(i + 1), Addr: p.base + uintptr(i)*memSize + memHead, Len: memSize - memHead}
			b.NStock++
		}
	}
	b.NRx = 0
	if op&dpdk.OpRx != 0 {
		*d.tsc += 1000
		b.TSC = *d.tsc
		for d.in != nil && b.NRx < b.RxMax && d.in.head != d.in.tail {
			b.Rx[b.NRx] = d.in.frames[d.in.head%uint32(len(d.in.frames))]
			b.NRx++
			d.in.head++
		}
	}
}

// memEnds is two stacks joined by memory, with one connection between them.
type memEnds struct {
	a, b *stack.Stack
	x, y *tcp.Conn
	mss  int
	tsc  *uint64 // the clock, in ns
}

// burstLen is how many segments the benchmarks move at once.
const burstLen = 32

func newMemEnds(t testing.TB, mss int, sum stack.Checksum) *memEnds {
	t.Helper()
	return newMemEndsWith(t, mss, sum, 0, nil)
}

// newMemEndsWith is newMemEnds with stack.Config.Archive, and with somebody who sees the frames.
func newMemEndsWith(t testing.TB, mss int, sum stack.Checksum, archive int, tap func([]byte)) *memEnds {
	t.Helper()
	pool := newMemPool(4096)
	ab, ba := &memQueue{frames: make([]dpdk.Frame, 4096)}, &memQueue{frames: make([]dpdk.Frame, 4096)}
	tsc := new(uint64)
	*tsc = 1e9
	mk := func(n byte, out, in *memQueue) *stack.Stack {
		lane := func(in *memQueue) dpdk.Lane {
			return dpdk.NewLane(&dpdk.Block{RxMax: 32}, &memDriver{pool, out, in, tsc, tap})
		}
		return stack.New(stack.Config{MAC: stack.MAC{2, 0, 0, 0, 0, n}, Addr: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, n}), 24),
			Checksum: sum, Seed: uint64(n), Archive: archive}, lane(in), lane(nil))
	}
	e := &memEnds{a: mk(1, ab, ba), b: mk(2, ba, ab), mss: mss, tsc: tsc}
	l, errno := e.b.Listen(0, 7, 16, stack.Options{}, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	if e.x, errno = e.a.Connect(0, e.b.Addr(), 7, stack.Options{MaxTxSeg: mss}, 1); errno != 0 {
		t.Fatal(errno)
	}
	for i := 0; e.y == nil; i++ {
		if i == 100 {
			t.Fatalf("no connection: %+v %+v", e.a.Counters(), e.b.Counters())
		}
		e.a.Turn()
		e.b.Turn()
		e.y = e.b.Accept(l)
	}
	e.a.Turn()
	return e
}

func (e *memEnds) write(t testing.TB, out []byte) {
	if n, errno := e.a.Send(e.x, out); n != len(out) {
		t.Fatalf("write moved %d of %d bytes (%v): %+v", n, len(out), errno, e.a.Counters())
	}
}

func (e *memEnds) read(t testing.TB, in []byte) {
	if n, errno := e.b.Recv(e.y, in); n != len(in) {
		t.Fatalf("read moved %d of %d bytes (%v): %+v", n, len(in), errno, e.b.Counters())
	}
}
