package tcp

import "ndpip/ring"

// What the application's thread does with a connection. It reads line 2 and writes line 1.

// Status is the state, the reason of an end that was not orderly, and whether the peer has sent its FIN. The end of
// stream holds only once the receive ring is empty, looked at after this.
func (c *Conn) Status() (s State, r Reason, eof bool) {
	w := c.status.Load()
	return State(w), Reason(w >> 8), w&statusEOF != 0
}

// FinQueued says whether the application has ended its side of the stream.
func (c *Conn) FinQueued() bool { return c.fin.Load() != 0 }

// Room is how many bytes the peer's window lets the application send now, from SND.NXT. idle says that all that was
// sent is acknowledged.
func (c *Conn) Room() (room uint32, nxt Seq, idle bool) {
	edge := c.edge.Load()
	una := Seq(edge >> 32)
	nxt = c.sndNxt()
	if c.held.Load() != 0 {
		if una.LessEq(Seq(c.heldFrom.Load())) {
			return 0, nxt, false
		}
		c.held.Store(0)
	}
	return uint32(max(nxt.Size(Seq(edge)), 0)), nxt, una == nxt
}

// Worth is the sender's silly window avoidance (RFC 9293 3.8.6.2.1): whether a segment of n bytes, cut short by the
// window, is worth sending while others are under way.
func (c *Conn) Worth(n uint32) bool {
	return n >= uint32(c.SndMSS) || n >= c.maxWnd.Load()/2
}

// Writable says whether a write would take something. Any thread may ask, also while another one writes: nothing is
// changed here, unlike in Room.
func (c *Conn) Writable() bool {
	for {
		w := c.snd.Load()
		ok := c.writable(Seq(w>>32), uint32(w))
		if c.snd.Load() == w { // else what was looked at after it does not belong to it
			return ok
		}
	}
}

func (c *Conn) writable(nxt Seq, tail uint32) bool {
	edge := c.edge.Load()
	una := Seq(edge >> 32)
	if una == nxt {
		return true // all is acknowledged: even a closed window takes a byte then, for the persist timer to send
	}
	if c.held.Load() != 0 && una.LessEq(Seq(c.heldFrom.Load())) {
		return false
	}
	room := nxt.Size(Seq(edge))
	if room <= 0 || !c.Worth(uint32(room)) {
		return false
	}
	used := tail - c.txHead.Load()
	return used == 0 || used < c.TxWant // the ring was made before its first entry, and that before the store to snd
}

// TxRoom is how many entries the transmit ring takes, looked up anew when fewer than want are known.
func (c *Conn) TxRoom(want uint32) uint32 {
	if c.txBase == 0 {
		return 0
	}
	tail := uint32(c.snd.Load())
	n := c.TxWant - (tail - c.TxSeen)
	if n < want {
		c.TxSeen = c.txHead.Load()
		n = c.TxWant - (tail - c.TxSeen)
	}
	return n
}

// TxTail is the transmit ring's producer index.
func (c *Conn) TxTail() uint32 { return uint32(c.snd.Load()) }

// Commit makes everything up to SND.NXT = nxt known to the worker; tail is the transmit ring's new producer index.
// It comes before the frames are handed to the port. It returns whether the worker must be told (Attn): the connection
// was idle, so no timer runs.
func (c *Conn) Commit(old, nxt Seq, tail uint32) bool {
	c.snd.Store(pack(nxt, tail))
	return Seq(c.edge.Load()>>32) == old
}

// Hold says that what is committed next, from seq on, is queued and not sent.
func (c *Conn) Hold(seq Seq) {
	c.heldFrom.Store(uint32(seq))
	c.held.Store(1)
}

// CommitFin ends the stream: the FIN takes the unit at SND.NXT.
func (c *Conn) CommitFin(nxt Seq) {
	c.finSeq.Store(uint32(nxt))
	c.fin.Store(1)
	c.snd.Store(pack(nxt+1, uint32(c.snd.Load())))
}

// AckWord is RCV.NXT and the window field, for a frame that is sent now.
func (c *Conn) AckWord() (ack Seq, wnd uint16) {
	w := c.ack.Load()
	return Seq(w >> 32), uint16(w)
}

// Tell notes that frames with this acknowledgement have gone out, see Owes.
func (c *Conn) Tell(ack Seq) { c.told.Store(uint32(ack)) }

// Unread is how many entries of the receive ring there are to read, from index head on.
func (c *Conn) Unread() (head, n uint32) {
	head = uint32(c.usr.Load())
	return head, c.rxTail.Load() - head
}

// Consumed tells the worker that n bytes were read and the ring's entries before head are done with. It returns
// whether the worker must be told (Attn): the window has opened enough to be told to the peer, or data wait for room.
func (c *Conn) Consumed(head uint32, n uint32) bool {
	read := Seq(c.usr.Load()>>32) + Seq(n)
	c.usr.Store(pack(read, head))
	if c.staged.Load() != 0 && c.rxTail.Load()-head <= c.rxMask/2 {
		return true
	}
	w := c.ack.Load()
	nxt := Seq(w >> 32)
	return opens(read, nxt, nxt+Seq(uint32(uint16(w))<<c.RcvShift), c.RcvBuf, uint32(c.SndMSS), c.RcvShift)
}

// Staged says whether received bytes wait, in a gathering buffer, for room in the receive ring: whatever the state, the
// stream goes on when the ring has been read.
func (c *Conn) Staged() bool { return c.staged.Load() != 0 }

// PutTx writes an entry of the transmit ring at index i: n bytes of payload at addr.
func (c *Conn) PutTx(i uint32, handle, addr uintptr, n int) { *c.txAt(i) = ring.Make(handle, addr, n) }

// RxAt is the entry of the receive ring at index i, to be read until Consumed.
func (c *Conn) RxAt(i uint32) *ring.Entry { return c.rxAt(i) }

// HoldFin says that the FIN, which takes the unit at seq, is queued and not sent. If a byte is held already, the FIN
// goes out behind it.
func (c *Conn) HoldFin(seq Seq) {
	if c.held.Load() == 0 {
		c.Hold(seq)
	}
}
