package stack

import "math/bits"

// The wheel's grain. A timer fires at the first tick at or after its time, so never early and less than a tick late.
const (
	tickShift = 18             // a tick is 2^18 ns, 0.26 ms
	tick      = 1 << tickShift // ns

	nearBits = 13 // slots of the near ring, one tick each: 2.1 s
	spanBits = 12 // a span is 2^12 ticks, 1.07 s: half the near ring
	farBits  = 14 // slots of the far ring, one span each: 4.9 h
	nearSize = 1 << nearBits
	farSize  = 1 << farBits

	pageBits = 12  // nodes in a page: 4096
	drainMax = 256 // nodes that one tick moves from the far ring ahead of their time
	noNode   = ^uint32(0)
)

// wheel keeps one timer for each of many ids: arm, cancel and fire take constant time, and time that passes without a
// timer due costs a comparison. It belongs to one thread.
//
// Two rings of lists hold the timers: the near ring has a slot for each tick, the far ring one for each span of 4096
// ticks. Time is span after span. The near ring covers the current span and the next, so the next span's timers are
// moved into it while the current one runs, a few per tick: a million timers in one span cause no pause. Timers beyond
// the far ring wait in its last slot and are put in again from there. A bitmap over each ring finds the next slot in
// use, however far time jumps.
//
// What is done most is to arm for a later time (an acknowledgement restarts the retransmission timer) and to cancel.
// Both only write the node: it stays in its list, and when its slot's turn comes it is put where it belongs by then,
// or dropped. A node is unlinked only to be armed for an earlier time than that of its slot.
//
// The idea of the two rings is Varghese and Lauck's ("Hashed and Hierarchical Timing Wheels", scheme 7).
type wheel struct {
	pages []*[1 << pageBits]timerNode // by id; pages, so that growing copies nothing
	now   int64                       // the last tick that was run
	count int                         // timers that are armed
	near  timerRing
	far   timerRing
}

// timerNode is 16 bytes and holds no pointer.
type timerNode struct {
	next, prev uint32 // neighbours in the list of its slot; valid while linked
	word       uint64 // the tick it is due at << 16 (0: not armed) | its slot + 1 (0: not linked)
}

func (n *timerNode) due() int64     { return int64(n.word >> 16) }
func (n *timerNode) slot() int      { return int(n.word&0xffff) - 1 } // below nearSize: near; from there: far
func (n *timerNode) isLinked() bool { return n.word&0xffff != 0 }

// newWheel makes a wheel whose time starts at now (ns, 0 or more).
func newWheel(now int64) *wheel {
	return &wheel{now: max(now, 0) >> tickShift, near: newTimerRing(nearSize), far: newTimerRing(farSize)}
}

func (w *wheel) node(id uint32) *timerNode { return &w.pages[id>>pageBits][id&(1<<pageBits-1)] }

// armed says whether the timer of id will fire.
func (w *wheel) armed(id uint32) bool {
	return int(id>>pageBits) < len(w.pages) && w.node(id).due() != 0
}

// arm lets the timer of id fire at the time at (ns), or with the next tick when that is past. It moves a timer that is
// armed already. The ids should be small numbers: memory is 16 bytes for each up to the largest.
func (w *wheel) arm(id uint32, at int64) {
	for int(id>>pageBits) >= len(w.pages) {
		w.pages = append(w.pages, new([1 << pageBits]timerNode))
	}
	due := at >> tickShift
	if at&(tick-1) != 0 {
		due++ // a tick begins at its time, and it must not fire before
	}
	due = max(due, w.now+1)
	n := w.node(id)
	if n.due() == 0 {
		w.count++
	}
	if n.isLinked() {
		if due >= w.visit(n.slot()) {
			n.word = uint64(due)<<16 | n.word&0xffff
			return
		}
		w.unlink(n)
	}
	w.link(id, n, due)
}

// cancel keeps the timer of id from firing. It does nothing when it is not armed.
func (w *wheel) cancel(id uint32) {
	if w.armed(id) {
		w.node(id).word &= 0xffff
		w.count--
	}
}

// advance fires every timer that is due at now (ns), tick by tick. fire may arm and cancel any timer, that of its own
// id as well. A time before that of the last call does nothing.
func (w *wheel) advance(now int64, fire func(id uint32)) {
	if now>>tickShift > w.now {
		w.run(now>>tickShift, fire)
	}
}

// next is a time (ns) before which no timer fires: advance need not be called earlier. A call at that time makes
// progress, though it may turn out that no timer was due. ok is false when none is armed.
func (w *wheel) next() (at int64, ok bool) {
	if w.count == 0 {
		return 0, false
	}
	t, ok := w.nextNear()
	if s, far := w.nextFar(); far && (!ok || s<<spanBits < t) {
		t = s << spanBits
	}
	return t << tickShift, true
}

// nextNear is the next tick whose slot is in use.
func (w *wheel) nextNear() (t int64, ok bool) {
	i, ok := w.near.find(int(w.now+1) & (nearSize - 1))
	return w.nearTick(i), ok
}

// nextFar is the next span whose slot is in use.
func (w *wheel) nextFar() (s int64, ok bool) {
	i, ok := w.far.find(int(w.now>>spanBits+1) & (farSize - 1))
	return w.farSpan(i), ok
}

