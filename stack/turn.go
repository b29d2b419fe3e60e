package stack

import (
	"ndpip/dpdk"
	"ndpip/tcp"
)

// Marks in Conn.Linked.
const (
	inTable uint8 = 1 << iota
	inBurst
	inAgain
	heldPort  // keeps its local port in use (ports.hold)
	reusePort // with SO_REUSEADDR
	waitNoted // ports know of TIME-WAIT
	inLate    // an ACK waits, see late.go
	answers   // the application answers before the next turn, see late.go
)

// Turn is one turn of the stack: receive a burst, feed each frame to its connection, do what the application asked
// for and what the timers say, then act once per connection (publish, acknowledge, release), and send. It returns
// whether there was anything to do.
//
// With a worker it is the body of the worker's loop; without one the application's thread calls it; in tests it is
// called step by step.
func (s *Stack) Turn() bool { return s.turn(0) }

func (s *Stack) turn(op dpdk.Op) bool {
	s.w.Exchange(op | dpdk.OpFree | dpdk.OpStock | dpdk.OpRx)
	s.now = s.clock(s.w.TSC)
	n := s.w.NRx
	if n > 0 {
		s.measureRoom()
		if s.tap != nil {
			s.tap(s.w.Rx[:n], false)
		}
	}
	s.input(s.w.Rx[:n&(2*dpdk.RxCap-1)])
	if n > 0 && s.cfg.RxBuffers > 0 {
		peak(&s.count.RxHeldPeak, uint64(s.cfg.RxBuffers*3/4-s.room))
	}
	s.last, s.stuck = nil, false
	if len(s.again) > 0 {
		s.touchAgain()
	}
	s.count.RxFrames += uint64(n)
	busy := n > 0
	if s.attend() {
		busy = true
	}
	if s.late.n > 0 {
		s.tellLate()
	}
	if s.commands() {
		busy = true
	}
	s.wheel.advance(s.now, s.fire)
	if s.expire() {
		busy = true
	}
	s.tickNeighbours()
	s.settle()
	s.neigh.publish(s.now) // after the frames that waited have gone out: what applications send comes behind them
	s.helpApp()
	if counting {
		s.count.Turns++
		if busy {
			s.count.BusyTurns++
		}
	}
	return busy
}

// flush hands the worker's frames to the port. What the port refuses stays for the next time.
func (s *Stack) flush() {
	if s.tap != nil {
		s.tapWorker()
	}
	s.w.Exchange(dpdk.OpTx | dpdk.OpFree | dpdk.OpStock)
	if s.tap != nil {
		s.tapped = s.w.NTx
	}
}

// touch puts a connection on the list of this turn.
func (s *Stack) touch(c *tcp.Conn) {
	if c.Linked&inBurst == 0 {
		c.Linked |= inBurst
		s.touched = append(s.touched, c)
	}
}

// attend looks at the connections that the application has sent on from idle, or read from.
func (s *Stack) attend() bool {
	n := uint64(0)
	for {
		id, ok := s.attn.Pop()
		if !ok {
			peak(&s.count.AttentionPeak, n)
			return n > 0
		}
		n++
		c := s.conns.at(id)
		if c.ID == 0 {
			continue // released meanwhile
		}
		c.Attn.Store(0) // before Sent looks: what the application does from here on is announced anew
		c.Sent(&s.cfg.TCP, s.now)
		if s.cfg.WorkerSends {
			c.Want(tcp.PendSend)
		}
		s.touch(c)
	}
}

// fire is the expiry of a connection's timer.
func (s *Stack) fire(id uint32) {
	c := s.conns.at(id)
	c.TimerAt = 0
	c.Timer(&s.cfg.TCP, s.now)
	if c.Pending()&(tcp.PendRtx|tcp.PendSyn|tcp.PendProbe) != 0 {
		s.countTimeout(c.Pending())
		if c.Unanswered() {
			s.neigh.doubt(c.NextHop, s.now) // the peer may have moved
		}
		s.renew(c)
	}
	s.touch(c)
}

// settle does what is left to do for the connections that were touched, and sends.
func (s *Stack) settle() {
	if len(s.touched) > 0 {
		s.finishAll()
	}
	if s.w.NTx > 0 {
		s.flush()
	}
	if s.txBack != s.app.returned.Load() {
		s.app.returned.Store(s.txBack)
	}
}

func (s *Stack) finishAll() {
	s.refused = s.w.NTx > 0
	// Acting on one connection may touch another (a listener's child), so the list is read to its end as it grows.
	for i := 0; i < len(s.touched); i++ {
		c := s.touched[i]
		c.Linked &^= inBurst
		s.finish(c)
	}
	peak(&s.count.TouchedPeak, uint64(len(s.touched)))
	s.touched = s.touched[:0]
}

// retry brings a connection back in the next turn: there was no buffer for one of its frames, or no room in the port.
func (s *Stack) retry(c *tcp.Conn) {
	s.count.NoBuffer++
	if c.Linked&inAgain == 0 {
		c.Linked |= inAgain
		s.again = append(s.again, c)
	}
}

