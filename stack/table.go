package stack

import (
	crand "crypto/rand"
	"encoding/binary"
	"math/bits"
	"unsafe"
)

// key names one connection: both addresses and ports, as numbers read big-endian from the wire.
type key struct {
	laddr, raddr uint32
	lport, rport uint16
}

// secret keys the hashes, so that nobody outside can choose connections that collide, or foresee ports and sequence
// numbers. The table's hash never leaves the stack, so it may share its words with functions whose results are seen
// outside but that give nothing away of their key.
type secret [4]uint64

// newSecret draws a secret from the system's random source.
func newSecret() (s secret) {
	var b [32]byte
	_, _ = crand.Read(b[:]) // never fails: see crypto/rand
	for i := range s {
		s[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return s
}

// XXH64's primes.
const (
	prime1 = 0x9e3779b185ebca87
	prime2 = 0xc2b2ae3d27d4eb4f
	prime3 = 0x165667b19e3779f9
	prime4 = 0x85ebca77c2b2ae63
	prime5 = 0x27d4eb2f165667c5
)

// sum is the keyed hash of k: XXH64 with the seed s[0], of the key's two words, masked with s[1] and s[2].
//
// The seed hides the state, the masks hide what goes into its multiplications, so the differences that make unseeded
// and plainly seeded XXH64 collide are not known outside.
//
// It is XXH64's way for 16 bytes written out, because it is needed once per frame: 5 ns, against 11 for a call to
// xxhash.Sum64 with secret words around the key. A test holds it to github.com/cespare/xxhash.
func (s *secret) sum(k key) uint64 {
	h := s[0] + prime5 + 16
	h = xxhRound(h, s[1]^(uint64(k.laddr)<<32|uint64(k.raddr)))
	h = xxhRound(h, s[2]^(uint64(k.lport)<<16|uint64(k.rport)))
	h = (h ^ h>>33) * prime2
	h = (h ^ h>>29) * prime3
	return h ^ h>>32
}

func xxhRound(h, x uint64) uint64 {
	return bits.RotateLeft64(h^bits.RotateLeft64(x*prime2, 31)*prime1, 27)*prime1 + prime4
}

// slot is one place of the table: 16 bytes, four to a cache line. An id of 0 marks it empty.
type slot struct {
	key
	id uint32
}

const (
	tableMin  = 64 // slots of an empty table
	tableStep = 16 // slots of the old array that one operation clears while the table grows
)

// table finds a connection's id by its key. It belongs to one thread (the worker) and has no lock.
//
// It is an open hash table with linear probing: a look-up touches one cache line, seldom two neighbouring ones. Keys
// are compared in full. A slot's home is the top bits of its hash, so the old array is moved to one twice its size
// in order, line after line. Deletion shifts the followers back, so there are no tombstones and a table that is used
// for ever stays as fast as a new one.
//
// When the array is 5/8 full it doubles, but its slots move a few at a time, with later puts and dels (and step), so
// that no single call takes long. Until that is done both arrays are in use: what is new goes to cur, and a key is in
// exactly one of the two.
type table struct {
	cur, old array
	sec      secret
	moved    int // slots of old that were cleared so far
	at       int // the slot of old where clearing goes on; it is empty between two steps
}

// array is one power-of-two array of slots.
type array struct {
	slots []slot
	shift uint // 64 - log2(len(slots))
	n     int  // slots in use
}

// newTable makes a table with room for n keys before it first grows.
func newTable(s secret, n int) *table {
	size := tableMin
	for size/8*5 < n {
		size *= 2
	}
	return &table{cur: newArray(size), sec: s}
}

func newArray(size int) array {
	return array{slots: huge(make([]slot, size)), shift: uint(65 - bits.Len(uint(size)))}
}

// len is the number of keys in the table.
func (t *table) len() int { return t.cur.n + t.old.n }

// hash is the keyed hash of k, for getHashed.
func (t *table) hash(k key) uint64 { return t.sec.sum(k) }

// get gives the id of k, or 0 when it is not there.
func (t *table) get(k key) uint32 { return t.getHashed(k, t.sec.sum(k)) }

// getHashed is get with the hash of k already known.
func (t *table) getHashed(k key, h uint64) uint32 {
	s := t.cur.slots
	for i := h >> (t.cur.shift & 63); ; i++ {
		e := &s[i&uint64(len(s)-1)]
		if e.key == k && e.id != 0 {
			return e.id
		}
		if e.id == 0 {
			break
		}
	}
	if t.old.n == 0 {
		return 0
	}
	return t.getOld(k, h)
}

func (t *table) getOld(k key, h uint64) uint32 {
	if i, ok := t.old.find(k, h); ok {
		return t.old.slots[i].id
	}
	return 0
}

// getBurst gives the ids of many keys: ids[i] is that of keys[i]. It first hashes every key and reads its slot, so
// that the cache misses of a large table overlap, and then looks each up. At most 256 keys.
func (t *table) getBurst(keys []key, ids []uint32) {
	var hs [256]uint64
	s, shift := t.cur.slots, t.cur.shift&63
	for i, k := range keys {
		h := t.sec.sum(k)
		hs[i&255] = h
		ids[i] = s[(h>>shift)&uint64(len(s)-1)].id
	}
	for i, k := range keys {
		ids[i] = t.getHashed(k, hs[i&255])
	}
}

// expect says that k will be looked up soon: its slot is fetched meanwhile.
func (t *table) expect(k key) {
	s := t.cur.slots
	prefetch(unsafe.Pointer(&s[t.sec.sum(k)>>(t.cur.shift&63)&uint64(len(s)-1)]))
}

// put gives k the id, which must not be 0, whether or not k was there.
func (t *table) put(k key, id uint32) {
	if id == 0 {
		panic("stack: table.put with id 0, which means an empty slot")
	}
	t.step()
	h := t.sec.sum(k)
	if t.old.n != 0 {
		if i, ok := t.old.find(k, h); ok {
			t.old.slots[i].id = id
			return
		}
	}
	i, ok := t.cur.find(k, h)
	if !ok && t.cur.n+t.old.n >= len(t.cur.slots)/8*5 {
		t.grow()
		i, _ = t.cur.find(k, h)
	}
	if !ok {
		t.cur.n++
	}
	t.cur.slots[i] = slot{k, id}
}

// del removes k. It does nothing when k is not there.
func (t *table) del(k key) {
	t.step()
	h := t.sec.sum(k)
	if i, ok := t.cur.find(k, h); ok {
		t.cur.remove(i, &t.sec)
	} else if t.old.n != 0 {
		if i, ok := t.old.find(k, h); ok {
			t.old.remove(i, &t.sec)
		}
	}
}

// grow starts the move to an array twice the size. The one before is long done then: it takes len(old)/tableStep
// operations, and the table takes len(old)*5/8 puts until it is full again.
func (t *table) grow() {
	for t.old.slots != nil {
		t.step()
	}
	t.old, t.cur = t.cur, newArray(2*len(t.cur.slots))
	t.moved, t.at = 0, 0
	for t.old.slots[t.at].id != 0 { // 3/8 of the slots are empty, so this is short
		t.at++
	}
}

// step moves a few slots of a table that is growing, and does nothing otherwise. put and del call it; the worker may
// call it once per turn, so that a table which is only read does not stay in two parts.
func (t *table) step() {
	if t.old.slots != nil {
		t.move()
	}
}

// move clears tableStep slots of old and goes on to the next empty one. It thereby moves whole runs only: what is left
// in old is as if the moved keys had never been there, and look-ups and removals there go on as usual.
func (t *table) move() {
	s := t.old.slots
	for i := 0; i < tableStep || s[t.at].id != 0; i++ {
		if e := &s[t.at]; e.id != 0 {
			j, _ := t.cur.find(e.key, t.sec.sum(e.key))
			t.cur.slots[j] = *e
			t.cur.n++
			t.old.n--
			*e = slot{}
		}
		t.at = (t.at + 1) & (len(s) - 1)
		if t.moved++; t.moved == len(s) {
			t.old = array{}
			return
		}
	}
}

// find gives the place of k, or the empty slot where it belongs.
func (a *array) find(k key, h uint64) (i uint64, ok bool) {
	mask := uint64(len(a.slots) - 1)
	for i = h >> (a.shift & 63); ; i++ {
		e := &a.slots[i&mask]
		if e.id == 0 {
			return i & mask, false
		}
		if e.key == k {
			return i & mask, true
		}
	}
}

// remove empties slot i and shifts back every follower that would otherwise be cut off from its home (Knuth,
// volume 3, section 6.4, algorithm R).
func (a *array) remove(i uint64, sec *secret) {
	mask := uint64(len(a.slots) - 1)
	for j := (i + 1) & mask; a.slots[j].id != 0; j = (j + 1) & mask {
		home := sec.sum(a.slots[j].key) >> (a.shift & 63)
		if (j-home)&mask >= (j-i)&mask {
			a.slots[i] = a.slots[j]
			i = j
		}
	}
	a.slots[i] = slot{}
	a.n--
}
