package tcp

import (
	"unsafe"

	"ndpip/ring"
)

// The receiver of the lossy profile keeps what comes early, as far as its window and the queue reach, and tells the sender
// of it. What is in the queue belongs to the stack; it may be dropped until it is acknowledged (RFC 2018 8).

// queueEntries is the memory of the queue and of the sender's spans, in entries of a ring.Slab: a place for each entry of
// the receive ring, and a span for each two of the transmit ring, within bounds.
func queueEntries(rx, tx uint32) uint32 {
	q, s := queuePlaces(rx, tx)
	return uint32((uintptr(q)*unsafe.Sizeof(held{}) + uintptr(s)*unsafe.Sizeof(span{}) + ring.EntrySize - 1) / ring.EntrySize)
}

func queuePlaces(rx, tx uint32) (queue, spans uint32) {
	return min(max(rx, 64), 1<<14), min(max(tx/2, 64), 1<<13)
}

// QueueWant is what SetQueue is to be given, in entries of a ring.Slab.
func (c *Conn) QueueWant() uint32 { return c.loss().want }

// SetQueue gives the connection memory for what is known of a loss. It has none.
func (c *Conn) SetQueue(memory uintptr) {
	l := c.loss()
	l.memory = memory
	q, s := queuePlaces(c.RxWant, l.txWant)
	l.queue.set(memory, q)
	l.spans.set(memory+uintptr(q)*unsafe.Sizeof(held{}), s)
}

// keep queues text that lies behind a gap, and notes a FIN there.
func (c *Conn) keep(s *Segment) Verdict {
	l := c.loss()
	if c.flags&orphan != 0 || s.Len > 0 && l.memory == 0 {
		if c.flags&orphan != 0 {
			return Bad
		}
		return NoQueue
	}
	if s.Flags&FIN != 0 {
		l.fin, l.finHeld = s.Seq+Seq(s.Len), true
	}
	b := span{s.Seq, minSeq(s.Seq+Seq(s.Len), c.rcvAdv)}
	addr := s.Addr
	i := find(&l.queue, b.start)
	if i < l.queue.n {
		if q := l.queue.at(i); q.start.LessEq(b.start) {
			addr += uintptr(b.start.Size(q.end))
			b.start = q.end
			i++
		}
	}
	if i < l.queue.n {
		b.end = minSeq(b.end, l.queue.at(i).start)
	}
	if !b.start.Less(b.end) || l.queue.full() {
		return Bad
	}
	l.queue.insert(i, held{b, s.Handle, addr})
	l.note(b)
	return Kept
}

// note puts a span that was queued at the front of what ACKs tell.
func (l *lossy) note(b span) {
	var rest [len(l.recent)]span
	n, untold := uint8(0), uint8(0)
	for i, r := range l.recent[:l.nrecent] {
		if r.end.Less(b.start) || b.end.Less(r.start) {
			rest[n] = r
			n++
			if uint8(i) < l.untold {
				untold++
			}
		} else {
			b = span{minSeq(b.start, r.start), maxSeq(b.end, r.end)}
		}
	}
	l.recent[0] = b
	n = uint8(copy(l.recent[1:], rest[:n]))
	l.nrecent = n + 1
	l.untold = min(untold+1, l.nrecent)
}

// waits says whether something came early.
func (l *lossy) waits() bool { return l.queue.n > 0 || l.finHeld }

// Follow takes the next piece of what came early and is next now. Kept: it lies in the receive ring. Gathered and Bad: it
// was copied, or has come twice, and its buffer is to be released. NoStage: SetStage, and call again. Done: there is
// nothing more.
func (c *Conn) Follow(p *Params, now int64) (handle uintptr, v Verdict) {
	l := c.loss()
	c.gaps = max(c.gaps, 1) // the ACK is not to wait
	for i := l.nrecent; i > 0; i-- {
		if r := &l.recent[i-1]; r.end.LessEq(c.rcvNxt) {
			copy(l.recent[i-1:], l.recent[i:l.nrecent])
			l.nrecent--
			if i <= l.untold {
				l.untold--
			}
		}
	}
	if l.queue.n == 0 || c.rcvNxt.Less(l.queue.at(0).start) {
		if l.finHeld && l.fin.LessEq(c.rcvNxt) {
			l.finHeld = false
			if l.fin == c.rcvNxt && (c.state == Established || c.state == FinWait1 || c.state == FinWait2) {
				c.inputFin(p, now)
			}
		}
		return 0, Done
	}
	q := *l.queue.at(0)
	if d := q.start.Size(c.rcvNxt); d >= int32(q.size()) {
		l.queue.cut(0, 1)
		return q.handle, Bad
	} else {
		s := Segment{Seq: c.rcvNxt, Len: q.size() - uint32(d), Handle: q.handle, Addr: q.addr + uintptr(d)}
		switch v = c.inputText(&s); v {
		case Kept, Gathered:
			l.queue.cut(0, 1)
			return q.handle, v
		case NoStage:
			return 0, v
		default:
			return 0, Done // no room: it waits
		}
	}
}

// sacks says whether ACKs tell of gaps by selective acknowledgements.
func (c *Conn) sacks() bool { return c.lossy != 0 && c.loss().sackOK }

// Queued is how many segments wait that came early.
func (c *Conn) Queued() uint32 {
	if c.lossy == 0 {
		return 0
	}
	return c.loss().queue.n
}

// DropQueued takes the last of what came early out of the queue; 0: there is nothing. The sender will send it again when its
// timer expires (RFC 2018 8).
func (c *Conn) DropQueued() (handle uintptr) {
	if c.Queued() == 0 {
		return 0
	}
	l := c.loss()
	handle = l.queue.at(l.queue.n - 1).handle
	l.queue.n--
	l.nrecent, l.untold, l.finHeld = 0, 0, false
	return handle
}

// acks is how many ACKs tell what there is to be told of early segments: each has room for sackBlocks blocks.
func (l *lossy) acks() int { return (int(l.untold) + sackBlocks - 1) / sackBlocks }

// sackBlocks is how many blocks an ACK without other options has room for (RFC 2018 3).
const sackBlocks = 4

// Sack gives the blocks of an ACK: of several, the k-th from the last.
func (c *Conn) Sack(k int) (blocks [sackBlocks][2]Seq, n int) {
	if c.lossy == 0 {
		return
	}
	l := c.loss()
	if !l.sackOK || l.queue.n == 0 {
		return
	}
	for i := k * sackBlocks; i < int(l.nrecent) && n < sackBlocks; i++ {
		if r := l.recent[i]; c.rcvNxt.Less(r.start) {
			blocks[n] = [2]Seq{r.start, r.end}
			n++
		}
	}
	if k == 0 {
		l.untold = 0
	}
	return blocks, n
}