func (s *Stack) touchAgain() {
	again := s.again[:min(len(s.again), max(s.w.TxRoom()-dpdk.TxCap/2, againMin))]
	for _, c := range again {
		c.Linked &^= inAgain
		if c.ID != 0 { // not released meanwhile
			s.touch(c)
		}
	}
	s.again = s.again[:copy(s.again, s.again[len(again):])]
}

// againMin is how many connections are tried again in a turn at least, while the port takes nothing: not all of them wait
// for it.
const againMin = 32

// finish does what a turn has left to do for a connection.
func (s *Stack) finish(c *tcp.Conn) {
	p := c.Pending()
	if p == 0 || c.ID == 0 { // nothing, or released meanwhile
		return
	}
	var left tcp.Pend // what could not be done, for want of a buffer or of the application's lane
	if c.State() == tcp.Closed {
		s.unlink(c) // its addresses and ports are free, though the application may still ask for the reason
		if !s.reclaim(c) {
			left |= tcp.PendAcked
			c.Want(tcp.PendAcked)
		}
	}
	text := uint32(0)
	if s.lateAcks && p&tcp.PendAck != 0 {
		text = c.NewText()
	}
	if p&tcp.PendAcked != 0 {
		if !s.releaseAcked(c) {
			left |= tcp.PendAcked
		}
		s.neigh.touch(c.NeighRef)
	}
	c.Publish(&s.cfg.TCP, s.now)
	if s.trace != nil {
		s.trace.look(s, c)
	}
	p = c.Pending()
	if p&tcp.PendSyn != 0 && !s.sendSyn(c) {
		left |= tcp.PendSyn
	}
	told := p&tcp.PendSyn != 0 // the SYN and ACK, or a resent segment, carries the ACK
	if p&tcp.PendRtx != 0 {
		resent, through := s.resend(c)
		told = told || resent
		if !through {
			left |= tcp.PendRtx
		}
	}
	if p&tcp.PendSend != 0 && c.State() != tcp.Closed {
		sent, through := s.sendOut(c)
		told = told || sent
		if !through {
			left |= tcp.PendSend
		}
	}
	told = told || text != 0 && s.later(c, text)
	if p&tcp.PendAck != 0 && !told && c.State() >= tcp.SynReceived && !s.sendAck(c) {
		left |= tcp.PendAck
	}
	if p&tcp.PendProbe != 0 && !s.sendProbe(c) {
		left |= tcp.PendProbe
	}
	if p&tcp.PendRst != 0 && !s.sendRst(c) && p&tcp.PendGone == 0 {
		left |= tcp.PendRst // but nothing waits for it that can go: the peer will ask
	}
	if c.PortRef != 0 && c.State() == tcp.TimeWait && c.Linked&waitNoted == 0 {
		c.Linked |= waitNoted
		s.ports.wait(c.PortRef)
	}
	if p&tcp.PendTimer != 0 && !c.Waits() { // or it most likely rests
		s.arm(c)
	}
	c.Clear(p &^ left) // what comes up from here on is for another round
	if p&tcp.PendOpen != 0 {
		if c.NextTimer() == 0 { // the SYN's: it would find the connection's lines cold
			c.TimerAt = 0
			s.wheel.cancel(c.ID)
		}
		s.opened(c)
	}
	if w := c.Watch.Load(); w != 0 {
		s.tell(&c.Ready, c.Stream, w, p)
	}
	if left != 0 {
		c.Want(p & tcp.PendGone)
		s.retry(c)
		return
	}
	gone := p&tcp.PendGone != 0
	switch {
	case !gone && !c.Through():
	case !s.withdraw(c):
		c.Want(tcp.PendGone&p | tcp.PendTimer) // anything, so that it gets here again
		s.retry(c)
	case gone:
		s.release(c)
	case s.mayCompact(c):
		s.compact(c)
	default:
		s.shed(c) // a million of them may wait
		s.arm(c)
	}
}

// arm sees to it that the connection's timer fires in time.
func (s *Stack) arm(c *tcp.Conn) {
	if at := c.NextTimer(); at != 0 && (c.TimerAt == 0 || at < c.TimerAt) {
		c.TimerAt = at
		s.wheel.arm(c.ID, at)
	}
}

// releaseAcked gives back the buffers that the peer has acknowledged. It returns false if that has to wait.
func (s *Stack) releaseAcked(c *tcp.Conn) bool {
	if (c.Copied() || s.refused) && s.cfg.WorkerSends && s.w.NTx > 0 {
		if s.flush(); s.w.NTx > 0 { // they may wait here
			return false
		}
	}
	if c.Copied() {
		// The frames that are acknowledged may still wait in the application's lane.
		if !s.app.lock.try() {
			return false
		}
		defer s.app.lock.unlock()
		if !s.drainApp() {
			return false
		}
	}
	for {
		free := s.w.Free[min(s.w.NFree, dpdk.FreeCap):]
		if len(free) == 0 {
			s.w.Exchange(dpdk.OpFree)
			continue
		}
		n := tcp.PopAcked(c, free)
		s.w.NFree += uint32(n)
		s.txBack += uint64(n)
		if n < len(free) {
			return true
		}
	}
}
