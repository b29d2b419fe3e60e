package stack

import (
	"math"

	"ndpip/dpdk"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// Connections in TIME-WAIT outnumber all others where connections are short: at 100,000 a second there are 6 million of
// them. Once the application has let go of one, 64 bytes are kept of it, and its control block goes to the next
// connection while it is still warm. They end in the order in which they came, so a list does for the timer.

// waitMark tells the number of a waiting in the table from a connection's.
const waitMark = 1 << 31

// waiting is a connection in TIME-WAIT: a cache line.
type waiting struct {
	key
	tcp.Wait
	prev, next uint32 // by the time of its end; next also in the list of free ones
	port       uint32 // Conn.PortRef
}

// waits are all of them. Owned by the worker.
type waits struct {
	paged[waiting]
	first, last, free uint32
	n                 int
	due               int64 // when the first one ends
}

const (
	waitSlack = 1e9 // ns that an end may be put off, so that the list stays in order
	waitBurst = 256 // ends in a turn at most
	never     = math.MaxInt64
)

// mayCompact says whether a connection in TIME-WAIT may be kept as a waiting. One that the application has let go of much
// later than it has entered TIME-WAIT would be out of order: it keeps its block and its timer.
func (s *Stack) mayCompact(c *tcp.Conn) bool {
	return c.Waits() && (s.waits.last == 0 || s.waits.at(s.waits.last).Ends-c.NextTimer() < waitSlack)
}

// compact makes a waiting of a connection and gives its block back. Nothing refers to the connection any more but what can
// tell by the ID that it is gone.
func (s *Stack) compact(c *tcp.Conn) {
	w := &s.waits
	i := w.free
	if i != 0 {
		w.free = w.at(i).next
	} else {
		i = w.add()
	}
	t := w.at(i)
	*t = waiting{key: key{c.Laddr, c.Raddr, c.Lport, c.Rport}, Wait: c.Rest(), port: c.PortRef}
	t.Marks = c.Linked & (heldPort | reusePort)
	v := serviceOf(c)
	t.TOS, t.TTL = v.TOS, v.TTL
	if w.last != 0 {
		t.Ends = max(t.Ends, w.at(w.last).Ends)
	}
	w.n++
	w.append(i)
	s.table.put(t.key, i|waitMark)
	if s.last == c {
		s.last = nil
	}
	c.Linked &^= inTable | heldPort
	c.PortRef = 0
	s.wheel.cancel(c.ID)
	s.vacate(c)
}

func (w *waits) append(i uint32) {
	t := w.at(i)
	t.prev, t.next = w.last, 0
	if w.last != 0 {
		w.at(w.last).next = i
	} else {
		w.first, w.due = i, t.Ends
	}
	w.last = i
}

func (w *waits) remove(i uint32) {
	t := w.at(i)
	if t.next != 0 {
		w.at(t.next).prev = t.prev
	} else {
		w.last = t.prev
	}
	if t.prev != 0 {
		w.at(t.prev).next = t.next
		return
	}
	w.first, w.due = t.next, never
	if t.next != 0 {
		w.due = w.at(t.next).Ends
	}
}

// endWait releases a waiting. With taken its key stays in the table: another connection is about to be put there.
func (s *Stack) endWait(i uint32, taken bool) {
	t := s.waits.at(i)
	if !taken {
		s.table.del(t.key)
	}
	s.giveUpPort(t.port, t.lport, t.Marks)
	s.waits.remove(i)
	t.next, s.waits.free = s.waits.free, i
	s.waits.n--
	s.count.Closed++
}

// expire ends those whose 2 MSL are over. It returns whether there were any.
func (s *Stack) expire() bool {
	if s.archive.head != s.archive.tail {
		s.age()
	}
	if s.waits.due > s.now {
		return false
	}
	for n := 0; s.waits.due <= s.now && n < waitBurst; n++ {
		s.endWait(s.waits.first, false)
	}
	return true
}

// inputWait is a segment for a connection in TIME-WAIT.
func (s *Stack) inputWait(b []byte, i uint32) {
	t, seg := s.waits.at(i), &s.seg
	from := wire.EthSrc(b)
	ends := t.Ends
	v, ack, gone := t.Input(&s.cfg.TCP, s.now, seg)
	switch {
	case gone:
		s.endWait(i, false)
		return
	case v == tcp.Reopen:
		ack = s.reopenWait(t, i, from)
	case v == tcp.Bad:
		s.count.Drop[DropUnacceptable]++
	}
	if t.Ends != ends { // anew
		s.waits.remove(i)
		s.waits.append(i)
	}
	if ack {
		s.ackWait(t, from)
	}
}

// reopenWait is reopen for a waiting. It returns whether the peer is to be challenged.
func (s *Stack) reopenWait(t *waiting, i uint32, from MAC) (challenge bool) {
	l := s.listener(t.laddr, t.lport)
	if l == nil {
		return t.Challenge(s.now)
	}
	if l.full() {
		s.count.Drop[DropBacklog]++
		return false
	}
	k := t.key
	least, _, _ := t.Numbers()
	s.endWait(i, true)
	s.passiveOpen(l, k, from, &s.seg, least+1<<16)
	return false
}

// ackWait sends an ACK to a peer whose connection is in TIME-WAIT. If there is no buffer, the peer will come again.
func (s *Stack) ackWait(t *waiting, from MAC) {
	f, ok := s.take()
	if !ok {
		s.count.NoBuffer++
		return
	}
	seq, ack, wnd := t.Numbers()
	out := dpdk.Bytes(f.Addr, hdrLen)
	wire.PutEthernet(out, s.station(t.key, from), s.mac, wire.TypeIPv4)
	wire.PutIPv4(out[ethLen:], t.laddr, t.raddr, wire.ProtoTCP, ipLen+tcpLen, 0)
	wire.SetService(out[ethLen:], t.TOS, t.TTL)
	l4 := out[ethLen+ipLen:]
	wire.PutTCP(l4, t.lport, t.rport, wire.TCPFields{Seq: uint32(seq), Ack: uint32(ack), Window: wnd, Flags: wire.ACK}, 0)
	if s.txSum != sumOff {
		wire.SetTCPCheck(l4, t.laddr, t.raddr)
	}
	f.Len = hdrLen
	s.count.Acks++
	s.queue(f)
}
