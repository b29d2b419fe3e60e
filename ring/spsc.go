// Package ring holds what crosses between two threads: a lock-free queue with one producer and one consumer (SPSC),
// and the memory and the entries of the two rings that each connection has (Slab, Entry).
//
// Nothing here blocks except Slab, which is for opening and closing connections. There is no clock and no I/O.
package ring

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// linePad keeps the two cursors apart. A cache line has 64 bytes on amd64, but Intel's adjacent-line prefetcher loads
// lines in pairs, and some arm64 cores have lines of 128 bytes: with 64 bytes between them, two cores that write one
// cursor each would still take the line away from each other.
const linePad = 128

// maxCap bounds a ring: free-running 32-bit indices tell full from empty as long as the capacity is at most 2^31.
const maxCap = 1 << 30

// cursor is what one side owns: its own index, which the other side reads, and its last look at the other's index.
type cursor struct {
	// own is written by this side alone. It counts entries for ever and wraps at 2^32; the slot is own & mask.
	own atomic.Uint32
	// other is this side's private copy of the other side's index. As indices only grow, an old copy errs on the safe
	// side: it shows fewer free slots, or fewer entries, than there are. It is refreshed only when it shows too few,
	// so most operations do not touch the other side's cache line at all.
	other uint32
	_     [linePad - 8]byte
}

// SPSC is a lock-free queue of T with one producer and one consumer. At any time at most one thread may be in a
// producer's method (Push, PushBulk) and at most one in a consumer's (Pop, PopBulk, Peek, Release); handing a side
// from one thread to another needs synchronisation from outside. Len and Cap may be called from anywhere.
//
// It must not be copied.
type SPSC[T any] struct {
	buf  []T // written by New only
	mask uint32
	_    [linePad]byte
	prod cursor // own = tail: the next slot to fill
	cons cursor // own = head: the next slot to empty
}

// New gives an empty ring for at least capacity entries: the capacity is rounded up to a power of two.
// It panics if capacity is not between 1 and 2^30, as that is a mistake in the program.
func New[T any](capacity int) *SPSC[T] {
	if capacity < 1 || capacity > maxCap {
		panic("ring: capacity must be between 1 and 1<<30")
	}
	n := uint32(1) << bits.Len32(uint32(capacity-1))
	return &SPSC[T]{buf: make([]T, n), mask: n - 1}
}

// free is the number of slots that the producer may fill, refreshed from the consumer if fewer than want are known.
func (r *SPSC[T]) free(tail, want uint32) uint32 {
	n := uint32(len(r.buf)) - (tail - r.prod.other)
	if n < want {
		// Acquire, pairs with the consumer's store in Release: what the consumer did with a slot before it gave the
		// slot back happens before we write into that slot.
		r.prod.other = r.cons.own.Load()
		n = uint32(len(r.buf)) - (tail - r.prod.other)
	}
	return n
}

// avail is the number of entries that the consumer may take, refreshed from the producer if fewer than want are known.
func (r *SPSC[T]) avail(head, want uint32) uint32 {
	n := r.cons.other - head
	if n < want {
		// Acquire, pairs with the producer's store in Push and PushBulk: the producer's writes to the entries happen
		// before we read them.
		r.cons.other = r.prod.own.Load()
		n = r.cons.other - head
	}
	return n
}

// Push appends v. It returns false, and takes nothing, when the ring is full. Producer only.
func (r *SPSC[T]) Push(v T) bool {
	tail := r.prod.own.Load() // our own index: no ordering needed
	if r.free(tail, 1) == 0 {
		return false
	}
	r.buf[tail&r.mask] = v
	// Release, pairs with the load in avail: the entry is complete before the consumer can see it.
	r.prod.own.Store(tail + 1)
	return true
}

// PushBulk appends as many of vs as there is room for, in order, and returns how many. Producer only.
// It publishes once, so a burst costs one store that the other core has to see.
func (r *SPSC[T]) PushBulk(vs []T) int {
	tail := r.prod.own.Load() // our own index: no ordering needed
	n := len(vs)
	if n > len(r.buf) {
		n = len(r.buf)
	}
	n = min(n, int(r.free(tail, uint32(n))))
	if n == 0 {
		return 0
	}
	k := copy(r.buf[tail&r.mask:], vs[:n])
	copy(r.buf, vs[k:n])
	// Release, pairs with the load in avail: all n entries are complete before the consumer can see any of them.
	r.prod.own.Store(tail + uint32(n))
	return n
}

// Pop takes the oldest entry. It returns false when the ring is empty. Consumer only.
func (r *SPSC[T]) Pop() (v T, ok bool) {
	p, ok := r.Peek()
	if ok {
		v = *p
		r.Release(1)
	}
	return v, ok
}

// PopBulk takes at most len(vs) of the oldest entries into vs, in order, and returns how many. Consumer only.
func (r *SPSC[T]) PopBulk(vs []T) int {
	head := r.cons.own.Load() // our own index: no ordering needed
	n := len(vs)
	if n > len(r.buf) {
		n = len(r.buf)
	}
	n = min(n, int(r.avail(head, uint32(n))))
	if n == 0 {
		return 0
	}
	k := copy(vs[:n], r.buf[head&r.mask:])
	copy(vs[k:n], r.buf)
	r.Release(n)
	return n
}

// Peek gives the oldest entry in place, to be read (or changed) until Release. It returns false when the ring is
// empty. Consumer only.
func (r *SPSC[T]) Peek() (*T, bool) {
	head := r.cons.own.Load() // our own index: no ordering needed
	if r.avail(head, 1) == 0 {
		return nil, false
	}
	return &r.buf[head&r.mask], true
}

// Release gives the n oldest entries' slots back to the producer. The slots are cleared first, so that the ring keeps
// nothing alive that has left it. It panics if fewer than n entries are there. Consumer only.
func (r *SPSC[T]) Release(n int) {
	head := r.cons.own.Load() // our own index: no ordering needed
	if n < 0 || n > len(r.buf) || uint32(n) > r.avail(head, uint32(n)) {
		panic("ring: release of more entries than there are")
	}
	i := int(head & r.mask)
	k := min(n, len(r.buf)-i)
	clear(r.buf[i : i+k])
	clear(r.buf[:n-k])
	// Release, pairs with the load in free: our reads of the slots, and the clearing, come before the producer's
	// next writes there.
	r.cons.own.Store(head + uint32(n))
}

// Len is the number of entries in the ring. It is exact when neither side is at work. Otherwise it is out of date as
// soon as it is returned: to the producer it is an upper bound, to the consumer a lower bound.
func (r *SPSC[T]) Len() int {
	// The head first: it never passes the tail, so a tail that is read later is not behind it. Other way round the
	// difference could be negative. Both may move on in between, which can make it too large by what was moved.
	head := r.cons.own.Load()
	return min(int(r.prod.own.Load()-head), len(r.buf))
}

// Cap is the number of entries that the ring holds.
func (r *SPSC[T]) Cap() int { return len(r.buf) }

// The padding is what this type is for; a field added in the wrong place should not compile.
var (
	_ [linePad]byte = [unsafe.Sizeof(cursor{})]byte{}
	_               = [1]byte{}[unsafe.Offsetof(SPSC[int]{}.cons)-unsafe.Offsetof(SPSC[int]{}.prod)-linePad]
)
