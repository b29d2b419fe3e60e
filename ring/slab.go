package ring

import (
	"fmt"
	"math/bits"
	"sync"
	"unsafe"
)

const (
	// MinEntries is the smallest ring that a Slab gives, one cache line; smaller requests are rounded up to it.
	MinEntries = 64 / EntrySize
	// MaxEntries is the greatest.
	MaxEntries = 1 << 24

	// chunkEntries is what the slab takes from Go at once, 256 KiB: the memory of sixteen rings of 1024 entries.
	// Memory that was never used is not resident, so the end of a chunk costs nothing until it is given out.
	chunkEntries = 256 << 10 / EntrySize
)

// Slab is the memory of the connections' rings. Rings of a power of two entries are cut from larger chunks, and those
// that come back are kept in one free list per size. The memory holds no Go pointers, starts at a multiple of 64
// bytes, and is kept by the slab for ever, so a connection can hold its ring as a plain number (see At) and costs the
// garbage collector nothing. A size's memory stays with that size: the slab holds the sum of each size's peaks.
//
// The zero Slab is ready. Get and Put may be called from any thread: they are for opening and closing connections, so
// a mutex does. The mutex also hands the content over, so that whoever gets a ring sees nothing of its former
// owner's writes come late.
type Slab struct {
	mu     sync.Mutex
	chunks [][]Entry // all that was ever taken from Go; keeps it alive
	rest   []Entry   // the part of the last chunk that was never given out
	// free heads a list per size class (log2 of the entries); the next one stands in the first entry's Handle.
	free  [32]uintptr
	inUse uintptr // bytes
	held  uintptr // bytes
}

// SlabStats tells what a slab holds.
type SlabStats struct {
	InUse uint64 // bytes of the rings that are given out
	Held  uint64 // bytes taken from Go, free or in use
}

// size is the number of entries that a request for n gets, and its class.
func size(n uint32) (entries uint32, class int) {
	if n == 0 || n > MaxEntries {
		panic(fmt.Sprintf("ring: %d entries asked of a slab: must be between 1 and %d", n, MaxEntries))
	}
	class = bits.Len32(max(n, MinEntries) - 1)
	return 1 << class, class
}

// Get gives the memory of a ring: its address, a multiple of 64. entries, from 1 to MaxEntries, is rounded up to a
// power of two and to MinEntries. The content is whatever its last owner left there. It panics on other sizes.
func (s *Slab) Get(entries uint32) (base uintptr) {
	n, class := size(entries)
	s.mu.Lock()
	defer s.mu.Unlock()
	if base = s.free[class]; base != 0 {
		s.free[class] = At(base, 0, 0).Handle
	} else {
		if n > uint32(len(s.rest)) {
			s.grow(n)
		}
		base = address(s.rest)
		s.rest = s.rest[n:]
	}
	s.inUse += uintptr(n) * EntrySize
	return base
}

// Put takes a ring's memory back: base as it came from Get, entries as it was asked for there. The caller must not use
// it any more. It panics if more comes back than was given out; a base that is not the slab's goes unnoticed.
func (s *Slab) Put(base uintptr, entries uint32) {
	n, class := size(entries)
	s.mu.Lock()
	defer s.mu.Unlock()
	if base == 0 || base%64 != 0 || s.inUse < uintptr(n)*EntrySize {
		panic(fmt.Sprintf("ring: %#x with %d entries put into a slab that did not give it", base, entries))
	}
	s.inUse -= uintptr(n) * EntrySize
	s.push(base, class)
}

// Stats tells what the slab holds at this moment.
func (s *Slab) Stats() SlabStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return SlabStats{InUse: uint64(s.inUse), Held: uint64(s.held)}
}

func (s *Slab) push(base uintptr, class int) {
	*At(base, 0, 0) = Entry{Handle: s.free[class]}
	s.free[class] = base
}

// grow makes room for n entries in rest. What is left of the last chunk goes to the free lists, in the largest powers
// of two that it divides into.
func (s *Slab) grow(n uint32) {
	for len(s.rest) >= MinEntries {
		class := bits.Len(uint(len(s.rest))) - 1
		s.push(address(s.rest), class)
		s.rest = s.rest[1<<class:]
	}
	chunk := make([]Entry, max(n, chunkEntries))
	if address(chunk)%64 != 0 {
		// Go gives objects of this size whole pages, so this does not happen; but nothing promises it.
		chunk = make([]Entry, len(chunk)+MinEntries-1)
		chunk = chunk[(64-address(chunk)%64)%64/EntrySize:][:max(n, chunkEntries)]
	}
	s.chunks = append(s.chunks, chunk)
	s.held += uintptr(len(chunk)) * EntrySize
	s.rest = chunk
}

// address is where a slice of entries starts.
func address(e []Entry) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(e))) }
