package stack

import (
	"sync/atomic"

	"ndpip/ring"
	"ndpip/tcp"
)

// The archive: pairs of hosts that connect again and again (FALTCON, APSys '21). What a connection's opening computes is the
// same each time for a pair, a service and the socket's options: the setup, the header template, the next hop. It is kept
// for the next one, and so are the control blocks of connections that have ended, with their rings.
//
// Nothing else of an old connection is kept: tcp.Conn.Reuse names the fields, and zeroes all others. Sequence numbers and
// TIME-WAIT are as without an archive; a connection in TIME-WAIT is a waiting, not an archived block.
//
// A pair is noted once a connection of it is up, so that forged SYNs put nothing there. It is forgotten after archiveAge
// without a connection; all are forgotten when a neighbour's MAC changes or when there are too many.

// pairKey is what connections have in common whose opening is the same.
type pairKey struct {
	laddr, raddr uint32
	service      uint16 // the port that is not chosen
	passive      bool
}

type pair struct {
	key   pairKey
	opts  Options
	setup tcp.Setup
	hdr   [7]uint64 // ports left 0
	mac   MAC
	hop   uint32
	nref  uint32
	used  int64  // when a connection of it last came up
	top   uint32 // the block archived last: its number in archive.blocks; valid while not before archive.head
}

// block is an archived control block.
type block struct {
	at   int64
	id   uint32 // 0: taken
	prev uint32 // the pair's one before
}

// archive is owned by the worker. blocks is a ring in the order in which they came, head to tail; numbers run on.
type archive struct {
	pairs      []pair
	index      map[pairKey]uint32
	last       uint32 // the pair that was looked up last
	gen        uint32 // goes up when all pairs are forgotten
	blocks     []block
	head, tail uint32
	n          int    // blocks that are there
	ringBytes  uint64 // of their rings
}

const (
	archiveAge   = 10e9 // ns
	archiveMost  = 256  // Config.Archive
	archivePairs = 1024
	pairBits     = 10 // of Conn.Pair: the place in pairs + 1, then the generation
)

func (a *archive) init(most int) {
	a.index = map[pairKey]uint32{}
	if most > 0 {
		a.blocks = make([]block, pow2(uint32(most), 1, 1<<20))
		a.pairs = make([]pair, 0, archivePairs-1)
	}
}

// find is what is known of a pair, or nil.
func (s *Stack) find(k pairKey, o *Options) *pair {
	a := &s.archive
	if len(a.pairs) == 0 {
		return nil
	}
	if int(a.last) >= len(a.pairs) || a.pairs[a.last].key != k {
		i, ok := a.index[k]
		if !ok {
			return nil
		}
		a.last = i
	}
	p := &a.pairs[a.last]
	if p.opts != *o || s.now-p.used > archiveAge || s.moved.any { // moved: its MAC may be another one
		return nil
	}
	return p
}

// note keeps what was computed for a connection that is open, or about to be.
func (s *Stack) note(k pairKey, c *tcp.Conn, o *Options, u *tcp.Setup, mac MAC) {
	a := &s.archive
	if a.blocks == nil {
		return
	}
	i, ok := a.index[k]
	if !ok {
		if len(a.pairs) == cap(a.pairs) {
			s.forget()
		}
		i = uint32(len(a.pairs))
		a.pairs = append(a.pairs, pair{top: a.head - 1})
		a.index[k] = i
	}
	p := &a.pairs[i]
	*p = pair{key: k, opts: *o, setup: *u, hdr: c.Hdr, mac: mac, hop: c.NextHop, nref: c.NeighRef, used: s.now, top: a.head - 1}
	p.hdr[4] &^= portMask
	c.Pair = i + 1 | a.gen<<pairBits
}

// portMask covers the ports in word 4 of a frame's headers: bytes 34 to 37.
const portMask = 0xffff_ffff << 16

// block gives an empty control block, one of the pair's if there is one. p may be nil.
func (s *Stack) block(p *pair) *tcp.Conn {
	a := &s.archive
	if p == nil {
		return s.conns.get()
	}
	if int32(p.top-a.head) < 0 {
		c := s.conns.get()
		c.Pair = a.last + 1 | a.gen<<pairBits
		return c
	}
	b := &a.blocks[p.top&uint32(len(a.blocks)-1)]
	c := s.conns.again(b.id)
	a.count(c, -1)
	c.Pair = a.last + 1 | a.gen<<pairBits
	b.id = 0
	if p.top == a.tail-1 {
		a.tail--
	}
	p.top = b.prev
	s.count.ArchiveTaken++
	return c
}

// pairOf is the pair of a connection, or nil if it is not known, or not any more.
func (s *Stack) pairOf(c *tcp.Conn) *pair {
	a := &s.archive
	i := c.Pair&(1<<pairBits-1) - 1
	if c.Pair == 0 || c.Pair>>pairBits != a.gen&(1<<(32-pairBits)-1) || int(i) >= len(a.pairs) {
		return nil
	}
	return &a.pairs[i]
}

// keep archives the block of a connection that is done with, if its pair is known. Its buffers are given back already.
func (s *Stack) keep(c *tcp.Conn) bool {
	a := &s.archive
	p := s.pairOf(c)
	if p == nil {
		return false
	}
	if base, n := c.RxRing(); base != 0 && n != p.setup.RxEntries {
		return false // the options have changed meanwhile
	}
	if base, n := c.TxRing(); base != 0 && n != p.setup.TxEntries {
		return false
	}
	if int(a.tail-a.head) == len(a.blocks) {
		s.dropBlock()
	}
	prev := p.top
	if int32(prev-a.head) < 0 {
		prev = a.head - 1
	}
	a.blocks[a.tail&uint32(len(a.blocks)-1)] = block{s.now, c.ID, prev}
	p.top = a.tail
	a.tail++
	a.count(c, 1)
	s.conns.leave(c)
	return true
}

// count keeps count of the archived blocks.
func (a *archive) count(c *tcp.Conn, n int) {
	a.n += n
	var bytes uint64
	if base, k := c.RxRing(); base != 0 {
		bytes += uint64(k) * ring.EntrySize
	}
	if base, k := c.TxRing(); base != 0 {
		bytes += uint64(k) * ring.EntrySize
	}
	a.ringBytes += uint64(n) * bytes
}

// dropBlock gives back the block that was archived first.
func (s *Stack) dropBlock() {
	a := &s.archive
	b := &a.blocks[a.head&uint32(len(a.blocks)-1)]
	a.head++
	if b.id == 0 {
		return
	}
	c := s.conns.at(b.id)
	a.count(c, -1)
	s.putRings(c)
	s.conns.free = append(s.conns.free, b.id)
	b.id = 0
	s.count.ArchiveDropped++
}

// age drops what was archived too long ago.
func (s *Stack) age() {
	a := &s.archive
	for a.head != a.tail {
		if b := &a.blocks[a.head&uint32(len(a.blocks)-1)]; b.id != 0 && s.now-b.at <= archiveAge {
			return
		}
		s.dropBlock()
	}
}

// forget empties the archive.
func (s *Stack) forget() {
	a := &s.archive
	for a.head != a.tail {
		s.dropBlock()
	}
	clear(a.index)
	a.pairs = a.pairs[:0]
	a.gen++
}

// macOf is the destination in a connection's header template.
func macOf(c *tcp.Conn) (mac MAC) {
	w := atomic.LoadUint64(&c.Hdr[0])
	for i := range mac {
		mac[i] = byte(w >> (8 * i))
	}
	return mac
}
