package tcp

// Wait is what is left of a connection in TIME-WAIT that the application has let go of: 40 bytes instead of a Conn, in
// which all is kept that an answer to the peer depends on.
type Wait struct {
	Ends        int64 // when 2 MSL are over
	sndNxt      Seq   // SND.NXT; all is acknowledged, the FIN too
	rcvNxt      Seq
	rcvAdv      Seq
	challengeAt uint32
	maxWnd      uint32
	wnd         uint16 // window field of the ACKs
	challenges  uint8
	Marks       uint8 // the stack's
	TOS, TTL    uint8 // the stack's
}

// Waits says whether Rest may be called: TIME-WAIT, and nobody but the peer can still want something.
func (c *Conn) Waits() bool { return c.flags&orphan != 0 && c.state == TimeWait }

// Rest gives what is to be kept of a connection for which Waits holds. The connection itself can be used anew.
func (c *Conn) Rest() Wait {
	_, wnd := c.AckWord()
	return Wait{Ends: c.ageAt, challengeAt: c.challengeAt, sndNxt: c.sndNxt(), rcvNxt: c.rcvNxt, rcvAdv: c.rcvAdv,
		maxWnd: c.maxWnd.Load(), wnd: wnd, challenges: c.challenges}
}

// Numbers are SND.NXT, RCV.NXT and the window field, for an ACK.
func (w *Wait) Numbers() (seq, ack Seq, wnd uint16) { return w.sndNxt, w.rcvNxt, w.wnd }

// Input is segment arrival. ack asks for an ACK; gone says that TIME-WAIT is over. What counts in TIME-WAIT is written
// down once, in Conn.Input: it is asked by way of a Conn that is made up for the purpose.
func (w *Wait) Input(p *Params, now int64, s *Segment) (v Verdict, ack, gone bool) {
	var c Conn
	w.wake(&c)
	v = c.Input(p, now, s)
	w.Ends = c.ageAt
	return v, w.settle(&c), c.state == Closed
}

// Challenge says whether to send a challenge ACK.
func (w *Wait) Challenge(now int64) (ack bool) {
	var c Conn
	w.wake(&c)
	c.challengeAck(now)
	return w.settle(&c)
}

func (w *Wait) wake(c *Conn) {
	c.state, c.flags, c.ageAt = TimeWait, orphan|finRcvd, w.Ends
	c.sndUna = w.sndNxt
	c.snd.Store(pack(w.sndNxt, 0))
	c.rcvNxt, c.rcvAdv = w.rcvNxt, w.rcvAdv
	c.sndWnd = w.maxWnd
	c.maxWnd.Store(w.maxWnd)
	c.challengeAt, c.challenges = w.challengeAt, w.challenges
}

func (w *Wait) settle(c *Conn) (ack bool) {
	w.challengeAt, w.challenges = c.challengeAt, c.challenges
	return c.pend&PendAck != 0
}
