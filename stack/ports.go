package stack

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"math/bits"
)

// The range that local ports are chosen from. RFC 6056 section 3.2 asks for as many as can be had; below 32768 are the
// ports that programs listen on, and one in use by a connection cannot be bound. Linux leaves out 61000 and above for
// its address translation, which does not concern a stack with an address of its own.
const (
	portLow  = 32768
	portHigh = 65535
)

const (
	portCounters = 1024 // of RFC 6056 algorithm 4
	portDense    = 128  // connections from which on a destination has a bitmap
	portSparse   = 32   // and below which it has none again
)

// ports chooses and reserves the local ports of one protocol. It belongs to the worker.
//
// A port is taken in one of two ways. bind and hold take it by itself: nobody else may bind it (but for SO_REUSEADDR),
// and none is chosen for a connection while it lasts. choose takes it for one destination only: to another one the
// same port may be used again, so there are as many connections as addresses and ports differ.
//
// Ports are chosen by RFC 6056 section 3.3.4 (double-hash): from a secret place for each destination on, the one
// after the last. The next free one is found in a bitmap of the destination, 64 ports at a time, so that the last
// free port is found about as fast as the first. Destinations of few connections have no bitmap: there the next port
// is nearly always free, which the connection table tells.
type ports struct {
	tab   *table // of connections; nil when choose is not used
	laddr uint32

	prf      cipher.Block // the keyed functions F and G of RFC 6056; its results are seen outside
	buf      [aes.BlockSize]byte
	draws    uint64 // numbers drawn from prf for bind
	counters [portCounters]uint32
	next     uint16 // most likely the one that the next choose for the same destination gives

	low, n uint32             // the first port of the range, and how many there are
	base   uint32             // the port of bit 0 of the bitmaps: low rounded down to a whole word
	bound  []uint64           // ports that are bound or held
	busy   []uint64           // ports with any user
	pages  [256]*[256]portUse // by port; only those in use

	byDest   map[uint64]uint32 // destination by address and port
	dests    paged[portDest]
	destFree uint32
	refs     paged[portRef]
	refFree  uint32
	maps     [][]uint64 // bitmaps of dense destinations; [0] is none
	mapFree  []uint32
}

// portUse is who uses a port.
type portUse struct {
	users  uint32 // sockets and connections
	strict uint32 // those without SO_REUSEADDR
	bound  uint32 // those by bind and hold
	listen bool
}

// portDest is a destination of connections with chosen ports.
type portDest struct {
	key   uint64                          // address << 16 | port
	n     uint32                          // connections
	lists [2]struct{ first, last uint32 } // of refs: in use, in TIME-WAIT; the oldest first
	bits  uint32                          // its bitmap
}

// portRef is a port that was chosen for a connection: 16 bytes.
type portRef struct {
	prev, next uint32
	dest       uint32 // 0: another connection has taken over
	port       uint16
	wait       uint8 // which list
	reuse      bool
}

// newPorts makes the ports of address laddr. tab is the table that the connections are in; a protocol without
// connections has none.
func newPorts(s secret, laddr uint32, tab *table, low, high uint16) *ports {
	var k [16]byte
	binary.LittleEndian.PutUint64(k[0:], s[2])
	binary.LittleEndian.PutUint64(k[8:], s[3])
	prf, err := aes.NewCipher(k[:])
	if err != nil {
		panic(err) // not for a key of 16 bytes
	}
	words := int(high>>6) - int(low>>6) + 1
	p := &ports{
		tab: tab, laddr: laddr, prf: prf,
		low: uint32(low), n: uint32(high) - uint32(low) + 1, base: uint32(low) &^ 63,
		bound: make([]uint64, words), busy: make([]uint64, words),
		byDest: map[uint64]uint32{}, maps: make([][]uint64, 1),
	}
	// Bits beside the range stay set, so that no search finds them.
	for _, b := range [][]uint64{p.bound, p.busy} {
		b[0] |= 1<<(low&63) - 1
		b[words-1] |= ^uint64(0) << (high & 63) << 1
	}
	for i := range p.counters {
		p.counters[i] = uint32(p.random(1, uint64(i)))
	}
	return p
}

// random is a keyed random function of its arguments.
func (p *ports) random(what byte, x uint64) uint64 {
	p.buf = [aes.BlockSize]byte{what}
	binary.LittleEndian.PutUint64(p.buf[8:], x)
	p.prf.Encrypt(p.buf[:], p.buf[:])
	return binary.LittleEndian.Uint64(p.buf[:])
}

// choose takes a local port for a new connection to raddr and rport, which the caller puts into the table before it
// calls choose again. ref is for wait and drop; reuse is the socket's SO_REUSEADDR. ok is false when every port of the
// range is in use for this destination: EADDRNOTAVAIL.
//
// When no other is left, the port is one whose last connection to this destination is in TIME-WAIT, the one that has
// been so for longest. It is then in the table still: the new connection takes its place, with sequence numbers
// above those that it used (RFC 1122 4.2.2.13, RFC 9293 3.6.1).
func (p *ports) choose(raddr uint32, rport uint16, reuse bool) (port uint16, ref uint32, ok bool) {
	k := uint64(raddr)<<16 | uint64(rport)
	var taken []uint64
	var oldest, n uint32
	if d := p.byDest[k]; d != 0 {
		e := p.dests.at(d)
		taken, oldest, n = p.maps[e.bits], e.lists[1].first, e.n
	}
	if n < p.n {
		port, ok = p.free(k, raddr, rport, taken)
	}
	if ok {
		p.next = port + 1
	} else if oldest != 0 {
		r := p.refs.at(oldest)
		port = r.port
		p.next = p.refs.at(r.next).port
		p.forget(oldest)
	} else {
		return 0, 0, false
	}
	return port, p.take(k, port, reuse), true
}

