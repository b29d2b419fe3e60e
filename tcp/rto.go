package tcp

// sample takes a round-trip time in ns (RFC 6298 2.2 and 2.3, alpha 1/8 and beta 1/4).
func (c *Conn) sample(r int64) {
	if r < 1 {
		r = 1
	}
	if c.srtt == 0 {
		c.srtt, c.rttvar = r, r/2
		return
	}
	d := c.srtt - r
	if d < 0 {
		d = -d
	}
	c.rttvar += (d - c.rttvar) / 4
	c.srtt += (r - c.srtt) / 8
}

// resetRTO computes the RTO without backoff.
func (c *Conn) resetRTO(p *Params) {
	if c.srtt == 0 {
		c.rto = p.InitRTO
		return
	}
	c.rto = min(max(c.srtt+max(4*c.rttvar, 1), p.MinRTO), p.MaxRTO)
}

// Sent tells the worker that the application has sent from an idle connection, wants a closed window watched, or has
// read: the timer is started and the window looked at.
func (c *Conn) Sent(p *Params, now int64) {
	c.noteFin()
	c.sendHeld()
	if c.outstanding() > 0 && c.rtoAt == 0 && c.state != Closed {
		if c.timedAt == 0 && c.flags&rtxOn == 0 {
			c.timed, c.timedAt = c.sndNxt(), now
		}
		c.rtoAt = now + c.rto
		c.pend |= PendTimer
	}
	if c.windowOpened() {
		c.pend |= PendAck
	}
	if c.stageLen != 0 {
		c.pend |= PendRead
	}
}

// NextTimer is when Timer is to be called next; 0: not at all.
func (c *Conn) NextTimer() int64 {
	at := c.rtoAt
	if c.ageAt != 0 && (at == 0 || c.ageAt < at) {
		at = c.ageAt
	}
	if c.KeepIdle != 0 && c.state == Established {
		if k := c.heardAt + c.KeepIdle; at == 0 || k < at {
			at = k
		}
	}
	return at
}

// Timer does what is due at now, and leaves PendTimer set if there is to be a next time.
func (c *Conn) Timer(p *Params, now int64) {
	if c.ageAt != 0 && now >= c.ageAt {
		c.ageAt = 0
		c.die(NoReason)
		return
	}
	if c.rtoAt != 0 && now >= c.rtoAt {
		c.timeout(p, now)
	}
	if c.KeepIdle != 0 && c.state == Established && now >= c.heardAt+c.KeepIdle {
		c.keepAlive(now)
	}
	if c.NextTimer() != 0 {
		c.pend |= PendTimer
	}
}

// timeout is the expiry of the retransmission timer (RFC 6298 5.4 to 5.6), of the SYN's, or of the persist timer
// (RFC 9293 3.8.6.1).
func (c *Conn) timeout(p *Params, now int64) {
	if c.failSince == 0 {
		c.failSince = now
	}
	probing := c.sndWnd == 0 && c.state.Synchronized()
	limit := p.Retries
	switch {
	case c.state == SynSent || c.state == SynReceived:
		limit = p.SynRetries
	case c.flags&orphan != 0:
		limit = p.OrphanRetries
	}
	// A peer that keeps its window closed but answers is alive (RFC 9293 3.8.6.1, MUST-35): answers reset retries.
	if c.retries >= limit || (c.UserTimeout > 0 && now-c.failSince >= c.UserTimeout) {
		if c.state.Synchronized() {
			c.pend |= PendRst
		}
		c.die(TimedOut)
		return
	}
	c.retries++
	c.rto = min(c.rto*2, p.MaxRTO)
	c.rtoAt = now + c.rto
	c.timedAt = 0
	switch {
	case !c.state.Synchronized():
		c.pend |= PendSyn
	case c.outstanding() == 0:
		c.rtoAt = 0
	case probing:
		c.pend |= PendProbe
	default:
		c.startRtx()
	}
}

// keepAlive sends a probe after KeepIdle of silence, and gives up after keepProbes of them (RFC 9293 3.8.4).
func (c *Conn) keepAlive(now int64) {
	const keepProbes = 9
	if c.KeepCnt >= keepProbes {
		c.pend |= PendRst
		c.die(TimedOut)
		return
	}
	c.KeepCnt++
	c.heardAt = now // the next probe comes after the same silence
	c.pend |= PendProbe
}

// SetKeepAlive sets after how many ns of silence a probe is sent; 0: never. Worker only.
func (c *Conn) SetKeepAlive(idle, now int64) {
	c.KeepIdle, c.heardAt, c.KeepCnt = idle, now, 0
	c.pend |= PendTimer
}
