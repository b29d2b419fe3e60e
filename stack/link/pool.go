package link

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"ndpip/dpdk"
)

// pool is a port's buffers. It knows who misuses one, and panics:
//
//   - a handle that the pool never gave out, or another pool's;
//   - a handle of a buffer that has gone back to the pool, even if the buffer was given out again since: each time it
//     gets a handle of its own;
//   - a frame that does not lie in its buffer.
//
// Reading memory after giving it back gives 0xDB, and writing there makes the next user of the buffer fail; the race
// detector sees both if it is another thread that does it.
type pool struct {
	name           string
	tag            uintptr // tells pools apart, see handle
	mem            []byte  // all buffers, one after the other; referred to by numbers as long as the link is
	base           uintptr
	size, headroom int
	refs           []int32
	gen            []uint32 // how often each buffer was given out
	free           []uint32 // the last one that came back goes out first, so that misuse shows early
	trusted        bool     // nobody writes to what was given back, see Port.Trusted
}

// A handle is, from the top: 16 bits tag, 24 bits generation, 24 bits index+1. So no two uses of a buffer have the
// same handle, for 2^24 uses.
const (
	tagShift = 48
	genShift = 24
	genMask  = 1<<24 - 1
)

// pools counts the pools of this process. Tags come again after 65535 pools, which costs nothing but the discovery of
// an old mistake.
var pools atomic.Uint32

const (
	poison   = 0xDB
	alignTo  = 64
	maxCount = genMask - 1
)

func newPool(name string, n, size, headroom int, trusted bool) *pool {
	if n < 1 || n > maxCount || size < 64 || headroom >= size {
		panic(fmt.Sprintf("link: %s: %d buffers of %d bytes with a headroom of %d", name, n, size, headroom))
	}
	size = (size + alignTo - 1) &^ (alignTo - 1)
	p := &pool{
		name: name, tag: uintptr(pools.Add(1)%65535) + 1, mem: make([]byte, n*size+alignTo), size: size, headroom: headroom, trusted: trusted,
		refs: make([]int32, n), gen: make([]uint32, n), free: make([]uint32, n),
	}
	p.base = (uintptr(unsafe.Pointer(&p.mem[0])) + alignTo - 1) &^ (alignTo - 1)
	for i := range p.free {
		p.free[i] = uint32(n - 1 - i)
	}
	for i := range n {
		p.poison(uint32(i))
	}
	return p
}

func tagOf(h dpdk.Handle) uintptr { return uintptr(h) >> tagShift }

func (p *pool) inUse() int { return len(p.refs) - len(p.free) }

// buffer is the memory of buffer i.
func (p *pool) buffer(i uint32) []byte { return dpdk.Bytes(p.base+uintptr(i)*uintptr(p.size), p.size) }

func (p *pool) poison(i uint32) {
	if p.trusted {
		return
	}
	b := p.buffer(i)
	b[0] = poison
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// alloc gives a buffer with one reference, as an empty frame: Len is the room.
func (p *pool) alloc() (f dpdk.Frame, ok bool) {
	if len(p.free) == 0 {
		return f, false
	}
	i := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	// One byte in each line is enough to notice most writes, and cheap.
	for at, b := 0, p.buffer(i); at < len(b) && !p.trusted; at += alignTo {
		if b[at] != poison {
			panic(fmt.Sprintf("link: %s: buffer %d was written to, at byte %d, after it had been given back", p.name, i, at))
		}
	}
	p.refs[i] = 1
	p.gen[i]++
	return dpdk.Frame{
		Handle: dpdk.Handle(p.tag<<tagShift | uintptr(p.gen[i]&genMask)<<genShift | uintptr(i+1)),
		Addr:   p.base + uintptr(i)*uintptr(p.size) + uintptr(p.headroom),
		Len:    uint32(p.size - p.headroom),
	}, true
}

// index is the buffer that a handle names. what says for the panic what is being done with it.
func (p *pool) index(h dpdk.Handle, what string) uint32 {
	i := uint32(uintptr(h)&(1<<genShift-1)) - 1
	if tagOf(h) != p.tag || i >= uint32(len(p.refs)) {
		panic(fmt.Sprintf("link: %s: handle %#x is not of the %s", what, uintptr(h), p.name))
	}
	gen := uint32(uintptr(h)>>genShift) & genMask
	if gen != p.gen[i]&genMask {
		panic(fmt.Sprintf("link: %s: buffer %d of the %s has been given back and is used anew (use %d, handle of use %d)",
			what, i, p.name, p.gen[i]&genMask, gen))
	}
	if p.refs[i] == 0 {
		panic(fmt.Sprintf("link: %s: buffer %d of the %s has been given back already", what, i, p.name))
	}
	return i
}

func (p *pool) retain(h dpdk.Handle) { p.refs[p.index(h, "reference")]++ }

// release gives one reference back, and with the last one the buffer.
func (p *pool) release(h dpdk.Handle, what string) {
	i := p.index(h, what)
	if p.refs[i]--; p.refs[i] == 0 {
		p.poison(i)
		p.free = append(p.free, i)
	}
}

// frame is the memory of a frame that is to be sent.
func (p *pool) frame(f *dpdk.Frame) []byte {
	i := p.index(f.Handle, "transmit")
	first := p.base + uintptr(i)*uintptr(p.size)
	if f.Len == 0 || f.Addr < first || f.Addr+uintptr(f.Len) > first+uintptr(p.size) {
		panic(fmt.Sprintf("link: transmit: a frame of %d bytes at byte %d does not lie in buffer %d of the %s, which has %d bytes",
			f.Len, int64(f.Addr)-int64(first), i, p.name, p.size))
	}
	return f.Bytes()
}
