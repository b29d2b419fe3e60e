package api

import (
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"ndpip/dpdk"
)

// Buf is a packet buffer that the application owns: from Alloc until Send takes it or Free gives it back, or from Recv
// until Free. The zero Buf is none; calls that take a Buf over leave the zero Buf behind.
//
// A Buf may be copied, but the buffer has one owner: once any copy has been sent or freed, all of them are void. Their
// methods then find nothing, and calls that get one return EINVAL. What a slice from Bytes shows after that is anything.
type Buf struct {
	slot *bufSlot
	addr uintptr // the payload
	len  uint32
	gen  uint32
}

// bufSlot is the record of one buffer that the application owns. A Buf is valid as long as its generation is the slot's;
// taking the buffer away is one step of the generation.
type bufSlot struct {
	gen      atomic.Uint32 // written under bufTable.mu
	received bool          // as the rest: under bufTable.mu, or by who owns the buffer
	table    *bufTable
	handle   dpdk.Handle
	base     uintptr // where the payload's room begins
	end      uintptr // where it ends
	next     *bufSlot
}

// bufTable is all such records of a host: as many as there have ever been buffers in the application's hands at once.
type bufTable struct {
	mu   sync.Mutex
	free *bufSlot
	all  [][]bufSlot
	out  int  // owned by the application
	dead bool // the host has stopped: there are no buffers any more
}

// grow adds records. Under mu.
func (t *bufTable) grow() {
	chunk := make([]bufSlot, bufBatch)
	t.all = append(t.all, chunk)
	for i := range chunk {
		chunk[i].table, chunk[i].next = t, t.free
		t.free = &chunk[i]
	}
}

// give makes the application the owner of the buffers that f describes by their payload. It returns false, and takes
// nothing, when the host has stopped.
func (t *bufTable) give(bufs []Buf, f []dpdk.Frame, received bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dead {
		return false
	}
	for i := range f {
		if t.free == nil {
			t.grow()
		}
		s := t.free
		t.free = s.next
		s.handle, s.base, s.end, s.received = f[i].Handle, f[i].Addr, f[i].Addr+uintptr(f[i].Len), received
		bufs[i] = Buf{slot: s, addr: f[i].Addr, len: f[i].Len, gen: s.gen.Load()}
	}
	t.out += len(f)
	return true
}

// owned says whether a Buf is a buffer of this table that the application owns. Under mu, or with the answer only a
// snapshot.
func (t *bufTable) owned(b *Buf) bool {
	return b.slot != nil && b.slot.table == t && b.slot.gen.Load() == b.gen
}

// claim takes a buffer from the application, if it owns it. All copies of the Buf are void. Under mu.
func (t *bufTable) claim(b *Buf) bool {
	if !t.owned(b) {
		return false
	}
	b.slot.gen.Store(b.gen + 1)
	return true
}

// restore undoes claim, and retire makes it final. Under mu.
func (t *bufTable) restore(b *Buf) { b.slot.gen.Store(b.gen) }

func (t *bufTable) retire(b *Buf) {
	b.slot.next = t.free
	t.free = b.slot
	t.out--
	*b = Buf{}
}

// giveUp ends the ownership of all buffers, and gives their handles. Nothing is given to the application afterwards. No
// Send is under way.
func (t *bufTable) giveUp(drop func(h dpdk.Handle, received bool)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dead = true
	free := map[*bufSlot]bool{}
	for s := t.free; s != nil; s = s.next {
		free[s] = true
	}
	for _, chunk := range t.all {
		for i := range chunk {
			if s := &chunk[i]; !free[s] {
				s.gen.Add(1)
				drop(s.handle, s.received)
			}
		}
	}
	t.free, t.all, t.out = nil, nil, 0
}

func (b *Buf) valid() bool { return b.slot != nil && b.slot.gen.Load() == b.gen }

// Bytes is the payload; nil if the buffer is not the application's any more.
func (b *Buf) Bytes() []byte {
	if !b.valid() {
		return nil
	}
	return dpdk.Bytes(b.addr, int(b.len))
}

// Len is the payload's length in bytes.
func (b *Buf) Len() int { return int(b.len) }

// IsZero says whether this is no buffer.
func (b *Buf) IsZero() bool { return b.slot == nil }

// Resize sets the payload's length. EINVAL: the buffer has not that much room, or is not the application's any more.
func (b *Buf) Resize(n int) error {
	if !b.valid() || n < 0 || uintptr(n) > b.slot.end-b.addr {
		return unix.EINVAL
	}
	b.len = uint32(n)
	return nil
}

// Offset moves the payload's start: a negative n drops bytes in front, a positive one adds them. EINVAL: there are not
// that many, or the buffer is not the application's any more.
func (b *Buf) Offset(n int) error {
	switch {
	case !b.valid() || n < -int(b.len):
		return unix.EINVAL
	case n > 0 && uintptr(n) > b.addr-b.slot.base:
		return unix.EINVAL
	}
	b.addr -= uintptr(n)
	b.len = uint32(int(b.len) + n)
	return nil
}
