package ring

import "unsafe"

// Entry is one buffer in a connection's ring: 16 bytes and no Go pointer, so that a ring costs the garbage collector
// nothing and four entries share a cache line.
type Entry struct {
	Handle uintptr // names the buffer at its port
	word   uint64  // address << 16 | length
}

// EntrySize is the size of an Entry in bytes.
const EntrySize = 16

// A compile-time check: EntrySize is what Entry occupies.
var _ [EntrySize]byte = [unsafe.Sizeof(Entry{})]byte{}

const (
	addrBits = 48
	lenBits  = 16

	// MaxLen is the greatest length that an entry holds.
	MaxLen = 1<<lenBits - 1
)

// Make packs an entry: length bytes at addr, in the buffer that handle names. The caller has seen to it that
// Fits(addr) and that length is between 0 and MaxLen; other bits are lost.
func Make(handle, addr uintptr, length int) Entry {
	return Entry{handle, uint64(addr)<<lenBits | uint64(uint16(length))}
}

// Fits says whether an address can be kept in an Entry, which has 48 bits for it.
//
// On amd64 user addresses have 47 bits, and on arm64 48. Both have extensions with more (57 and 52), but Linux gives
// an address above the old limit only to an mmap call whose hint lies above it, and DPDK gives no such hint. A memory
// pool is checked with this function once, when it is made (its first and its last byte): a pool that does not fit is
// an error there, and need not be looked for on each frame.
func Fits(addr uintptr) bool { return uint64(addr)>>addrBits == 0 }

// Addr is the address of the first byte.
func (e Entry) Addr() uintptr { return uintptr(e.word >> lenBits) }

// Len is the number of bytes from Addr.
func (e Entry) Len() int { return int(e.word & MaxLen) }

// At is the entry with index i of the ring at base, which has mask+1 entries; i runs freely and wraps at 2^32.
//
// A number becomes a pointer here. It is sound because the memory belongs to a Slab, which neither moves it nor gives
// it back to Go as long as the slab is reachable: the collector need not know of this pointer to keep what it points
// to, and when it does meet it on a stack it finds a live object. The number is read back as a pointer, rather than
// converted, because go vet and checkptr keep the conversion for pointers that were derived from pointers; the compiler
// makes nothing of the detour.
func At(base uintptr, mask, i uint32) *Entry {
	addr := base + uintptr(i&mask)*EntrySize
	return (*Entry)(*(*unsafe.Pointer)(unsafe.Pointer(&addr)))
}

// Copy copies n bytes from src to dst, the memory of two buffers that the caller owns. Such memory is the port's: it is
// neither moved nor freed as long as the port is there, so that numbers may be read as pointers as in At.
func Copy(dst, src uintptr, n int) {
	d, s := *(*unsafe.Pointer)(unsafe.Pointer(&dst)), *(*unsafe.Pointer)(unsafe.Pointer(&src))
	copy(unsafe.Slice((*byte)(d), n), unsafe.Slice((*byte)(s), n))
}

// As sees the memory at base as a T, which has no Go pointers in it: a Slab's memory that serves for something else than
// a ring. It is sound for the same reasons as At.
func As[T any](base uintptr) *T {
	return (*T)(*(*unsafe.Pointer)(unsafe.Pointer(&base)))
}