// free is the next port that is not in use for destination k.
func (p *ports) free(k uint64, raddr uint32, rport uint16, taken []uint64) (port uint16, ok bool) {
	f := p.random(0, k)
	counter := &p.counters[f>>32%portCounters]
	start := (uint32(f) + *counter) % p.n
	i, ok := p.search(p.low-p.base+start, p.bound, taken, func(port uint16) bool {
		return p.tab.get(key{p.laddr, raddr, port, rport}) == 0
	})
	if ok {
		port = uint16(p.base + i)
		*counter += (p.n+uint32(port)-p.low-start)%p.n + 1
	}
	return port, ok
}

// wait notes that the connection of ref is in TIME-WAIT. ref 0, for a port that was not chosen, does nothing.
func (p *ports) wait(ref uint32) {
	if ref == 0 {
		return
	}
	if r := p.refs.at(ref); r.dest != 0 && r.wait == 0 {
		p.unlink(ref)
		r.wait = 1
		p.link(ref)
	}
}

// drop ends the use of a chosen port: the connection of ref is gone. It is called for each ref, also for one whose
// port choose has passed on. ref 0 does nothing.
func (p *ports) drop(ref uint32) {
	if ref == 0 {
		return
	}
	p.forget(ref)
	*p.refs.at(ref) = portRef{next: p.refFree}
	p.refFree = ref
}

// take notes the port as used for destination k.
func (p *ports) take(k uint64, port uint16, reuse bool) (ref uint32) {
	d := p.byDest[k]
	if d == 0 {
		if d = p.destFree; d != 0 {
			p.destFree = uint32(p.dests.at(d).key)
		} else {
			d = p.dests.add()
		}
		*p.dests.at(d) = portDest{key: k}
		p.byDest[k] = d
	}
	if ref = p.refFree; ref != 0 {
		p.refFree = p.refs.at(ref).next
	} else {
		ref = p.refs.add()
	}
	*p.refs.at(ref) = portRef{dest: d, port: port, reuse: reuse}
	p.link(ref)
	p.use(port, reuse, false)
	e := p.dests.at(d)
	if e.n++; e.bits != 0 {
		p.set(p.maps[e.bits], port)
	} else if e.n >= portDense {
		p.condense(e)
	}
	return ref
}

// forget undoes take, but for giving back ref.
func (p *ports) forget(ref uint32) {
	r := p.refs.at(ref)
	d := r.dest
	if d == 0 {
		return
	}
	p.unlink(ref)
	p.unuse(r.port, r.reuse, false)
	r.dest = 0
	e := p.dests.at(d)
	if e.n--; e.bits != 0 {
		p.unset(p.maps[e.bits], r.port)
		if e.n < portSparse {
			clear(p.maps[e.bits])
			p.mapFree = append(p.mapFree, e.bits)
			e.bits = 0
		}
	}
	if e.n == 0 {
		delete(p.byDest, e.key)
		*e = portDest{key: uint64(p.destFree)}
		p.destFree = d
	}
}

// condense gives a destination its bitmap.
func (p *ports) condense(e *portDest) {
	if n := len(p.mapFree); n > 0 {
		e.bits, p.mapFree = p.mapFree[n-1], p.mapFree[:n-1]
	} else {
		e.bits = uint32(len(p.maps))
		p.maps = append(p.maps, make([]uint64, len(p.bound)))
	}
	for _, l := range e.lists {
		for i := l.first; i != 0; i = p.refs.at(i).next {
			p.set(p.maps[e.bits], p.refs.at(i).port)
		}
	}
}

// link puts ref at the end of its destination's list.
func (p *ports) link(ref uint32) {
	r := p.refs.at(ref)
	l := &p.dests.at(r.dest).lists[r.wait]
	r.prev, r.next = l.last, 0
	if l.last != 0 {
		p.refs.at(l.last).next = ref
	} else {
		l.first = ref
	}
	l.last = ref
}

func (p *ports) unlink(ref uint32) {
	r := p.refs.at(ref)
	l := &p.dests.at(r.dest).lists[r.wait]
	if r.prev != 0 {
		p.refs.at(r.prev).next = r.next
	} else {
		l.first = r.next
	}
	if r.next != 0 {
		p.refs.at(r.next).prev = r.prev
	} else {
		l.last = r.prev
	}
}

// search finds the first bit, from bit from on and around, that is clear in a and b (nil: empty) and that ok accepts.
func (p *ports) search(from uint32, a, b []uint64, ok func(port uint16) bool) (i uint32, found bool) {
	words := uint32(len(a))
	w, mask := from>>6, ^uint64(0)<<(from&63)
	for left := words + 1; left > 0; left-- { // the first word comes twice: from from on, and all of it
		free := ^a[w] & mask
		if b != nil {
			free &^= b[w]
		}
		for ; free != 0; free &= free - 1 {
			i = w<<6 + uint32(bits.TrailingZeros64(free))
			if ok(uint16(p.base + i)) {
				return i, true
			}
		}
		if w++; w == words {
			w = 0
		}
		mask = ^uint64(0)
	}
	return 0, false
}

// set and unset mark a port in a bitmap, if it is in the range.
func (p *ports) set(b []uint64, port uint16) {
	if i := uint32(port) - p.low; i < p.n {
		i += p.low - p.base
		b[i>>6] |= 1 << (i & 63)
	}
}

func (p *ports) unset(b []uint64, port uint16) {
	if i := uint32(port) - p.low; i < p.n {
		i += p.low - p.base
		b[i>>6] &^= 1 << (i & 63)
	}
}
