package tcp

// Verdict says what became of a segment.
type Verdict uint16

// The verdicts. Without Kept the caller releases the buffer.
const (
	Done     Verdict = 0         // nothing more to do than what Pending says
	Kept     Verdict = 1 << iota // the payload lies in the receive ring now, or waits for what is missing before it
	Refuse                       // answer with the RST that RFC 9293 3.10.7.1 gives for this segment
	Reopen                       // a new SYN for a connection in TIME-WAIT: release it and treat the segment as new
	NoStage                      // the payload needs a gathering buffer: SetStage, and feed the segment again
	NoRing                       // the payload needs a receive ring: give the connection one and feed the segment again
	Bad                          // unacceptable; counted by the caller
	Gathered                     // the payload was taken by copying it, see stage.go
	NoQueue                      // the lossy profile needs memory: SetQueue, and feed the segment again
	More                         // with Kept or Gathered: what came early can follow now, see Follow
)

// Input is segment arrival (RFC 9293 3.10.7) for a connection that exists. now is in ns.
//
// It changes the connection and adds to Pending; the caller acts on that once the burst is through, so a burst costs
// one ACK and one publication per connection, not one per segment.
func (c *Conn) Input(p *Params, now int64, s *Segment) Verdict {
	// The fast path: nothing but ACK and PSH, and the very next byte.
	if s.Flags&^PSH == ACK && s.Seq == c.rcvNxt && c.quick {
		if wnd := uint32(s.Wnd) << c.SndShift; s.Ack != c.sndUna || wnd != c.sndWnd || wnd == 0 {
			if v := c.inputAck(p, now, s); v != Done {
				return v
			}
		}
		if s.Len == 0 {
			return Done
		}
		return c.inputText(s)
	}
	return c.inputSlow(p, now, s)
}

// Run is what the next segments of bulk transfer look like, for one who takes several of them at once.
type Run struct {
	Seq   Seq    // of the next
	Ack   Seq    // this ACK
	Wnd   uint16 // and this window field are no news
	Room  uint32 // bytes of text that fit the window
	Slots uint32 // entries that the receive ring takes, and the place of the next
	Index uint32
	Mask  uint32
	Base  uintptr
}

// Run says what the plain next segment would look like: nothing but ACK and PSH, in order, within the window, no news. What
// holds for it holds for those that follow it, as far as there is room: who takes some writes their payloads into the ring,
// moves r on and gives it to Ran, until something else happens to the connection. It is false when Input must look at the
// next segment.
func (c *Conn) Run(r *Run) bool {
	field := c.sndWnd >> c.SndShift
	used := c.rxNext - uint32(c.usr.Load())
	if !c.quick || c.rxBase == 0 || c.stageLen != 0 || used > c.rxMask/2 || field-1 >= 65535 || field<<c.SndShift != c.sndWnd {
		return false
	}
	r.Seq, r.Ack, r.Wnd = c.rcvNxt, c.sndUna, uint16(field)
	r.Room, r.Slots = uint32(max(c.rcvNxt.Size(c.rcvAdv), 0)), c.rxMask/2-used+1
	r.Index, r.Mask, r.Base = c.rxNext, c.rxMask, c.rxBase
	return true
}

// Ran takes the segments before where r stands now.
func (c *Conn) Ran(r *Run) {
	c.rcvNxt, c.rxNext = r.Seq, r.Index
	c.pend |= PendAck | PendRead
}

