package main

import (
	"time"

	"ndpip/dpdk"
)

// burst is how many segments each round of the lockstep benchmarks moves.
const burst = 32

// rounds is how many bursts one sample takes: a fraction of a millisecond, so that most samples see no other thread.
const rounds = 64

// floor is the loop that everything is measured against: allocate, fill, send over a net_ring pair, receive, copy out,
// free; bursts of 32, four calls per burst.
type floor struct {
	tx, rx   *dpdk.Lane
	size     int
	head     []byte
	src, dst []byte
}

// newFloor makes the loop for frames of size bytes of payload behind 54 bytes of headers.
func newFloor(tx, rx *dpdk.Lane, size int) *floor {
	const head = 54
	tx.Want, rx.RxMax = burst, burst
	return &floor{tx, rx, size, make([]byte, head), make([]byte, burst*size), make([]byte, burst*size)}
}

// sample gives the ns per frame of one sample.
func (l *floor) sample() (float64, error) {
	tx, rx := l.tx, l.rx
	start := time.Now()
	for range rounds {
		tx.Exchange(dpdk.OpStock)
		for i := range burst {
			f, _ := tx.Take()
			f.Len = uint32(len(l.head) + l.size)
			b := f.Bytes()
			copy(b, l.head)
			copy(b[len(l.head):], l.src[i*l.size:(i+1)*l.size])
			tx.Queue(f)
		}
		tx.Exchange(dpdk.OpTx)
		rx.Exchange(dpdk.OpRx)
		for i := range rx.Rx[:rx.NRx] {
			f := &rx.Rx[i]
			copy(l.dst[i*l.size:(i+1)*l.size], f.Bytes()[len(l.head):])
			rx.Release(f.Handle)
		}
		rx.Exchange(dpdk.OpFree)
	}
	return float64(time.Since(start).Nanoseconds()) / (rounds * burst), nil
}
