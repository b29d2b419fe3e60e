package tcp

import (
	"unsafe"

	"ndpip/ring"
)

// sorted is a list in order of sequence numbers, in a ring of a power of two places in a slab's memory. Both ends are where
// most happens; in the middle, the shorter side moves.
type sorted[T any] struct {
	base          uintptr
	mask, head, n uint32
}

func (q *sorted[T]) set(base uintptr, places uint32) { *q = sorted[T]{base: base, mask: places - 1} }

func (q *sorted[T]) at(i uint32) *T {
	return ring.As[T](q.base + uintptr((q.head+i)&q.mask)*unsafe.Sizeof(*new(T)))
}

func (q *sorted[T]) full() bool { return q.n > q.mask }

// insert puts v at place i. There is room.
func (q *sorted[T]) insert(i uint32, v T) {
	q.n++
	if i < q.n/2 {
		q.head--
		for k := uint32(0); k < i; k++ {
			*q.at(k) = *q.at(k + 1)
		}
	} else {
		for k := q.n - 1; k > i; k-- {
			*q.at(k) = *q.at(k - 1)
		}
	}
	*q.at(i) = v
}

// cut takes the n elements from place i on away.
func (q *sorted[T]) cut(i, n uint32) {
	if n == 0 {
		return
	}
	if i < q.n-i-n {
		for k := i; k > 0; k-- {
			*q.at(k - 1 + n) = *q.at(k - 1)
		}
		q.head += n
	} else {
		for k := i; k+n < q.n; k++ {
			*q.at(k) = *q.at(k + n)
		}
	}
	q.n -= n
}

// find gives the first place whose element ends behind seq; n if there is none.
func find[T interface{ until() Seq }](q *sorted[T], seq Seq) uint32 {
	lo, hi := uint32(0), q.n
	if hi > 0 && (*q.at(hi - 1)).until().LessEq(seq) {
		return hi
	}
	for lo < hi {
		mid := (lo + hi) / 2
		if seq.Less((*q.at(mid)).until()) {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

// span is a piece of the sequence space, up to end without it.
type span struct{ start, end Seq }

func (s span) until() Seq   { return s.end }
func (s span) size() uint32 { return uint32(s.end - s.start) }

// held is a segment that waits for what is missing before it.
type held struct {
	span
	handle, addr uintptr
}
