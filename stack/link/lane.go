package link

import (
	"fmt"
	"math/rand/v2"
	"runtime"

	"ndpip/dpdk"
)

// driver is what a lane sees of its end.
type driver struct {
	end *End
	rx  bool
	pad *rand.Rand
}

// NewLane makes a lane for one thread. All lanes of an end share its pools and its transmit queue; rx says whether this
// one receives, which one lane should do.
func (e *End) NewLane(rx bool) *dpdk.Lane {
	l := dpdk.NewLane(&dpdk.Block{RxMax: 32}, &driver{e, rx, rand.New(rand.NewPCG(0, 3))})
	return &l
}

// FreeLane gives back what a lane holds: its stock, its free list, and the frames that were not sent. The lane must not
// be used any more.
func (e *End) FreeLane(l *dpdk.Lane) {
	for _, f := range l.Tx[:l.NTx] {
		l.Release(f.Handle)
	}
	l.NTx = 0
	for {
		f, ok := l.Take()
		if !ok {
			break
		}
		l.Release(f.Handle)
	}
	l.Exchange(dpdk.OpFree)
}

// Hz is the rate of TSC: the clock counts nanoseconds.
func (d *driver) Hz() uint64 { return 1e9 }

// Exchange does what a port's driver does in one call.
func (d *driver) Exchange(b *dpdk.Block, op dpdk.Op) {
	if op&dpdk.OpYield != 0 {
		runtime.Gosched()
	}
	e := d.end
	e.link.mu.Lock()
	defer e.link.mu.Unlock()
	if op&dpdk.OpTx != 0 {
		e.transmit(b)
	}
	if op&dpdk.OpFree != 0 {
		for _, h := range b.Free[:b.NFree] {
			e.pool(h, "release").release(h, "release")
		}
		b.NFree = 0
	}
	if op&dpdk.OpStock != 0 {
		e.stock(b)
	}
	b.NRx = 0
	if op&dpdk.OpRx != 0 {
		b.TSC = uint64(e.link.Now())
		if d.rx {
			d.receive(b)
		}
	}
}

func (e *End) stock(b *dpdk.Block) {
	if b.Want > dpdk.StockCap {
		panic(fmt.Sprintf("link: a stock of %d buffers wanted: there is room for %d", b.Want, dpdk.StockCap))
	}
	for b.NStock < b.Want {
		f, ok := e.tx.alloc()
		if !ok {
			b.NoMem++
			return
		}
		b.Stock[b.NStock] = f
		b.NStock++
	}
}

func (e *End) transmit(b *dpdk.Block) {
	now := e.link.Now()
	n := 0
	for i := range b.Tx[:b.NTx] {
		if e.port.TxRing > 0 && e.out.waiting(now) >= e.port.TxRing {
			break
		}
		e.send(&b.Tx[i])
		n++
	}
	if n < int(b.NTx) {
		e.out.refused = true
		e.stats.Refused++
		b.TxRefuse++
	} else if n > 0 {
		e.out.refused = false
	}
	b.TxSent += uint64(n)
	b.NTx = uint32(copy(b.Tx[:], b.Tx[n:b.NTx]))
}

// send puts one frame on the wire and settles the references to its buffer. The wire copies the frame.
func (e *End) send(f *dpdk.Frame) {
	p := e.pool(f.Handle, "transmit")
	mem := p.frame(f)
	if sums := f.Flags & (dpdk.TxIPSum | dpdk.TxTCPSum | dpdk.TxUDPSum); sums != 0 && !e.port.TxChecksum {
		panic(fmt.Sprintf("link: transmit at end %s: checksums asked of a port that does not do them (flags %#x)", e.name, f.Flags))
	}
	keep := f.Flags&dpdk.TxRetain != 0
	if e.port.Hold {
		if keep {
			p.retain(f.Handle) // the port's own; the sender's stays with the sender
		}
		e.out.put(mem, f.Flags, &hold{pool: p, handle: f.Handle, mem: mem})
		return
	}
	e.out.put(mem, f.Flags, nil)
	if !keep {
		p.release(f.Handle, "transmit")
	}
}

func (d *driver) receive(b *dpdk.Block) {
	if b.RxMax > dpdk.RxCap {
		panic(fmt.Sprintf("link: at most %d frames to be received: there is room for %d", b.RxMax, dpdk.RxCap))
	}
	e := d.end
	for b.NRx < b.RxMax {
		in, ok := e.in.take(e.link.Now())
		if !ok {
			return
		}
		f, ok := e.rx.alloc()
		if !ok {
			e.stats.NoBuffer++
			in.done()
			continue
		}
		e.received(in.data)
		room := dpdk.Bytes(f.Addr, int(f.Len))
		n := copy(room, in.data)
		if n < len(in.data) {
			f.Flags |= dpdk.RxChained
		}
		if e.port.RxChecksum {
			f.Flags |= verify(in.data)
		}
		for ; n < min(e.port.Pad, len(room)); n++ {
			room[n] = byte(d.pad.Uint32())
		}
		f.Len = uint32(n)
		in.done()
		b.Rx[b.NRx] = f
		b.NRx++
	}
}
