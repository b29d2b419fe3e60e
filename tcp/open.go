package tcp

// Setup is what a connection is opened with.
type Setup struct {
	ISS       Seq
	RcvBuf    uint32 // bytes
	RxEntries uint32 // entries of the rings, powers of two
	TxEntries uint32
	MSS       uint16  // largest segment that we can send and receive on this port
	SndMSS    uint16  // further bound on what we send; 0: none
	Shift     uint8   // scale that we offer
	Lossy     uintptr // memory for the lossy profile's state, of LossyEntries; 0: the lossless profile
	Control   uint8   // its congestion control
	Out       bool    // the worker sends; see out.go
	Laddr     uint32
	Raddr     uint32
	Lport     uint16
	Rport     uint16
}

// defaultMSS is what a peer takes that does not say (RFC 9293 3.7.1, MUST-15).
const defaultMSS = 536

func (c *Conn) setup(p *Params, u *Setup) {
	c.iss, c.sndUna = u.ISS, u.ISS
	c.snd.Store(pack(u.ISS+1, uint32(c.snd.Load())))
	c.txSeq = u.ISS + 1
	c.RcvBuf, c.RxWant, c.TxWant = u.RcvBuf, u.RxEntries, u.TxEntries
	c.rcvMSS = u.MSS
	c.SndMSS = u.MSS
	if u.Out {
		c.flags |= outs
		c.rtxNxt = u.ISS + 1
	}
	if u.SndMSS != 0 && u.SndMSS < u.MSS {
		c.SndMSS = u.SndMSS
	}
	c.RcvShift = u.Shift
	c.Laddr, c.Raddr, c.Lport, c.Rport = u.Laddr, u.Raddr, u.Lport, u.Rport
	c.rto = p.InitRTO
	c.setLossy(u.Lossy, u.Control)
}

// Open is the active OPEN call (RFC 9293 3.10.1): SYN-SENT, a SYN to be sent. With hold the SYN waits for the next hop
// to be known; Go sends it.
func (c *Conn) Open(p *Params, u *Setup) {
	c.setup(p, u)
	c.flags |= active
	c.setState(SynSent)
}

// Go sends the SYN and starts its timer.
func (c *Conn) Go(now int64) {
	c.pend |= PendSyn | PendTimer
	c.timedAt, c.rtoAt = now, now+c.rto
}

// Accept is the arrival of a SYN at a listener (RFC 9293 3.10.7.2): SYN-RECEIVED, a SYN and ACK to be sent.
func (c *Conn) Accept(p *Params, u *Setup, now int64, s *Segment) {
	c.setup(p, u)
	c.takeSyn(s)
	c.setWindow(s.Seq, s.Ack, uint32(s.Wnd)) // the window of a SYN is never scaled (RFC 7323 2.2)
	c.setState(SynReceived)
	c.Go(now)
}

// Untimed says that the SYN and ACK went out at some other time: the ACK that comes now tells nothing of the round trip.
func (c *Conn) Untimed() { c.timedAt = 0 }

// takeSyn takes the peer's initial sequence number and options.
func (c *Conn) takeSyn(s *Segment) {
	c.irs = s.Seq
	c.told.Store(uint32(s.Seq)) // less than all that is to come
	c.rcvNxt = s.Seq + 1
	c.usr.Store(pack(c.rcvNxt, uint32(c.usr.Load())))
	mss := uint16(defaultMSS)
	scale := int8(-1)
	if s.Opts != nil {
		if s.Opts.MSS != 0 {
			mss = max(s.Opts.MSS, MinMSS)
		}
		scale = s.Opts.WndScale
		if c.lossy != 0 {
			c.loss().sackOK = s.Opts.SackOK
		}
	}
	c.SndMSS = min(c.SndMSS, mss)
	if scale >= 0 {
		c.SndShift = uint8(min(scale, 14))
	} else { // scaling only if both offer it
		c.SndShift, c.RcvShift = 0, 0
		c.flags |= noScale
		c.RcvBuf = min(c.RcvBuf, 65535) // more cannot be told
	}
	c.rcvAdv = c.rcvNxt + Seq(min(c.RcvBuf, 65535))
}

// MinMSS keeps a peer from making us send a frame per few bytes (CVE-2019-11479).
const MinMSS = 48

// SynOptions are the options of our SYN, or SYN and ACK: a window scale, and selective acknowledgements, only if the peer
// offered them.
func (c *Conn) SynOptions() (mss uint16, shift int8, sack bool) {
	shift = int8(c.RcvShift)
	if c.flags&noScale != 0 {
		shift = -1
	}
	return c.rcvMSS, shift, c.lossy != 0 && (c.state == SynSent || c.loss().sackOK)
}

// inputSynSent is RFC 9293 3.10.7.3.
func (c *Conn) inputSynSent(p *Params, now int64, s *Segment) Verdict {
	if s.Flags&ACK != 0 && s.Ack != c.iss+1 {
		if s.Flags&RST != 0 {
			return Bad
		}
		return Refuse
	}
	if s.Flags&RST != 0 {
		if s.Flags&ACK == 0 {
			return Bad
		}
		c.die(Refused)
		return Done
	}
	if s.Flags&SYN == 0 {
		return Bad
	}
	c.takeSyn(s)
	c.setWindow(s.Seq, s.Ack, uint32(s.Wnd))
	if s.Flags&ACK == 0 {
		// Simultaneous open: our SYN goes out again, as SYN and ACK.
		c.setState(SynReceived)
		c.pend |= PendSyn
		return Done
	}
	c.established(p, now, s)
	c.pend |= PendAck
	return Done
}

// inputSynReceived waits for the ACK of our SYN (RFC 9293 3.10.7.4, fifth step).
func (c *Conn) inputSynReceived(p *Params, now int64, s *Segment) Verdict {
	if s.Ack != c.iss+1 {
		return Refuse
	}
	wnd := uint32(s.Wnd)
	if s.Flags&SYN == 0 {
		wnd <<= c.SndShift
	}
	c.setWindow(s.Seq, s.Ack, wnd)
	c.established(p, now, s)
	return Done
}

func (c *Conn) established(p *Params, now int64, s *Segment) {
	c.sndUna = s.Ack
	if c.retries > 0 {
		c.rto = 3 * p.InitRTO // RFC 6298 5.7: 3 s, where the SYN's timer starts at 1 s
	} else if c.timedAt != 0 {
		c.sample(p, now-c.timedAt)
	}
	if c.lossy != 0 {
		c.beginLossy()
	}
	c.retries, c.backoff, c.failSince, c.rtoAt, c.timedAt = 0, 0, 0, 0, 0
	c.heardAt = now
	c.pend &^= PendSyn // one that found no buffer, or was asked for again, comes too late
	c.setState(Established)
	c.pend |= PendOpen | PendWrite | PendRead | PendTimer
	c.publishAck()
}

// SynSeq says whether seq is the sequence number of our SYN, as an ICMP error about it must quote (RFC 5927 4.1).
func (c *Conn) SynSeq(seq Seq) bool { return seq == c.iss }
