package stack

import "time"

// What a simulator, or a test that counts, needs to know of a stack without a worker.

// Deadline is the time, as of Now, before which Turn has nothing to do unless a frame arrives or the application acts.
// It may be past: then there is something left to do at once, for which there was no buffer or no room in the port. ok
// is false when nothing is to come. Worker only.
func (s *Stack) Deadline() (at time.Duration, ok bool) {
	soonest := func(t int64) {
		if !ok || time.Duration(t) < at {
			at, ok = time.Duration(t), true
		}
	}
	if len(s.again) > 0 || len(s.touched) > 0 || s.attn.Len() > 0 || s.cmds.Len() > 0 || s.w.NTx > 0 {
		soonest(s.now)
	}
	if s.late.n > 0 {
		soonest(s.late.first().at)
	}
	if t, any := s.wheel.next(); any {
		soonest(t)
	}
	if s.waits.n > 0 {
		soonest(s.waits.due)
	}
	if t, any := s.neigh.deadline(); any {
		soonest(max(t, s.neighAt))
	}
	if s.moved.any {
		soonest(max(s.moved.at, s.neighAt))
	}
	return at, ok
}

// Usage is what a stack's connections hold.
type Usage struct {
	Connections int    // in any state
	RingBytes   uint64 // of receive and transmit rings
	Unread      int    // buffers that applications have not given back
	Timers      int
}

// Usage tells what the connections hold: nothing, when all are closed and released. Worker only.
func (s *Stack) Usage() Usage {
	return Usage{
		Connections: s.conns.used + s.waits.n,
		RingBytes:   s.rx.Stats().InUse + s.tx.Stats().InUse - s.archive.ringBytes,
		Unread:      int(s.rxHeld - s.app.consumed.Load()),
		Timers:      s.wheel.count + s.waits.n,
	}
}
