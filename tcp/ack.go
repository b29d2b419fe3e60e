package tcp

// inputAck is the fifth step of RFC 9293 3.10.7.4 in the synchronized states.
func (c *Conn) inputAck(p *Params, now int64, s *Segment) Verdict {
	ack := s.Ack
	if d := c.sndUna.Size(ack); d > 0 {
		if c.sndNxt().Less(ack) {
			c.challengeAck(now) // it acknowledges what was never sent
			return Bad
		}
		c.advance(p, now, ack)
		// Its window goes with it, whatever its number: by SND.WL1 alone a segment that is sent again would be too old,
		// and the former window, counted from the new SND.UNA, would reach further than the peer has ever said.
		c.setWindow(s.Seq, s.Ack, uint32(s.Wnd)<<c.SndShift)
		return Done
	} else if d < 0 {
		if uint32(-d) > c.maxWnd.Load() {
			c.challengeAck(now) // older than anything that can be under way (RFC 5961 5.2)
			return Bad
		}
		return Done // an old duplicate: its text may be new, its window is not
	}
	c.updateWindow(s)
	return Done
}

// advance moves SND.UNA up to ack and does what follows from it.
func (c *Conn) advance(p *Params, now int64, ack Seq) {
	c.sndUna = ack
	c.pend |= PendAcked | PendWrite | pendPublish | PendTimer
	c.retries, c.failSince = 0, 0
	if c.timedAt != 0 && c.timed.Less(ack) {
		c.sample(p, now-c.timedAt)
	}
	if c.flags&rtxOn != 0 {
		if c.rtxEnd.LessEq(ack) {
			c.flags &^= rtxOn
		} else if c.rtxNxt.Less(ack) {
			c.rtxNxt = ack
		}
		if c.flags&rtxOn != 0 {
			c.pend |= PendRtx
		} else if c.flags&outs != 0 {
			c.rtxNxt = c.rtxEnd
			c.pend |= PendSend // what has waited for the repair
		}
	}
	if nxt := c.sndNxt(); ack == nxt {
		c.rtoAt, c.timedAt = 0, 0
	} else {
		c.rtoAt = now + c.interval(p)
		// What the application sends next is timed from now, so that a sample may be too long, by the time between two
		// ACKs, but never too short.
		if c.timedAt == 0 || c.timed == nxt {
			c.timeFrom(nxt, now)
		}
	}
	c.soft = NoReason
	if c.fin.Load() != 0 && ack == Seq(c.finSeq.Load())+1 {
		c.finAcked(p, now)
	}
}

func (c *Conn) finAcked(p *Params, now int64) {
	c.noteFin()
	switch c.state {
	case FinWait1:
		c.setState(FinWait2)
		if c.flags&orphan != 0 {
			c.ageAt = now + p.FinWait2
			c.pend |= PendTimer
		}
	case Closing:
		c.enterTimeWait(p, now)
	case LastAck:
		c.die(NoReason)
	case Closed, SynSent, SynReceived, Established, FinWait2, CloseWait, TimeWait:
	}
}

// updateWindow takes the window of an acceptable segment (RFC 9293 3.10.7.4: SND.WL1 and SND.WL2 keep old segments
// from changing it).
func (c *Conn) updateWindow(s *Segment) {
	if !(c.wl1.Less(s.Seq) || (c.wl1 == s.Seq && c.wl2.LessEq(s.Ack))) {
		return
	}
	c.setWindow(s.Seq, s.Ack, uint32(s.Wnd)<<c.SndShift)
}

func (c *Conn) setWindow(seq, ack Seq, wnd uint32) {
	c.wl1, c.wl2 = seq, ack
	if wnd == c.sndWnd {
		if wnd == 0 && c.flags&orphan == 0 {
			// The peer is alive, only busy: it may stay so for ever (RFC 9293 3.8.6.1, MUST-35), as long as the
			// application does.
			c.retries = 0
		}
		return
	}
	opened := c.sndWnd == 0
	c.sndWnd = wnd
	if wnd > c.maxWnd.Load() {
		c.maxWnd.Store(wnd)
	}
	c.pend |= pendPublish | PendWrite
	if c.flags&rtxOn != 0 {
		c.pend |= PendRtx
	}
	if !opened || !c.state.Synchronized() {
		return
	}
	probed := c.backoff > 0
	c.backoff = 0 // the persist timer's backoff ends
	if c.flags&orphan == 0 {
		c.retries = 0
	}
	// What the persist timer has probed with goes out now. What was sent before the window closed, a moment ago, is
	// still under way: a window that is rounded down closes and opens with each read.
	if probed && c.outstanding() > 0 {
		c.rtoAt = 0
		c.startRtx()
	}
}

// sendHeld starts sending what the application queued without sending, once all before it is acknowledged and the
// window lets it.
func (c *Conn) sendHeld() {
	c.noteHeld()
	if c.unsent() && c.sndUna == c.newNxt && c.sndWnd > 0 && c.flags&rtxOn == 0 {
		c.rtoAt = 0 // that was the persist timer's
		c.startRtx()
	}
}

// startRtx begins go-back-N: everything from SND.UNA up to SND.NXT is sent once more. Until it is acknowledged the
// application sees no window beyond it, so nothing new overtakes what is being repaired.
func (c *Conn) startRtx() {
	end := c.sndNxt()
	if c.flags&outs != 0 {
		if end = c.outEnd(); !c.sndUna.Less(end) {
			c.pend |= PendSend // nothing has been sent yet
			return
		}
	}
	c.flags |= rtxOn
	c.rtxNxt, c.rtxEnd = c.sndUna, end
	c.rtxIdx, c.rtxSeq = c.txNext, c.txSeq
	c.flags |= copied
	c.timedAt = 0 // Karn's algorithm (RFC 6298 3): a repeated segment gives no sample
	c.pend |= PendRtx | pendPublish
	if c.lossy != 0 {
		c.goBackFrom()
	}
}

// Copied says that what is acknowledged may have been sent by the worker alone, as a copy: the application's own frames
// may still be on their way to the port. An application that lost its CPU in the middle of a call, or a port that takes
// no frames, are enough for that. Whoever gives acknowledged buffers back has to look there first.
func (c *Conn) Copied() bool { return c.flags&copied != 0 }

// PopAcked moves the handles of acknowledged entries off the transmit ring into dst and returns how many.
// When it fills dst there may be more.
func PopAcked[H ~uintptr](c *Conn, dst []H) int {
	n := 0
	if c.rtxEnd.LessEq(c.sndUna) {
		c.flags &^= copied
	}
	if c.txBase == 0 {
		return 0
	}
	tail := uint32(c.snd.Load())
	for n < len(dst) && c.txNext != tail {
		e := c.txAt(c.txNext)
		end := c.txSeq + Seq(e.Len())
		if c.sndUna.Less(end) {
			break
		}
		dst[n] = H(e.Handle)
		n++
		c.txNext++
		c.txSeq = end
	}
	return n
}
