package tcp

// Look is what a tool that looks at connections from outside wants to know besides Info. Sizes are in bytes.
type Look struct {
	Unread   uint32 // received, and not read by the application
	RcvWnd   uint32 // that the peer was offered, as of now
	Acked    uint32 // acknowledged by the peer since the connection began; wraps
	Received uint32 // received since then; wraps
	Timer    int64  // ns until the retransmission, persist or age timer expires; 0: none runs
	Orphan   bool   // the application has closed it
}

// Look looks at the connection. Worker only.
func (c *Conn) Look(now int64) (l Look) {
	end, una := c.rcvNxt, c.sndUna
	if c.flags&finRcvd != 0 {
		end--
	}
	if c.fin.Load() != 0 && una == Seq(c.finSeq.Load())+1 {
		una--
	}
	l.Orphan = c.flags&orphan != 0
	if c.state >= Established || c.state == Closed && c.irs != 0 {
		l.Unread = uint32(max(Seq(c.usr.Load()>>32).Size(end), 0))
		l.Received = uint32(end-c.irs) - 1
		l.Acked = uint32(una-c.iss) - 1
		l.RcvWnd = uint32(max(c.rcvNxt.Size(c.rcvAdv), 0))
	}
	if at := c.NextTimer(); at != 0 {
		l.Timer = max(at-now, 1)
	}
	return l
}
