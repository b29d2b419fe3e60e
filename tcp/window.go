package tcp

// opens is the receiver's silly window avoidance (RFC 9293 3.8.6.2.2): a window update is worth a segment when it
// opens the window by at least min(MSS, half the buffer), and when the peer has less than half of it left: in a steady
// flow the ACKs of data carry the window, and a further update for each read would only cost.
//
// What counts is what the peer sees: a scaled window is rounded down to whole units, so that one of less than a unit is
// closed to it.
func opens(read, nxt, adv Seq, buf uint32, mss uint32, shift uint8) bool {
	has := whole(nxt, adv, shift)
	return has <= buf/2 && gains(has, whole(nxt, read+Seq(buf), shift), buf, mss)
}

// gains says whether a window of now instead of has is worth telling.
func gains(has, now, buf, mss uint32) bool { return now > has && now-has >= min(mss, buf/2) }

// whole is the window from nxt to edge in bytes, as far as it can be told.
func whole(nxt, edge Seq, shift uint8) uint32 {
	return uint32(max(nxt.Size(edge), 0)) >> shift << shift
}

func (c *Conn) windowOpened() bool {
	return c.state >= Established && c.state <= FinWait2 &&
		opens(Seq(c.usr.Load()>>32), c.rcvNxt, c.rcvAdv, c.RcvBuf, uint32(c.rcvMSS), c.RcvShift)
}

// window gives the window field to advertise and moves the right edge. The edge never moves left (RFC 9293 3.8.6) but
// for rounding, and moves right only by what is worth telling.
func (c *Conn) window() uint16 {
	if c.flags&squeezed != 0 {
		return 0
	}
	edge, free := c.rcvAdv, Seq(c.usr.Load()>>32)+Seq(c.RcvBuf)
	// With a gap the window stays as it is: an ACK that changes it is no duplicate to the sender (RFC 5681 2). Selective
	// acknowledgements do not need that.
	if (c.gaps == 0 || c.sacks()) && gains(whole(c.rcvNxt, edge, c.RcvShift), whole(c.rcvNxt, free, c.RcvShift), c.RcvBuf, uint32(c.rcvMSS)) {
		edge = free
	}
	// A scaled window is rounded down: rounded up, the edge would run away from the buffer, a little with each segment.
	// So the peer may see it move left by less than one unit, and what it has sent by then is taken all the same: rcvAdv
	// keeps the furthest edge (RFC 7323 2.4).
	field := min(uint32(max(c.rcvNxt.Size(edge), 0))>>c.RcvShift, 65535)
	if got := c.rcvNxt + Seq(field<<c.RcvShift); c.rcvAdv.Less(got) {
		c.rcvAdv = got
	}
	return uint16(field)
}

// Squeeze closes the window although there is room in the connection's buffer: the stack has no buffer for more, and has
// dropped what came. A peer that sees the window closed waits and asks; one that does not would give up in the end. This
// moves the right edge to the left, which a sender must be ready for (RFC 9293 3.8.6). It ends when the application
// reads, or something of the peer's is taken again.
func (c *Conn) Squeeze() {
	c.flags |= squeezed
	c.pend |= PendAck
}

// Ease ends Squeeze.
func (c *Conn) Ease() { c.flags &^= squeezed }

// RxHeld is how many entries of the receive ring the application has not given back, and how many segments wait that came
// early.
func (c *Conn) RxHeld() uint32 { return c.rxNext - uint32(c.usr.Load()) + c.Queued() }

// SynWindow is the window of a SYN, which is never scaled (RFC 7323 2.2).
func (c *Conn) SynWindow() uint16 { return uint16(min(c.RcvBuf, 65535)) }

func (c *Conn) publishAck() {
	c.ack.Store(pack(c.rcvNxt, uint32(c.window())))
}

// Publish shows the application what the burst has changed. The order matters: entries before rxTail, rxTail before
// status (so that the end of stream is seen after all data), edge before the look at SND.NXT.
func (c *Conn) Publish(p *Params, now int64) {
	if c.stageLen != 0 {
		c.publishStage()
	}
	if c.pend&(PendRead|PendAck) != 0 {
		if c.rxNext != c.rxTail.Load() {
			c.rxTail.Store(c.rxNext)
		}
		if c.state >= SynReceived {
			c.publishAck()
		}
	}
	if c.stageLen == 0 && c.staged.Load() != 0 {
		c.staged.Store(0) // after rxTail: what was gathered is seen before nothing is said to wait
	}
	if c.pend&PendAcked != 0 && c.txNext != c.txHead.Load() {
		c.txHead.Store(c.txNext)
	}
	if c.pend&pendPublish == 0 {
		return
	}
	c.sendHeld()
	c.publishEdge()
	w := uint32(c.state) | uint32(c.reason)<<8
	if c.flags&finRcvd != 0 && c.stageLen == 0 {
		w |= statusEOF
	}
	if c.status.Load() != w {
		c.status.Store(w)
	}
	// The application may have sent before it could see that everything was acknowledged, and so not have asked for
	// the timer: either we see its SND.NXT here, or it sees our edge after it has stored SND.NXT.
	c.startTimer(p, now)
	c.pend &^= pendPublish
}

func (c *Conn) publishEdge() {
	right := c.sndUna + Seq(min(c.sndWnd, c.cwnd))
	if c.flags&rtxOn != 0 && c.rtxEnd.Less(right) {
		right = c.rtxEnd
	}
	c.edge.Store(pack(c.sndUna, uint32(right)))
}

// NewText is how many bytes of text came in since Publish, if they may be acknowledged a little later (RFC 1122 4.2.3.2):
// they are in order, and nothing else is to be told. Else it is 0.
func (c *Conn) NewText() uint32 {
	const now = PendSyn | PendRst | PendRtx | PendProbe | PendOpen | PendGone
	if c.state != Established || c.pend&now != 0 || c.gaps != 0 {
		return 0
	}
	return uint32(Seq(c.ack.Load() >> 32).Size(c.rcvNxt))
}

// RcvMSS is the largest segment that the peer is to send.
func (c *Conn) RcvMSS() uint32 { return uint32(c.rcvMSS) }

// Owes says whether the application's frames have not told the peer of its text up to ack.
func (c *Conn) Owes(ack Seq) bool { return Seq(c.told.Load()) != ack }
