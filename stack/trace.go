package stack

import (
	"syscall"

	"ndpip/ring"
	"ndpip/tcp"
)

// Change is a change of a connection's state. From is CLOSED for one that is new, or that the trace has not seen before. Of
// several changes between two publications, which is a burst, the last one counts.
type Change struct {
	At           int64 // ns, on the clock of Now
	Laddr, Raddr uint32
	Lport, Rport uint16
	From, To     State
	Why          syscall.Errno // of the end, if it was not orderly
}

// Trace is the changes of state of some connections: the worker puts them in, one other thread takes them out.
type Trace struct {
	changes *ring.SPSC[Change]
	match   func(laddr, raddr uint32, lport, rport uint16) bool
	last    map[uint32]State // of the connections that match; by id
	lost    uint64
}

const traceLen = 4096 // changes that wait to be taken

// NewTrace makes a trace of the connections that match is true for, which is called on the worker's thread.
func NewTrace(match func(laddr, raddr uint32, lport, rport uint16) bool) *Trace {
	return &Trace{changes: ring.New[Change](traceLen), match: match, last: map[uint32]State{}}
}

// SetTrace starts a trace, or with nil ends the one that runs. A stack has one at a time.
func (s *Stack) SetTrace(t *Trace) { s.do(func() { s.trace = t }) }

// Take takes changes out, the oldest first.
func (t *Trace) Take(into []Change) int { return t.changes.PopBulk(into) }

// TraceLost is how many changes found no room, as they were not taken out fast enough.
func (s *Stack) TraceLost(t *Trace) (n uint64) {
	s.do(func() { n = t.lost })
	return n
}

// look is called when something has happened to a connection.
func (t *Trace) look(s *Stack, c *tcp.Conn) {
	st := c.State()
	was, known := t.last[c.ID]
	if known && was == st || !known && (st == Closed || !t.match(c.Laddr, c.Raddr, c.Lport, c.Rport)) {
		return
	}
	if st == Closed {
		delete(t.last, c.ID)
	} else {
		t.last[c.ID] = st
	}
	_, why, _ := c.Status()
	if !t.changes.Push(Change{s.now, c.Laddr, c.Raddr, c.Lport, c.Rport, was, st, errno(why)}) {
		t.lost++
	}
}
