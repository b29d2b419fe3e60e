package stack

import (
	"math/bits"
	"sync/atomic"

	"ndpip/stack/wire"
)

// neighSnapshot is what is known of the neighbours at one moment, for the application's threads. It is immutable, but
// for the marks of use.
type neighSnapshot struct {
	slots []neighSlot // open hash table, at most two thirds full
	mul   uint64      // secret and odd: a multiplicative hash
	shift uint
	used  []atomic.Uint32 // the cache's
}

type neighSlot struct {
	ip  uint32 // 0: empty
	ref uint32
	mac wire.MAC
}

// lookup gives the MAC of the next hop ip, to which something is about to be sent. When ok is false the worker has to
// be asked, which sends the request.
func (s *neighSnapshot) lookup(ip uint32) (mac wire.MAC, ok bool) {
	for i := uint64(ip) * s.mul >> (s.shift & 63); ; i++ {
		e := &s.slots[i&uint64(len(s.slots)-1)]
		if e.ip == ip && ip != 0 {
			markUsed(&s.used[e.ref])
			return e.mac, true
		}
		if e.ip == 0 {
			return mac, false
		}
	}
}

// snapshot is the last one published. Any thread may call it. The atomic pointer orders the snapshot's content before
// its use; the old one is the collector's.
func (n *neighbours) snapshot() *neighSnapshot { return n.snap.Load() }

// publish makes a new snapshot if something has changed. The worker calls it once per turn, after it has sent its
// frames: what waited for a neighbour then leaves before what an application sends on seeing the snapshot.
//
// With many entries it is made anew only so often that it costs a hundredth of the worker's time at the most. Until
// then an application asks the worker for a neighbour that is new, or sends to the former address of one that moved.
func (n *neighbours) publish(now int64) {
	if n.dirty && now >= n.publishAt {
		n.build(now)
	}
}

func (n *neighbours) build(now int64) {
	size := uint(bits.Len(uint(len(n.index)+len(n.index)/2) | 7)) // 8 slots at least
	s := &neighSnapshot{slots: make([]neighSlot, 1<<size), mul: n.hashMul, shift: 64 - size, used: n.used}
	for i := range n.entry {
		e := &n.entry[i]
		if e.state != neighKnown && e.state != neighProbing && e.state != neighStatic {
			continue
		}
		h := uint64(e.ip) * s.mul >> s.shift
		for s.slots[h&uint64(len(s.slots)-1)].ip != 0 {
			h++
		}
		s.slots[h&uint64(len(s.slots)-1)] = neighSlot{e.ip, uint32(i), e.mac}
	}
	n.snap.Store(s)
	n.dirty = false
	if len(n.entry) > neighFew {
		n.publishAt = now + neighRebuild*int64(len(n.entry))
	}
}

const (
	neighFew     = 64   // so many entries are published at once
	neighRebuild = 4000 // the least time between two snapshots of more, per entry, in ns: a hundred times what one takes
)
