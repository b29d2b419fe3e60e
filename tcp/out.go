package tcp

import "ndpip/ring"

// Where the worker sends all: the application enters what it writes in the transmit ring and publishes SND.NXT by Commit,
// as if it had sent it, and the worker goes through the ring behind it. So SND.NXT is ahead of what the peer can have
// seen, which ends at outNxt. Go-back-N goes up to there, and until it is over nothing new is sent: so rtxNxt says where
// that will go on when nothing is being resent, and rtxEnd when something is. What is held (a FIN, or the byte that probes
// a closed window) is sent by go-back-N, as elsewhere.

// outNxt is the first unit that was not sent.
func (c *Conn) outNxt() Seq {
	nxt := c.rtxNxt
	if c.flags&rtxOn != 0 {
		nxt = c.rtxEnd
	}
	return maxSeq(nxt, c.sndUna) // the peer may acknowledge what it cannot have seen
}

// NextOut is what the worker has to send first: an entry of the transmit ring and its sequence number. ok is false when
// there is none; fin says that it is the FIN. ahead is how many entries lie behind it.
func (c *Conn) NextOut() (e *ring.Entry, seq Seq, ahead uint32, fin, ok bool) {
	w := c.snd.Load()
	seq = c.outNxt()
	if c.flags&rtxOn != 0 || !seq.Less(Seq(w>>32)) || c.heldAt(seq) {
		return nil, seq, 0, false, false
	}
	if e = c.entryAt(seq, uint32(w)); e == nil {
		return nil, seq, 0, true, c.finAt(seq)
	}
	return e, c.rtxSeq, uint32(w) - c.rtxIdx - 1, false, true
}

// OutAt is the entry k behind NextOut's.
func (c *Conn) OutAt(k uint32) *ring.Entry { return c.txAt(c.rtxIdx + k) }

// Out moves on to seq: NextOut's entry, or the FIN, was sent.
func (c *Conn) Out(seq Seq) { c.rtxNxt = seq }

// heldAt says whether what begins at seq is held.
func (c *Conn) heldAt(seq Seq) bool { return c.held.Load() != 0 && Seq(c.heldFrom.Load()).LessEq(seq) }

// outEnd is how far go-back-N goes: to what was sent, or, when only something held is left, to its end.
func (c *Conn) outEnd() Seq {
	end := c.outNxt()
	if c.heldAt(end) {
		end = c.sndNxt()
	}
	return end
}

// sentOut is how much of what lies before nxt was sent.
func (c *Conn) sentOut(nxt Seq) Seq {
	if out := c.outNxt(); out.Less(nxt) && !c.heldAt(out) {
		return out
	}
	return nxt
}
