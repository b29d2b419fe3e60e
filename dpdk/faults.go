package dpdk

import (
	"math/rand/v2"
	"sync/atomic"
)

// Faults are what happens to the frames that a lane receives, or sends, as if the wire had done it. Each is the share of the frames
// that it happens to, from 0 to 1. The same seed draws the same numbers for the same sequence of frames.
type Faults struct {
	Loss      float64 // the frame does not arrive
	Duplicate float64 // it arrives twice
	Reorder   float64 // it arrives behind up to lateFrames that were sent after it
	SentLoss  float64 // a frame that is sent does not get to the port
	Seed      uint64
}

// Any says whether there are faults at all.
func (f Faults) Any() bool { return f.Loss > 0 || f.Duplicate > 0 || f.Reorder > 0 || f.SentLoss > 0 }

// FaultCounts are how many frames each fault has happened to.
type FaultCounts struct{ Lost, Duplicated, Reordered uint64 }

// A frame that is late comes behind one to lateFrames others, but no later than one lateTime-th of a second.
const (
	lateFrames = 8
	lateTime   = 1000
)

// faulty is a driver with faults between it and the lane.
type faulty struct {
	Driver
	Faults
	rnd *rand.Rand

	tried uint32      // frames of the transmit list that the port has refused, so that their fate is known
	seen  uint64      // frames received
	late  []lateFrame // held back, in order of arrival
	ready []Frame     // to be delivered; what one exchange has no room for waits for the next

	lost, duplicated, reordered atomic.Uint64 // written by the lane's thread
}

type lateFrame struct {
	Frame
	after uint64 // how many frames must have been seen
	until uint64 // or what the clock must say
}

// Inject puts faults between a lane and its port. Copies that are made of the lane from then on have them too. The
// second copy of a frame that arrives twice comes from the lane's stock, so without one there are no duplicates. Counts
// may be called from any thread.
func (l *Lane) Inject(f Faults) (counts func() FaultCounts) {
	d := &faulty{Driver: l.drv, Faults: f, rnd: rand.New(rand.NewPCG(f.Seed, 0x6661756c74))}
	l.drv = d
	return func() FaultCounts { return FaultCounts{d.lost.Load(), d.duplicated.Load(), d.reordered.Load()} }
}

func (d *faulty) Exchange(b *Block, op Op) {
	if op&OpTx != 0 && d.SentLoss > 0 {
		d.loseSent(b)
		defer func() { d.tried = b.NTx }()
	}
	if op&OpRx == 0 {
		d.Driver.Exchange(b, op)
		return
	}
	most := min(b.RxMax, RxCap)
	b.RxMax = most - min(most, uint32(len(d.ready)))
	d.Driver.Exchange(b, op)
	b.RxMax = most
	for _, f := range b.Rx[:b.NRx] {
		d.arrived(b, f)
		d.overdue(b.TSC)
	}
	d.overdue(b.TSC)
	n := copy(b.Rx[:most], d.ready)
	d.ready = d.ready[:copy(d.ready, d.ready[n:])]
	b.NRx = uint32(n)
}

// loseSent takes frames out of the transmit list. One that the sender keeps (TxRetain) is the sender's to release.
func (d *faulty) loseSent(b *Block) {
	n := min(d.tried, b.NTx)
	for _, f := range b.Tx[n:b.NTx] {
		if d.rnd.Float64() >= d.SentLoss {
			b.Tx[n] = f
			n++
			continue
		}
		d.lost.Add(1)
		if f.Flags&TxRetain == 0 {
			release(d.Driver, b, f.Handle)
		}
	}
	b.NTx = n
}

// arrived decides what becomes of a frame. The same numbers are drawn for each, needed or not, so that one fault's share
// does not change whom the others happen to.
func (d *faulty) arrived(b *Block, f Frame) {
	d.seen++
	lose, duplicate, reorder, by := d.rnd.Float64(), d.rnd.Float64(), d.rnd.Float64(), d.rnd.Uint64N(lateFrames)
	switch {
	case lose < d.Loss:
		d.lost.Add(1)
		release(d.Driver, b, f.Handle)
		return
	case reorder < d.Reorder:
		d.reordered.Add(1)
		d.late = append(d.late, lateFrame{f, d.seen + 1 + by, b.TSC + d.Hz()/lateTime})
	default:
		d.ready = append(d.ready, f)
	}
	if duplicate < d.Duplicate && b.NStock > 0 {
		if c := &b.Stock[b.NStock-1]; f.Len <= c.Len {
			b.NStock--
			copy(Bytes(c.Addr, int(f.Len)), f.Bytes())
			d.duplicated.Add(1)
			d.ready = append(d.ready, Frame{c.Handle, c.Addr, f.Len, f.Flags})
		}
	}
}

// overdue lets the frames go that were held back for long enough.
func (d *faulty) overdue(now uint64) {
	held := d.late[:0]
	for _, f := range d.late {
		if d.seen < f.after && now < f.until {
			held = append(held, f)
			continue
		}
		d.ready = append(d.ready, f.Frame)
	}
	d.late = held
}

// release puts a buffer on the free list; what Lane.Release does, for a driver in the middle of an exchange. The free list
// has room on entry, as Lane.Release leaves it.
func release(under Driver, b *Block, h Handle) {
	b.Free[b.NFree] = h
	if b.NFree++; b.NFree == FreeCap {
		under.Exchange(b, OpFree)
	}
}

// giveBack puts the frames that the lane has not been given on its free list.
func (d *faulty) giveBack(b *Block) {
	for _, f := range d.late {
		release(d.Driver, b, f.Handle)
	}
	for _, f := range d.ready {
		release(d.Driver, b, f.Handle)
	}
	d.late, d.ready = nil, nil
}
