package tcp

// sample takes a round-trip time in ns (RFC 6298 2.2 and 2.3, alpha 1/8 and beta 1/4) and computes the RTO from it.
func (c *Conn) sample(p *Params, r int64) {
	r = max(r, 1)
	if c.srtt == 0 {
		c.srtt, c.rttvar = r, r/2
	} else {
		d := c.srtt - r
		if d < 0 {
			d = -d
		}
		c.rttvar += (d - c.rttvar) / 4
		c.srtt += (r - c.srtt) / 8
	}
	// The margin is never less than a quarter: on a long path of even round trips RTTVAR dwindles to nothing, and the next
	// ACK that a peer delays by its 40 ms, or that a busy host sends late, would find the timer expired.
	c.rto = min(max(c.srtt+max(4*c.rttvar, c.srtt/4, 1), p.MinRTO), p.MaxRTO)
	c.timedAt, c.backoff = 0, 0
}

// interval is how long the timer runs: the RTO, doubled for each time that it has expired without progress (RFC 6298
// 5.5), or that a closed window was probed.
//
// What is sent after a resend has the doubled time, too, until it gives a sample: a path that has become slower than the
// RTO would see each segment sent twice otherwise, and give no sample ever (Karn and Partridge, 1987). But not more than
// the 3 s that RFC 6298 5.7 allows a connection without a sample to start with: after losses that were real, the first
// segment may be lost as well. And what is resent does not have it: go-back-N needs a timeout for each loss among it.
func (c *Conn) interval(p *Params) int64 {
	n := c.retries
	switch {
	case c.sndWnd == 0 && c.state.Synchronized():
		n = c.backoff
	case c.flags&rtxOn == 0:
		for n < c.backoff && c.rto<<(n+1) <= 3*p.InitRTO {
			n++
		}
	}
	if c.rto > p.MaxRTO>>n {
		return p.MaxRTO
	}
	return c.rto << n
}

// timeFrom starts to time a round trip with the segment that begins at seq, sent at now: the acknowledgement of more
// than seq ends it.
func (c *Conn) timeFrom(seq Seq, now int64) {
	if c.flags&rtxOn == 0 && c.sndWnd > 0 {
		c.timed, c.timedAt = seq, now
	}
}

// Sent tells the worker that the application has sent from an idle connection, wants a closed window watched, or has
// read: the timer is started and the window looked at.
func (c *Conn) Sent(p *Params, now int64) {
	if c.stageLen != 0 {
		c.pend |= PendRead // also in CLOSED: what was received before is read before the end
	}
	if c.state == Closed {
		return
	}
	c.noteFin()
	c.sendHeld()
	c.startTimer(p, now)
	if c.windowOpened() || c.flags&squeezed != 0 {
		c.flags &^= squeezed
		c.pend |= PendAck
	}
}

// startTimer starts the retransmission (or persist) timer for what is sent (or held) and has none.
func (c *Conn) startTimer(p *Params, now int64) {
	if c.rtoAt != 0 || c.outstanding() == 0 || !c.state.Synchronized() {
		return
	}
	if c.timedAt == 0 {
		c.timeFrom(c.sndUna, now)
	}
	c.rtoAt = now + c.interval(p)
	c.pend |= PendTimer
}

// NextTimer is when Timer is to be called next; 0: not at all.
func (c *Conn) NextTimer() int64 {
	at := c.rtoAt
	if c.ageAt != 0 && (at == 0 || c.ageAt < at) {
		at = c.ageAt
	}
	if k := c.keepAt(); k != 0 && (at == 0 || k < at) {
		at = k
	}
	return at
}

// Timer does what is due at now, and leaves PendTimer set if there is to be a next time.
func (c *Conn) Timer(p *Params, now int64) {
	if c.ageAt != 0 && now >= c.ageAt {
		c.ageAt = 0
		if c.lossy == 0 || !c.rested() {
			c.die(NoReason)
			return
		}
	}
	if c.rtoAt != 0 && now >= c.rtoAt {
		c.timeout(p, now)
	}
	if k := c.keepAt(); k != 0 && now >= k {
		c.keepAlive()
	}
	if c.NextTimer() != 0 {
		c.pend |= PendTimer
	}
}

// Unanswered says whether the timer has expired more than once without progress: the next hop may not be there any more.
func (c *Conn) Unanswered() bool { return c.retries > 1 }