func (c *Conn) inputSlow(p *Params, now int64, s *Segment) Verdict {
	switch c.state {
	case Closed:
		return Refuse
	case SynSent:
		return c.inputSynSent(p, now, s)
	case SynReceived, Established, FinWait1, FinWait2, CloseWait, Closing, LastAck, TimeWait:
	}

	// A new incarnation may follow TIME-WAIT at once if its sequence numbers are higher (RFC 9293 3.10.7.4, MAY-2).
	if c.state == TimeWait && s.Flags&(SYN|RST|ACK) == SYN && c.rcvNxt.Less(s.Seq) {
		return Reopen
	}
	// A repeated SYN means that our SYN and ACK was lost.
	if c.state == SynReceived && s.Flags&(SYN|RST|ACK) == SYN && s.Seq == c.irs {
		c.pend |= PendSyn
		return Done
	}
	if c.state == SynReceived && c.flags&active != 0 && s.Flags&(SYN|ACK) == SYN|ACK && s.Seq == c.irs {
		// Simultaneous open: the peer's SYN and ACK carries the ACK of our SYN.
		if s.Ack == c.iss+1 {
			return c.inputSynReceived(p, now, s)
		}
	}

	if !c.acceptable(s) {
		return c.unacceptable(p, now, s)
	}
	if s.Flags&RST != 0 {
		return c.inputRst(now, s)
	}
	// A SYN in the window of a synchronized connection is answered, not obeyed (RFC 5961 4.2).
	if s.Flags&SYN != 0 {
		c.challengeAck(now)
		return Bad
	}
	if s.Flags&ACK == 0 {
		return Bad
	}
	if c.state == SynReceived {
		if v := c.inputSynReceived(p, now, s); v != Done {
			return v
		}
	} else if c.lossy != 0 {
		if v := c.inputAckLossy(p, now, s); v != Done {
			return v
		}
	} else if v := c.inputAck(p, now, s); v != Done {
		return v
	}
	if c.state == Closed {
		return Done
	}
	if s.Len == 0 && s.Flags&FIN == 0 {
		return Done
	}
	return c.inputTextSlow(p, now, s)
}

// acceptable is the test of RFC 9293 3.4. A segment at RCV.NXT passes even when the window is closed, for the sake of
// its ACK, RST or FIN; its text does not get in then. So does a bare ACK at the right edge of the window: a peer that
// has filled the window, and of whose text some was lost, sends its ACKs from there.
func (c *Conn) acceptable(s *Segment) bool {
	if s.Seq == c.rcvNxt {
		return true
	}
	wnd := uint32(c.rcvNxt.Size(c.rcvAdv))
	n := s.seqLen()
	if n == 0 {
		if s.Flags&RST == 0 {
			wnd++
		}
		return s.Seq.InWindow(c.rcvNxt, wnd)
	}
	return s.Seq.InWindow(c.rcvNxt, wnd) || (s.Seq+Seq(n-1)).InWindow(c.rcvNxt, max(wnd, 1))
}

func (c *Conn) unacceptable(p *Params, now int64, s *Segment) Verdict {
	if s.Flags&RST != 0 {
		return Bad
	}
	if c.state == TimeWait {
		// The peer did not get our last ACK: it is sent again and the wait starts anew (RFC 9293 3.10.7.4).
		if s.Flags&FIN != 0 && s.Seq+Seq(s.seqLen()) == c.rcvNxt {
			c.waitAgain(p, now)
		} else {
			c.challengeAck(now)
		}
		return Bad
	}
	if s.seqLen() > 0 && s.Flags&SYN == 0 {
		c.pend |= PendAck // a resend, or beyond the window: the peer needs to know where we are
	} else {
		c.challengeAck(now)
	}
	return Bad
}

// inputRst obeys an RST only at RCV.NXT; elsewhere in the window it is challenged (RFC 5961 3.2).
func (c *Conn) inputRst(now int64, s *Segment) Verdict {
	if s.Seq != c.rcvNxt {
		c.challengeAck(now)
		return Bad
	}
	switch c.state {
	case SynReceived:
		c.die(Refused)
	case TimeWait, Closing, LastAck:
		c.die(NoReason)
	case Established, FinWait1, FinWait2, CloseWait, Closed, SynSent:
		c.die(ResetByPeer)
	}
	return Done
}

// Challenge sends a challenge ACK.
func (c *Conn) Challenge(now int64) { c.challengeAck(now) }

// challengeAck sends an ACK that makes an honest peer show the right numbers; at most 10 a second per connection, so
// that an attacker gains no amplifier and learns nothing from a shared budget (RFC 5961 7, CVE-2016-5696).
func (c *Conn) challengeAck(now int64) {
	const perSecond = 10
	if at := uint32(now >> 20); at-c.challengeAt >= 1e9>>20 {
		c.challengeAt, c.challenges = at, 0
	}
	if c.challenges < perSecond {
		c.challenges++
		c.pend |= PendAck
	}
}

