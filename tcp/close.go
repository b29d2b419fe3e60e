package tcp

// noteFin takes notice of a FIN that the application has sent (or queued) through its own transmit queue.
// RFC 9293 3.10.4.
func (c *Conn) noteFin() {
	if c.fin.Load() == 0 {
		return
	}
	switch c.state {
	case Established:
		c.setState(FinWait1)
	case CloseWait:
		c.setState(LastAck)
	case Closed, SynSent, SynReceived, FinWait1, FinWait2, Closing, LastAck, TimeWait:
	}
}

// Close is the CLOSE call, once the application has let go of the connection for good: it will not touch it again.
// The application has queued a FIN before, if it saw a state that allows one. If received bytes were never read, the
// connection is reset, so that the peer knows (RFC 1122 4.2.2.13, RFC 2525 2.17).
func (c *Conn) Close(p *Params, now int64) {
	c.flags |= orphan
	c.pend |= pendPublish // a round, in which the rings can go
	c.Watch.Store(0)
	c.noteFin()
	switch c.state {
	case Closed:
		c.pend |= PendGone
		return
	case SynSent:
		c.die(Aborted)
		return
	case SynReceived:
		c.abort()
		return
	case FinWait2:
		c.ageAt = now + p.FinWait2
		c.pend |= PendTimer
	case Established, CloseWait, FinWait1, Closing, LastAck, TimeWait:
	}
	if c.unread() || c.Linger0() {
		if c.state != TimeWait {
			c.abort()
		}
		return
	}
	if c.fin.Load() == 0 {
		// The connection came up while the application was closing it. Nobody else writes its side any more.
		nxt := c.sndNxt()
		c.HoldFin(nxt)
		c.CommitFin(nxt)
	}
	c.Sent(p, now)
}

// unread says whether the application has left received bytes.
func (c *Conn) unread() bool {
	end := c.rcvNxt
	if c.flags&finRcvd != 0 {
		end--
	}
	return Seq(c.usr.Load()>>32) != end
}

// Bits of Conn.ending.
const (
	lingerZero = 1 << iota // SO_LINGER with a time of 0
	readShut               // the application will read no more
)

// SetLinger0 makes Close send an RST (SO_LINGER with a time of 0). Application only.
func (c *Conn) SetLinger0(on bool) {
	if on {
		c.ending.Or(lingerZero)
	} else {
		c.ending.And(^uint32(lingerZero))
	}
}

// ShutRead says that the application will read no more than is there. Text that comes when our side of the stream has
// ended, too, resets the connection, as there is nobody left to take it (RFC 1122 4.2.2.13). Application only.
func (c *Conn) ShutRead() { c.ending.Or(readShut) }

// Abort is the ABORT call (RFC 9293 3.10.5).
func (c *Conn) Abort() { c.abort() }

func (c *Conn) abort() {
	if c.state == Closed {
		return
	}
	if c.state != SynSent && c.state != TimeWait {
		c.pend |= PendRst
	}
	c.die(Aborted)
}

// Die ends the connection for a reason from below TCP.
func (c *Conn) Die(r Reason) { c.die(r) }

// die ends the connection: CLOSED, with the reason for the application.
func (c *Conn) die(r Reason) {
	c.setState(Closed)
	c.reason = r
	c.rtoAt, c.ageAt, c.timedAt = 0, 0, 0
	c.flags &^= rtxOn
	c.pend &^= PendAck | PendSyn | PendRtx | PendProbe | PendTimer
	c.pend |= PendRead | PendWrite | PendOpen | pendPublish
	if c.flags&orphan != 0 {
		c.pend |= PendGone
	}
}

// Orphan says whether the application has let go of the connection.
func (c *Conn) Orphan() bool { return c.flags&orphan != 0 }

// Through says whether no more data can come or go, and nobody is left to read: the connection only waits for the
// peer's FIN or for 2 MSL to pass, and needs no buffers and no rings for that.
func (c *Conn) Through() bool {
	return c.flags&orphan != 0 && (c.state == FinWait2 || c.state == TimeWait)
}

// Linger0 says whether Close sends an RST.
func (c *Conn) Linger0() bool { return c.ending.Load()&lingerZero != 0 }

// DrainRx and DrainTx take one buffer off a ring of a connection that is done with; 0: there is none left.
func (c *Conn) DrainRx() (handle uintptr) {
	w := c.usr.Load()
	if c.rxBase == 0 || uint32(w) == c.rxNext {
		return 0
	}
	c.usr.Store(w&^0xffff_ffff | uint64(uint32(w)+1))
	return c.rxAt(uint32(w)).Handle
}

// TxLeft says whether DrainTx has something to give.
func (c *Conn) TxLeft() bool { return c.txBase != 0 && c.txNext != uint32(c.snd.Load()) }

// DrainTx is described with DrainRx.
func (c *Conn) DrainTx() (handle uintptr) {
	if c.txBase == 0 || c.txNext == uint32(c.snd.Load()) {
		return 0
	}
	c.txNext++
	return c.txAt(c.txNext - 1).Handle
}
