package stack

import "ndpip/tcp"

// An ACK that waits a little (RFC 1122 4.2.3.2): an application that answers a request carries it with the answer, and a
// frame less is sent. That pays where each frame is a system call. The wait is the same for all, so a queue does for the
// timer. Only one small piece of text waits, of up to half a segment: the next one is acknowledged at once, and so is all
// that may be part of a bulk transfer, whose sender waits for it.

// lateAck is a connection whose text up to ack is not acknowledged yet.
type lateAck struct {
	at  int64
	id  uint32
	ack tcp.Seq
}

// lateAcks is a queue in a ring that grows.
type lateAcks struct {
	ring    []lateAck
	head, n int
}

func (q *lateAcks) first() *lateAck { return &q.ring[q.head&(len(q.ring)-1)] }

func (q *lateAcks) push(a lateAck) {
	if q.n == len(q.ring) {
		grown := make([]lateAck, max(2*q.n, 64))
		for i := range q.n {
			grown[i] = q.ring[(q.head+i)&(len(q.ring)-1)]
		}
		q.ring, q.head = grown, 0
	}
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = a
	q.n++
}

func (q *lateAcks) pop() {
	q.head++
	q.n--
}

// later says whether the ACK of n bytes that have just come in may wait, and sees to it then.
func (s *Stack) later(c *tcp.Conn, n uint32) bool {
	ack, _ := c.AckWord()
	if n > c.RcvMSS()/2 || c.Linked&inLate != 0 && c.Owes(ack-tcp.Seq(n)) {
		return false
	}
	c.Linked |= inLate
	s.late.push(lateAck{s.now + s.cfg.AckDelay, c.ID, ack})
	return true
}

// tellLate sends the ACKs that have waited long enough, unless the application has told the peer meanwhile.
func (s *Stack) tellLate() {
	for s.late.n > 0 {
		l := *s.late.first()
		if l.at > s.now {
			return
		}
		s.late.pop()
		c := s.conns.at(l.id)
		if ack, _ := c.AckWord(); c.Linked&inLate == 0 || ack != l.ack {
			continue // acknowledged by what came later, or another connection
		}
		c.Linked &^= inLate
		if c.Owes(l.ack) {
			c.Want(tcp.PendAck)
			s.touch(c)
		}
	}
}