// inputText takes the payload of the segment at RCV.NXT in ESTABLISHED.
func (c *Conn) inputText(s *Segment) Verdict {
	n := s.Len
	if room := uint32(c.rcvNxt.Size(c.rcvAdv)); n > room {
		n = room
	}
	c.pend |= PendAck
	if c.rxBase == 0 && n != 0 {
		return NoRing
	}
	if n == 0 {
		return Bad
	}
	if used := c.rxNext - uint32(c.usr.Load()); used > c.rxMask/2 || c.stageLen != 0 {
		return c.inputCrowded(s, n, used)
	}
	c.pushRx(s.Handle, s.Addr, n)
	c.rcvNxt += Seq(n)
	return Kept
}

// dupAcks is how many duplicate ACKs make a sender of the usual kind send the missing segment at once (RFC 5681 3.2).
const dupAcks = 3

// Gaps is how many duplicate ACKs the burst has earned: one for each segment that lies behind a gap (RFC 5681 4.2), as
// far as they are of use. It is taken once.
func (c *Conn) Gaps() (n int) {
	n, c.gaps = int(c.gaps), 0
	if c.sacks() {
		n = c.loss().acks()
	}
	return n
}

// inputTextSlow takes text and FIN in the states that have any, with what lies before RCV.NXT cut off.
func (c *Conn) inputTextSlow(p *Params, now int64, s *Segment) Verdict {
	switch c.state {
	case Established, FinWait1, FinWait2:
	case CloseWait, Closing, LastAck:
		c.pend |= PendAck // the FIN, or text before it, once more
		return Done
	case TimeWait:
		c.challengeAck(now) // beyond the peer's FIN there is nothing
		return Bad
	case Closed, SynSent, SynReceived:
		return Done
	}
	t := *s
	if d := s.Seq.Size(c.rcvNxt); d > 0 {
		if uint32(d) > t.Len { // d is at most Len+1, the FIN counted: the segment is acceptable
			c.pend |= PendAck
			return Done
		}
		t.Seq, t.Addr, t.Len = c.rcvNxt, t.Addr+uintptr(d), t.Len-uint32(d)
	}
	if t.Seq != c.rcvNxt {
		c.pend |= PendAck // a gap: without a reorder queue the sender goes back to here
		if c.lossy != 0 {
			c.gaps = min(c.gaps, 254) + 1
			return c.keep(&t)
		}
		c.gaps = min(c.gaps+1, dupAcks)
		return Bad
	}
	if t.Len > 0 && c.flags&orphan != 0 {
		// Nobody is left to read it (RFC 1122 4.2.2.13, RFC 2525 2.17).
		c.abort()
		return Bad
	}
	if t.Len > 0 && (c.state == FinWait1 || c.state == FinWait2) && c.ending.Load()&readShut != 0 {
		c.pend |= PendRst
		c.die(ResetByPeer) // so does Linux call it
		return Bad
	}
	v := Done
	if t.Len > 0 {
		if v = c.inputText(&t); v != Kept && v != Gathered {
			return v
		}
	}
	if s.Flags&FIN != 0 && c.rcvNxt == t.Seq+Seq(t.Len) {
		c.inputFin(p, now)
	}
	if c.lossy != 0 && c.loss().waits() {
		v |= More
	}
	return v
}

// inputFin is the eighth step of RFC 9293 3.10.7.4.
func (c *Conn) inputFin(p *Params, now int64) {
	c.rcvNxt++
	if c.rcvAdv.Less(c.rcvNxt) {
		c.rcvAdv = c.rcvNxt // a FIN gets in even when the window is closed: it takes no buffer
	}
	c.flags |= finRcvd
	c.pend |= PendAck | PendRead | pendPublish
	c.noteFin() // if ours is under way, the two have crossed
	switch c.state {
	case Established:
		c.setState(CloseWait)
	case FinWait1:
		c.setState(Closing) // our FIN is not acknowledged, or inputAck would have moved on
	case FinWait2:
		c.enterTimeWait(p, now)
	case Closed, SynSent, SynReceived, CloseWait, Closing, LastAck, TimeWait:
	}
}

func (c *Conn) enterTimeWait(p *Params, now int64) {
	c.setState(TimeWait)
	c.rtoAt = 0
	c.ageAt = now + p.TimeWait
	c.pend |= PendTimer
}

// waitAgain acknowledges the peer's FIN once more and starts the 2 MSL anew.
func (c *Conn) waitAgain(p *Params, now int64) {
	c.ageAt = now + p.TimeWait
	c.pend |= PendAck | PendTimer
}