// nearTick is the tick after now that slot i of the near ring stands for, farSpan the same for the far ring.
func (w *wheel) nearTick(i int) int64 { return w.now + 1 + (int64(i)-w.now-1)&(nearSize-1) }
func (w *wheel) farSpan(i int) int64 {
	s := w.now>>spanBits + 1
	return s + (int64(i)-s)&(farSize-1)
}

// visit is the tick at which the nodes of a slot are looked at.
func (w *wheel) visit(slot int) int64 {
	if slot < nearSize {
		return w.nearTick(slot)
	}
	return w.farSpan(slot-nearSize) << spanBits
}

// link puts a node that is in no list where one that is due at tick due belongs, which is later than now.
func (w *wheel) link(id uint32, n *timerNode, due int64) {
	r, slot, base := &w.near, int(due&(nearSize-1)), 0
	if ahead := due>>spanBits - w.now>>spanBits; ahead > 1 {
		// The last slot holds whatever is further off.
		s := w.now>>spanBits + min(ahead, farSize-1)
		r, slot, base = &w.far, int(s&(farSize-1)), nearSize
	}
	head := r.heads[slot]
	if head == noNode {
		r.mark(slot)
	} else {
		w.node(head).prev = id
	}
	r.heads[slot] = id
	n.next, n.prev, n.word = head, noNode, uint64(due)<<16|uint64(base+slot+1)
}

// unlink takes a node out of its list. It leaves word to the caller.
func (w *wheel) unlink(n *timerNode) {
	if n.next != noNode {
		w.node(n.next).prev = n.prev
	}
	if n.prev != noNode {
		w.node(n.prev).next = n.next
		return
	}
	r, slot := &w.near, n.slot()
	if slot >= nearSize {
		r, slot = &w.far, slot-nearSize
	}
	r.heads[slot] = n.next
	if n.next == noNode {
		r.clear(slot)
	}
}

// run takes the wheel to tick to. Before the first tick of a span, what the far ring holds of that span is moved.
func (w *wheel) run(to int64, fire func(id uint32)) {
	const spanMask = 1<<spanBits - 1
	for w.now < to {
		if (w.now+1)&spanMask == 0 {
			w.drain(-1)
		}
		end := (w.now + 1) | spanMask
		if t, ok := w.nextNear(); ok && t <= min(end, to) {
			w.now = t
			w.fire(int(t&(nearSize-1)), fire)
		} else if to <= end {
			w.now = to
		} else if ok { // in the next span
			w.now = end
		} else if s, ok := w.nextFar(); ok && s<<spanBits <= to {
			w.now = s<<spanBits - 1 // over all the empty spans
		} else {
			w.now = to
		}
	}
	w.drain(drainMax)
}

// fire takes the nodes of a slot of the near ring, whose tick is now.
func (w *wheel) fire(slot int, fire func(id uint32)) {
	for {
		id, n, due := w.pop(&w.near, slot)
		switch {
		case n == nil:
			return
		case due > w.now: // armed for later since it was linked
			w.link(id, n, due)
		case due != 0:
			w.count--
			fire(id)
		}
	}
}

// drain moves at most limit nodes (-1: all) of the next span from the far ring to where they belong now.
func (w *wheel) drain(limit int) {
	slot := int(w.now>>spanBits+1) & (farSize - 1)
	for ; limit != 0; limit-- {
		id, n, due := w.pop(&w.far, slot)
		if n == nil {
			return
		}
		if due != 0 {
			w.link(id, n, due)
		}
	}
}

// pop unlinks the first node of a slot. n is nil when there is none.
func (w *wheel) pop(r *timerRing, slot int) (id uint32, n *timerNode, due int64) {
	id = r.heads[slot]
	if id == noNode {
		return 0, nil, 0
	}
	n = w.node(id)
	due = n.due()
	n.word = 0
	r.heads[slot] = n.next
	if n.next == noNode {
		r.clear(slot)
	} else {
		w.node(n.next).prev = noNode
	}
	return id, n, due
}

// timerRing is a ring of lists with a bitmap of those in use, and a bitmap of the words of that bitmap.
type timerRing struct {
	heads []uint32
	words []uint64
	sums  []uint64
}

func newTimerRing(size int) timerRing {
	r := timerRing{make([]uint32, size), make([]uint64, size/64), make([]uint64, size/64/64)}
	for i := range r.heads {
		r.heads[i] = noNode
	}
	return r
}

func (r *timerRing) mark(i int) {
	r.words[i>>6] |= 1 << (i & 63)
	r.sums[i>>12] |= 1 << (i >> 6 & 63)
}

func (r *timerRing) clear(i int) {
	r.words[i>>6] &^= 1 << (i & 63)
	if r.words[i>>6] == 0 {
		r.sums[i>>12] &^= 1 << (i >> 6 & 63)
	}
}

// find is the first slot in use from slot from on, around the ring.
func (r *timerRing) find(from int) (i int, ok bool) {
	w := from >> 6
	if m := r.words[w] >> (from & 63); m != 0 {
		return from + bits.TrailingZeros64(m), true
	}
	w = (w + 1) & (len(r.words) - 1)
	s := w >> 6
	if m := r.sums[s] >> (w & 63); m != 0 {
		w += bits.TrailingZeros64(m)
		return w<<6 + bits.TrailingZeros64(r.words[w]), true
	}
	for range r.sums {
		s = (s + 1) & (len(r.sums) - 1)
		if m := r.sums[s]; m != 0 {
			w = s<<6 + bits.TrailingZeros64(m)
			return w<<6 + bits.TrailingZeros64(r.words[w]), true
		}
	}
	return 0, false
}
