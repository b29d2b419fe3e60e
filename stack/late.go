package stack

import "ndpip/tcp"

// An ACK that waits a little (RFC 1122 4.2.3.2): an application that answers a request carries it with the answer, and a
// frame less is sent. That pays where each frame is a system call. The wait is the same for all, so a queue does for the
// timer. Only one small piece of text waits, of up to half a segment: the next one is acknowledged at once, and so is all
// that may be part of a bulk transfer, whose sender waits for it.
//
// Where the application takes the turns itself (Config.AckRide), the wait is until the next turn, and costs nothing if the
// answer is sent before it. But the application may be away for long, and so only one that is known to answer is waited for:
// its last piece was acknowledged by an answer before the turn that came next. One that is not known yet has its ACK at
// once, and the next turn looks whether it has answered since.

// lateAck is a connection whose text up to ack is not acknowledged yet.
type lateAck struct {
	at  int64 // 0: it is acknowledged, and the question is whether the application has answered
	id  uint32
	ack tcp.Seq
}

// ackQueue is a queue in a ring that grows.
type ackQueue struct {
	ring    []lateAck
	head, n int
}

func (q *ackQueue) first() *lateAck { return &q.ring[q.head&(len(q.ring)-1)] }

func (q *ackQueue) push(a lateAck) {
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

func (q *ackQueue) pop() {
	q.head++
	q.n--
}

// later says whether the ACK of n bytes that have just come in may wait, and sees to it then.
func (s *Stack) later(c *tcp.Conn, n uint32) bool {
	ack, _ := c.AckWord()
	if n > c.RcvMSS()/2 || c.Linked&inLate != 0 && c.Owes(ack-tcp.Seq(n)) {
		return false
	}
	if s.cfg.AckDelay == 0 && c.Linked&answers == 0 {
		s.late.push(lateAck{0, c.ID, ack})
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
		if ack, _ := c.AckWord(); ack != l.ack {
			continue // acknowledged by what came later, or another connection
		}
		switch owes := c.Owes(l.ack); {
		case l.at == 0:
			if !owes {
				c.Linked |= answers
			}
		case c.Linked&inLate != 0:
			c.Linked &^= inLate
			if owes {
				c.Linked &^= answers
				c.Want(tcp.PendAck)
				s.touch(c)
			}
		}
	}
}