// timeout is the expiry of the retransmission timer (RFC 6298 5.4 to 5.6), of the SYN's, or of the persist timer
// (RFC 9293 3.8.6.1).
func (c *Conn) timeout(p *Params, now int64) {
	if c.failSince == 0 {
		c.failSince = now - c.interval(p) // what is missing was sent when the timer was started
	}
	probing := c.sndWnd == 0 && c.state.Synchronized()
	// A peer that keeps its window closed but answers is alive (RFC 9293 3.8.6.1, MUST-37): answers reset retries.
	if c.overdue(p, now) {
		if c.state.Synchronized() {
			c.pend |= PendRst
		}
		if c.soft != NoReason {
			c.die(c.soft) // says more than that the time is over
		} else {
			c.die(TimedOut)
		}
		return
	}
	if c.retries < 255 {
		c.retries++
	}
	c.backoff = min(c.backoff+1, maxBackoff)
	c.rtoAt = now + c.interval(p)
	if end := c.failSince + c.UserTimeout; c.UserTimeout > 0 && end > now && end < c.rtoAt {
		c.rtoAt = end
	}
	c.timedAt = 0
	switch {
	case !c.state.Synchronized():
		c.pend |= PendSyn
	case c.outstanding() == 0:
		c.rtoAt = 0
	case probing:
		c.pend |= PendProbe
	default:
		if c.lossy != 0 {
			c.expire(now, c.retries == 1)
		}
		c.startRtx()
	}
}

// overdue says whether to give up (R2, RFC 9293 3.8.3). The application's own limit takes the place of the number of
// retransmissions, in both directions (MUST-21); but a connection that is being opened, or that nobody waits for, ends
// after its number at the latest.
func (c *Conn) overdue(p *Params, now int64) bool {
	limit, byTime := p.Retries, false
	switch {
	case c.state == SynSent || c.state == SynReceived && c.flags&active != 0:
		limit = p.SynRetries
	case c.state == SynReceived:
		limit = p.SynAckRetries
	case c.flags&orphan != 0:
		limit = p.OrphanRetries
	default:
		byTime = c.UserTimeout > 0
	}
	if c.UserTimeout > 0 && now-c.failSince >= c.UserTimeout {
		return true
	}
	return !byTime && c.retries >= limit
}

// SoftError notes what ICMP says of the segment that begins at seq. It ends no connection, as it is no proof: neither
// that the peer is gone for good (RFC 9293 3.9.2.2, MUST-56) nor that the network sent it (RFC 5927 4). But if nothing
// is acknowledged until the end, it is the reason that the application gets. It returns false if no such segment is
// under way.
func (c *Conn) SoftError(seq Seq, r Reason) bool {
	if !c.state.Synchronized() || !seq.InWindow(c.sndUna, c.outstanding()) {
		return false
	}
	c.soft = r
	return true
}

// maxBackoff keeps the shift of interval within reason.
const maxBackoff = 31

// Keep-alive (RFC 9293 3.8.4): after KeepIdle of silence a probe, the same again if that is short, and further probes
// every 75 s at most, as elsewhere; after keepProbes without an answer the peer is gone.
const (
	keepProbes   = 9
	keepInterval = 75e9
)

// keepAt is when the next keep-alive probe is due; 0: none is. While there is something to retransmit, that is probe
// enough.
func (c *Conn) keepAt() int64 {
	if c.KeepIdle == 0 || c.rtoAt != 0 || !c.state.Synchronized() || c.state == TimeWait {
		return 0
	}
	if c.KeepCnt == 0 {
		return c.heardAt + c.KeepIdle
	}
	gap := c.KeepGap
	if gap == 0 {
		gap = min(c.KeepIdle, keepInterval)
	}
	return c.heardAt + c.KeepIdle + int64(c.KeepCnt)*gap
}

func (c *Conn) keepAlive() {
	limit := c.KeepMax
	if limit == 0 {
		limit = keepProbes
	}
	if c.KeepCnt >= limit {
		c.pend |= PendRst
		c.die(TimedOut)
		return
	}
	c.KeepCnt++
	c.pend |= PendProbe
}

// Heard notes a segment from the peer, for keep-alive: the stack calls it when KeepIdle is set.
func (c *Conn) Heard(now int64) { c.heardAt, c.KeepCnt = now, 0 }

// SetKeepAlive sets after how many ns of silence a probe is sent; 0: never. Worker only.
func (c *Conn) SetKeepAlive(idle, now int64) {
	c.KeepIdle, c.heardAt, c.KeepCnt = idle, now, 0
	c.pend |= PendTimer
}
