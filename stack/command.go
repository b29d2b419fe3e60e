package stack

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"ndpip/dpdk"
	"ndpip/tcp"
)

// command is what the application asks of the worker. Commands are carried out in order, after the frames of a turn.
type command struct {
	op   op
	conn *tcp.Conn
	call *call
	open *opening
}

type op uint8

const (
	opCall  op = iota // run call.f and tell the caller
	opClose           // the application lets go of conn
	opOpen            // connect, as open says, and tell the caller
)

// call is a function to be run on the worker while the caller waits.
type call struct {
	f    func()
	done atomic.Uint32
}

// control is what the application's threads share for commands.
type control struct {
	push sync.Mutex // the ring has one producer
	turn sync.Mutex // without a worker: whose thread is the stack's now
}

// commands carries out what the application has asked for.
func (s *Stack) commands() bool {
	n := uint64(0)
	for {
		c, ok := s.cmds.Pop()
		if !ok {
			peak(&s.count.CommandPeak, n)
			return n > 0
		}
		n++
		s.execute(c)
	}
}

func (s *Stack) execute(c command) {
	switch c.op {
	case opCall:
		c.call.f()
		c.call.done.Store(1)
	case opClose:
		s.close(c.conn)
	case opOpen:
		o := c.open
		o.c, o.e = s.connect(o.lport, o.raddr, o.rport, &o.opts, o.stream)
		o.done.Store(1)
	}
}

// do runs f as the worker: on its thread, or here when there is none.
func (s *Stack) do(f func()) {
	if !s.turns.running.Load() {
		s.here(f)
		return
	}
	c := &call{f: f}
	s.send(command{op: opCall, call: c})
	s.await(&c.done)
}

// await waits until the worker has stored to done.
func (s *Stack) await(done *atomic.Uint32) {
	for i := 0; done.Load() == 0; i++ {
		switch {
		case !s.turns.running.Load():
			s.here(func() { s.commands() }) // the worker has stopped and left it to us
		case i < 1000:
		case i < 10000:
			runtime.Gosched()
		default:
			time.Sleep(20 * time.Microsecond)
		}
	}
}

// send puts a command in the ring.
func (s *Stack) send(c command) {
	s.ctl.push.Lock()
	for !s.cmds.Push(c) {
		runtime.Gosched()
		if !s.turns.running.Load() {
			s.here(func() { s.commands() })
		}
	}
	s.Kick()
	s.ctl.push.Unlock()
}

// here runs f on this thread as a turn of its own: what it leaves to be done is done, and sent.
func (s *Stack) here(f func()) {
	s.ctl.turn.Lock()
	s.readClock()
	f()
	s.settle()
	s.ctl.turn.Unlock()
	s.Kick()
}

// readClock brings the stack's time up to date without receiving anything. The last turn may be long past, and a timer
// that is started by its clock would be due at once.
func (s *Stack) readClock() {
	if s.ownTSC {
		s.now = s.clock(tsc())
		return
	}
	most := s.w.RxMax
	s.w.RxMax = 0
	s.w.Exchange(dpdk.OpRx)
	s.w.RxMax = most
	s.now = s.clock(s.w.TSC)
}

// Poll is a turn for whoever comes, without a worker (inline mode). It returns whether there was anything to do.
func (s *Stack) Poll() bool {
	if s.turns.running.Load() || !s.ctl.turn.TryLock() {
		return false
	}
	busy := s.Turn()
	s.ctl.turn.Unlock()
	if busy {
		s.Kick() // who sleeps has to look when the next timer is due, now
	}
	return busy
}

// Close lets go of a connection: the application must not touch it any more. Data sent before are still delivered;
// unread data, or SO_LINGER 0, make it a reset.
func (s *Stack) Close(c *tcp.Conn) {
	if st, _, _ := c.Status(); (st == tcp.Established || st == tcp.CloseWait) && !c.FinQueued() {
		if _, n := c.Unread(); n == 0 && !c.Linger0() {
			s.Fin(c)
		}
	}
	s.Flush()
	if !s.turns.running.Load() {
		s.here(func() { s.close(c) })
		return
	}
	s.send(command{op: opClose, conn: c})
}

// close is Close on the worker.
func (s *Stack) close(c *tcp.Conn) {
	c.Close(&s.cfg.TCP, s.now)
	s.touch(c)
}

// Shutdown ends the application's side of the stream.
func (s *Stack) Shutdown(c *tcp.Conn) { s.Fin(c) }

// Abort resets a connection and lets go of it.
func (s *Stack) Abort(c *tcp.Conn) {
	s.do(func() {
		c.Abort()
		s.close(c)
	})
}
