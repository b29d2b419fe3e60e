package stack

import (
	"sync/atomic"
	"time"
)

// Rest of the thread that takes the turns. It polls while there is something to do and for a time after that; then it
// sleeps until a frame comes, a timer is due, or another thread has something for it:
//
//	sleeper: asleep set → Arm → a whole turn, and what else there is to look at → sleeps, if there was nothing
//	other:   command or attention published → asleep read → Wake
//	port:    frame in the queue → wakes whoever has armed it
//
// No wake-up is lost. asleep is set before the last turn looks at the rings, and the others read it after they have
// written there (both with sequentially consistent atomics): if the turn does not see the entry, the writer sees
// asleep. What Wake is called for stays until the sleeper takes it, so it may come before the sleep begins. A frame that
// comes before Arm is seen by the turn, and one after it by the port. TestRestModel has all orders of these steps.

// Sleeper is how a thread sleeps: dpdk.Sleeper on a port.
type Sleeper interface {
	Interrupts() bool // frames end a sleep
	Arm()
	Disarm()
	Sleep(d time.Duration) // d < 0: without end
	Wake()
}

type rest struct {
	after   int64 // ns without anything to do until the thread sleeps; 0: it never does
	sleeper Sleeper

	asleep atomic.Uint32 // 1: the thread sleeps, or is about to
	_      [60]byte
}

// SetRest lets the thread that takes the turns sleep once there was nothing to do for a time. Before Start.
func (s *Stack) SetRest(after time.Duration, how Sleeper) {
	s.rest.after, s.rest.sleeper = int64(after), how
	if how == nil {
		s.rest.after = 0
	}
}

// Kick wakes the thread that takes the turns, if it sleeps. What it is woken for has been published before.
func (s *Stack) Kick() {
	if s.rest.asleep.Load() != 0 {
		s.rest.sleeper.Wake()
	}
}

// Where frames do not end a sleep it is a nap, the longer the longer nothing has happened: what comes soon after is
// answered soon, and what is idle for long costs next to nothing.
const (
	napLeast = 50 * time.Microsecond
	napMost  = 2 * time.Millisecond
)

func nap(idle int64) time.Duration { return min(max(time.Duration(idle/64), napLeast), napMost) }

// sleep is the worker's: idle is for how long there was nothing to do. It returns whether the turn in it was busy.
func (s *Stack) sleep(idle int64) (busy bool) {
	r := &s.rest
	r.asleep.Store(1)
	r.sleeper.Arm()
	busy = s.turn(0)
	if d := s.mayRest(idle); !busy && d != 0 && !s.turns.stop.Load() {
		r.sleeper.Sleep(d)
	}
	r.asleep.Store(0)
	r.sleeper.Disarm()
	return busy
}

// mayRest is for how long the stack needs no turn, unless a frame comes or somebody asks: 0: it needs one at once; less
// than 0: there is no end.
func (s *Stack) mayRest(idle int64) time.Duration {
	if s.stuck || s.app.backlog.Load() != 0 { // nobody tells when the port has room
		return 0
	}
	d := time.Duration(-1)
	if at, ok := s.Deadline(); ok {
		d = max(at-time.Duration(s.now), 0)
	}
	if !s.rest.sleeper.Interrupts() && (d < 0 || d > nap(idle)) {
		d = nap(idle)
	}
	return d
}

// Rest is the sleep of a thread without a worker (inline mode), after idle ns without anything to do and for limit at
// most (less than 0: without end). news is looked at after the others can see that it sleeps, and true keeps it awake.
// It returns false at once when another thread takes a turn, or sleeps.
func (s *Stack) Rest(idle int64, limit time.Duration, news func() bool) bool {
	r := &s.rest
	if !r.asleep.CompareAndSwap(0, 1) {
		return false
	}
	defer r.asleep.Store(0)
	if !s.ctl.turn.TryLock() {
		return false
	}
	r.sleeper.Arm()
	defer r.sleeper.Disarm()
	busy := s.Turn()
	d := s.mayRest(idle)
	s.ctl.turn.Unlock()
	if limit >= 0 && (d < 0 || d > limit) {
		d = limit
	}
	if !busy && d != 0 && !news() {
		r.sleeper.Sleep(d)
	}
	return true
}
