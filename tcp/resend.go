package tcp

import "ndpip/ring"

// AckSeq is the sequence number of a pure ACK: SND.NXT, but not beyond the peer's window, or the peer would have to
// drop the segment: the window may have shrunk since it was sent. Nor beyond what was queued and not sent at all.
func (c *Conn) AckSeq() Seq {
	nxt := c.sndNxt()
	c.noteHeld()
	if c.unsent() {
		nxt = c.newNxt
	}
	if c.flags&outs != 0 {
		nxt = c.sentOut(nxt)
	}
	edge := c.sndUna + Seq(c.sndWnd)
	beyond := edge.Size(nxt)
	if beyond <= 0 || !c.state.Synchronized() {
		return nxt
	}
	// An edge that has moved left by less than a unit of the scale was rounded: the peer takes what lies there, and may
	// have done so already, so that an ACK from the edge would be old to it. But when the timer has expired since, the
	// peer has not taken it; and what probes a closed window it never does. Were the ACKs sent from there, none would
	// count until the window opens, which it may never do: the peer may be waiting for these very ACKs.
	if beyond < 1<<c.SndShift && c.backoff == 0 {
		return nxt
	}
	return edge
}

// SynNumbers are ISS and RCV.NXT, for the SYN.
func (c *Conn) SynNumbers() (iss, rcvNxt Seq) { return c.iss, c.rcvNxt }

// RstNumbers are the numbers of an RST that the peer accepts.
func (c *Conn) RstNumbers() (seq, ack Seq) { return c.AckSeq(), c.rcvNxt }

// Probe is what a probe carries: the byte at addr, or the FIN, at seq = SND.UNA. When nothing waits, ok is false and
// seq is the number before SND.UNA.
func (c *Conn) Probe() (addr uintptr, seq Seq, fin, ok bool) {
	if c.outstanding() == 0 {
		return 0, c.sndUna - 1, false, false
	}
	c.sentNew(c.sndUna + 1)
	if c.finAt(c.sndUna) {
		return 0, c.sndUna, true, true
	}
	if c.flags&copied == 0 {
		c.flags |= copied
		c.rtxEnd = c.sndUna + 1
	}
	i, at := c.txNext, c.txSeq
	for e := c.txAt(i); ; e = c.txAt(i) {
		if end := at + Seq(e.Len()); c.sndUna.Less(end) {
			return e.Addr() + uintptr(at.Size(c.sndUna)), c.sndUna, false, true
		} else {
			i, at = i+1, end
		}
	}
}

// finAt says whether our FIN takes the unit at seq.
func (c *Conn) finAt(seq Seq) bool { return c.fin.Load() != 0 && seq == Seq(c.finSeq.Load()) }

// NextResend is the next segment of go-back-N: n bytes at addr, or the FIN. ok is false when all up to rtxEnd are
// sent or the window ends.
func (c *Conn) NextResend() (addr uintptr, n int, seq Seq, fin, ok bool) {
	seq = c.rtxNxt
	most := 1 << 16
	if c.lossy != 0 {
		if seq, most, ok = c.loss().resendAt(c); !ok {
			return 0, 0, 0, false, false
		}
	}
	if c.flags&rtxOn != 0 && !seq.Less(c.rtxEnd) || c.flags&rtxOn == 0 && c.lossy == 0 {
		return 0, 0, 0, false, false
	}
	wnd := min(int(int32(c.sndUna+Seq(c.sndWnd))-int32(seq)), most)
	if wnd <= 0 {
		return 0, 0, 0, false, false
	}
	if c.finAt(seq) {
		return 0, 0, seq, true, true
	}
	e := c.entryAt(seq, uint32(c.snd.Load()))
	if e == nil {
		return 0, 0, 0, false, false
	}
	d := c.rtxSeq.Size(seq)
	return e.Addr() + uintptr(d), min(e.Len()-int(d), wnd), seq, false, true
}

// entryAt moves the cursor to the transmit ring's entry that has seq in it; nil: there is none before index tail.
func (c *Conn) entryAt(seq Seq, tail uint32) *ring.Entry {
	if c.rtxSeq.Less(c.txSeq) || seq.Less(c.rtxSeq) {
		c.rtxIdx, c.rtxSeq = c.txNext, c.txSeq // the cursor was overtaken by acknowledgements, or goes back
	}
	for c.rtxIdx != tail {
		e := c.txAt(c.rtxIdx)
		end := c.rtxSeq + Seq(e.Len())
		if seq.Less(end) {
			return e
		}
		c.rtxIdx, c.rtxSeq = c.rtxIdx+1, end
	}
	return nil
}

// noteHeld takes notice of what the application has queued without sending: it is sent by the worker, newNxt to newEnd.
func (c *Conn) noteHeld() {
	nxt := c.sndNxt() // before held: what the application sends itself comes after it has cleared that
	if c.held.Load() == 0 {
		return
	}
	from := Seq(c.heldFrom.Load())
	size := from.Size(nxt)
	if size <= 0 {
		return // it is about to be committed
	}
	if d := uint32(c.newEnd - from); d == 0 || d > uint32(size) {
		c.newNxt = from
	} // else it is known, and only a FIN has come behind it
	c.newEnd = nxt
}

// unsent says whether something that was held has not been sent at all.
func (c *Conn) unsent() bool { return c.newNxt != c.newEnd }

// sentNew notes that the worker has sent up to seq.
func (c *Conn) sentNew(seq Seq) {
	if uint32(seq-c.newNxt) <= uint32(c.newEnd-c.newNxt) {
		c.newNxt = seq
	}
}

// Resent moves on after NextResend's segment was sent.
func (c *Conn) Resent() {
	_, n, seq, fin, ok := c.NextResend()
	if !ok {
		return
	}
	if fin {
		n = 1
	}
	if c.flags&rtxOn == 0 {
		c.loss().repaired(c, seq, uint32(n))
		return
	}
	c.rtxNxt = seq + Seq(n)
	c.sentNew(c.rtxNxt)
}

// First says whether what lies at seq was held back until now, so that sending it is no retransmission.
func (c *Conn) First(seq Seq) bool { return seq.InWindow(c.newNxt, uint32(c.newEnd-c.newNxt)) }
