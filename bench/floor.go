package main

import (
	"time"

	"ndpip/dpdk"
)

// floor is the loop that everything is measured against: allocate, fill, send over a net_ring pair, receive, copy out,
// free; bursts of 32, a call into C for each of the four steps that DPDK takes.
//
// It is what no stack can do without, in its plainest form: the frame begins where DPDK's buffer does. It fills its
// frames from an application's buffer of a burst's size and copies them out to another, as the applications of lockstep
// do; the two copies are most of its time at 1460 bytes, where it takes 80 to 115 ns, by the machine. A loop that copies
// one and the same frame 32 times, in and out, is the row floor-hot: its source and its target stay in the first-level
// cache, which no application's data does.
type floor struct {
	tx, rx   *dpdk.Lane
	size     int
	step     int // from one payload to the next in src and dst; 0: all are the same
	head     []byte
	src, dst []byte
}

// The headers' length, and what the stacks leave free in front of them so that the payload begins on a cache line.
const (
	headLen  = 54
	headLead = 64 - headLen
)

// newFloor makes the loop for frames of size bytes of payload behind 54 bytes of headers.
func newFloor(p *pair, size int) *floor {
	p.a.app.Want, p.b.worker.RxMax = burst, burst
	return &floor{p.a.app, p.b.worker, size, size, make([]byte, headLen), make([]byte, burst*size), make([]byte, burst*size)}
}

// floorAt is the sampler of the floor at a row's MSS.
func (e *env) floorAt(mss int) sampler { return one(newFloor(e.pair, mss).sample) }

// sample gives the ns per frame of one sample.
func (l *floor) sample() (float64, error) {
	tx, rx := l.tx, l.rx
	start := time.Now()
	for range rounds {
		tx.Exchange(dpdk.OpStock)
		for i := range burst {
			f, _ := tx.Take()
			f.Len = uint32(headLen + l.size)
			b := f.Bytes()
			copy(b, l.head)
			copy(b[headLen:], l.src[i*l.step:i*l.step+l.size])
			tx.Queue(f)
		}
		tx.Exchange(dpdk.OpTx)
		rx.Exchange(dpdk.OpRx)
		for i := range rx.Rx[:rx.NRx] {
			f := &rx.Rx[i]
			copy(l.dst[i*l.step:i*l.step+l.size], f.Bytes()[headLen:])
			rx.Release(f.Handle)
		}
		rx.Exchange(dpdk.OpFree)
	}
	return float64(time.Since(start).Nanoseconds()) / (rounds * burst), nil
}

func runFloorHot(e *env, p point) ([]result, error) {
	hot := newFloor(e.pair, p.MSS)
	hot.step = 0
	all, err := measure(e.ctx, e.each, e.floorAt(p.MSS), one(hot.sample))
	if err != nil {
		return nil, err
	}
	return []result{newResult("floor-hot", p, all[0]).counted()}, nil
}
