package api

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/stack"
)

// Waiting of blocking calls. A goroutine first looks again for a few microseconds, since an answer on this kind of
// network takes no longer. Then it sleeps on its socket:
//
//	goroutine: waiter into the socket's list → Watch set → looks once more → sleeps
//	worker:    state published → Watch read → name on the ready list → waker
//	waker:     wakes the host's news goroutine, which takes the names, looks at their sockets, and wakes the waiters
//
// No wake-up is lost. Watch is set before the last look, and the worker reads it after it has published: if the look
// does not see the change, the worker sees the watch. The name may be on the list already, from before; then the waker
// is called all the same, and the news goroutine, which clears the mark before it looks (see stack.Ready), finds the
// waiter in the list. It sends the token while it holds the lock of that list, so a waiter that has left the list has
// its token or will never have one. The token stays in its channel if the waiter does not sleep yet.
//
// Without a worker (Inline) somebody has to take the stack's turns: of the goroutines that wait, one leads and takes
// turns and news for all, the others sleep. A leader that goes makes another one lead.

// waiter is a goroutine that sleeps until its socket is ready, its deadline is over or changed, or the socket is closed.
type waiter struct {
	wake       chan struct{} // one token
	timer      *time.Timer
	prev, next *waiter // of the same socket and side; under sock.obs
}

var waiterPool = sync.Pool{New: func() any { return &waiter{wake: make(chan struct{}, 1)} }}

func (w *waiter) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// start starts the waiter's timer.
func (w *waiter) start(d time.Duration) {
	if w.timer == nil {
		w.timer = time.NewTimer(d)
	} else {
		w.timer.Reset(d)
	}
}

// await is the waiting of one blocking call. The zero await has not begun.
type await struct {
	begun   bool
	closing bool  // it is Close that waits: that the socket is closed does not end it
	futile  int   // times that the socket was ready and the call still found nothing to do
	end     int64 // by SO_RCVTIMEO or SO_SNDTIMEO; 0: none
}

// spinTime is how long a call looks again before its goroutine sleeps.
const spinTime = 20 * time.Microsecond

// inlineTurns is how many turns of the stack a call takes without a worker before it enters its waiter.
const inlineTurns = 100

// wait returns nil when the call should try again. Errors: EBADF (the socket was closed), EAGAIN (SO_RCVTIMEO or
// SO_SNDTIMEO is over), os.ErrDeadlineExceeded.
func (a *await) wait(h *Host, s *sock, d side) error {
	first := !a.begun
	if first {
		a.begun = true
		if t := s.timeout[d].Load(); t != 0 && !a.closing {
			a.end = now() + t
		}
		h.st.Flush()
	}
	if err := a.over(h, s, d); err != nil {
		return err
	}
	if h.ready(s, d, a.closing) {
		// It is ready, and yet the call could do nothing: the port, or the pool of buffers, is exhausted.
		a.relax(h)
		return nil
	}
	a.futile = 0
	if first && a.spin(h, s, d) {
		return nil
	}
	w := waiterPool.Get().(*waiter)
	h.enlist(s, d, w)
	err := a.over(h, s, d) // after enlist: who changes the deadline from here on wakes w
	for err == nil && !h.ready(s, d, a.closing) {
		if !h.cfg.Inline {
			a.sleep(s, d, w)
		} else if !a.lead(h, s, d) {
			a.follow(h, s, d, w)
		}
		err = a.over(h, s, d)
	}
	h.delist(s, d, w)
	waiterPool.Put(w)
	if h.cfg.Inline && h.leading.Load() == 0 {
		h.succeed() // also if this one never led: its token may have been the one that asks for a leader
	}
	return err
}

// over says why the wait has to end, if it has.
func (a *await) over(h *Host, s *sock, d side) error {
	if a.closing {
		if a.end != 0 && now() >= a.end {
			return unix.EAGAIN
		}
		return nil
	}
	if s.closed.Load() || h.stopped.Load() {
		return unix.EBADF
	}
	if l := s.limit[d].Load(); l != 0 || a.end != 0 {
		t := now()
		if l != 0 && t >= l {
			return os.ErrDeadlineExceeded
		}
		if a.end != 0 && t >= a.end {
			return unix.EAGAIN
		}
	}
	return nil
}

// left is how long the wait may still take; 0: there is no end.
func (a *await) left(s *sock, d side) time.Duration {
	end := a.end
	if l := s.limit[d].Load(); l != 0 && (end == 0 || l < end) && !a.closing {
		end = l
	}
	if end == 0 {
		return 0
	}
	return max(time.Duration(end-now()), 1)
}

// relax is a pause of a call that cannot be told when to go on: the longer, the more often it is needed.
func (a *await) relax(h *Host) {
	a.futile++
	switch {
	case h.poll():
	case a.futile < 100 || h.cfg.Inline:
		runtime.Gosched()
	default:
		time.Sleep(min(time.Duration(a.futile-99)*10*time.Microsecond, time.Millisecond/2))
	}
}

// spin looks again for a while, if nobody else does: the more goroutines wait, the less each may hold up the others.
func (a *await) spin(h *Host, s *sock, d side) bool {
	if h.cfg.Inline {
		for range inlineTurns {
			if h.poll() && h.ready(s, d, a.closing) {
				return true
			}
		}
		return false
	}
	if !h.spinning.CompareAndSwap(0, 1) {
		return false
	}
	defer h.spinning.Store(0)
	for end := now() + int64(spinTime); now() < end; {
		if h.ready(s, d, a.closing) {
			return true
		}
		if h.cfg.Yield {
			_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		}
		runtime.Gosched()
	}
	return false
}

// sleep waits for the waiter's token, or for the end of the time.
func (a *await) sleep(s *sock, d side, w *waiter) {
	left := a.left(s, d)
	if left == 0 {
		<-w.wake
		return
	}
	w.start(left)
	select {
	case <-w.wake:
	case <-w.timer.C:
	}
	w.timer.Stop()
}

// lead takes the stack's turns until the wait is over, if nobody else does it.
func (a *await) lead(h *Host, s *sock, d side) bool {
	if !h.leading.CompareAndSwap(0, 1) {
		return false
	}
	idle := int64(0) // since when there was nothing to do; 0: there was
	for empty := 0; !h.ready(s, d, a.closing) && a.over(h, s, d) == nil; {
		if h.st.Poll() {
			empty, idle = 0, 0
		} else if empty++; empty%restEvery == 0 {
			h.rest()
			if h.cfg.IdleSleep > 0 {
				idle = a.doze(h, s, d, idle)
			}
		}
		h.takeNews()
	}
	h.leading.Store(0)
	return true
}

// doze sleeps in the stack, when nothing was to be done for long enough; idle is since when. Who closes the socket or
// changes its deadline does not wake it, and so it does not sleep for long.
func (a *await) doze(h *Host, s *sock, d side, idle int64) int64 {
	t := now()
	switch {
	case idle == 0:
		return t
	case t-idle >= int64(h.cfg.IdleSleep):
		limit := dozeMost
		if left := a.left(s, d); left != 0 {
			limit = min(limit, left)
		}
		h.st.Rest(t-idle, limit, func() bool { return h.st.HasNews() || h.ready(s, d, a.closing) })
	}
	return idle
}

// dozeMost is how long a leader sleeps before it looks at its socket again.
const dozeMost = 10 * time.Millisecond

// restEvery is after how many turns without work a leader lets other goroutines run: each time costs a turn or two.
const restEvery = 8

// follow sleeps while another goroutine leads.
func (a *await) follow(h *Host, s *sock, d side, w *waiter) {
	h.idleMu.Lock()
	h.idle = append(h.idle, w)
	h.idleMu.Unlock()
	if h.leading.Load() != 0 { // after the entry: a leader that goes now finds it
		a.sleep(s, d, w)
	}
	h.idleMu.Lock()
	for i, o := range h.idle {
		if o == w {
			last := len(h.idle) - 1
			h.idle[i], h.idle[last] = h.idle[last], nil
			h.idle = h.idle[:last]
			break
		}
	}
	h.idleMu.Unlock()
}

// succeed wakes one of those who follow, to lead.
func (h *Host) succeed() {
	h.idleMu.Lock()
	if n := len(h.idle); n > 0 {
		h.idle[n-1].signal()
	}
	h.idleMu.Unlock()
}

// rest is what a thread does that polls and has found nothing: it lets others have the CPU, if it is to.
func (h *Host) rest() {
	if h.cfg.Yield {
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
	runtime.Gosched()
}

// ready says whether a call on one side of a socket would do anything but wait.
func (h *Host) ready(s *sock, d side, closing bool) bool {
	s.gates[d].enter()
	defer s.gates[d].leave()
	if closing {
		return h.lingered(s)
	}
	return h.readyNow(s, d)
}

// readyNow is ready for who may touch the socket.
func (h *Host) readyNow(s *sock, d side) bool {
	switch kind(s.kind.Load()) {
	case kindConn:
		c := s.conn.Load()
		if c == nil {
			return true
		}
		if d == reading {
			return h.st.Readable(c) || s.shut[reading].Load()
		}
		st, _, _ := c.Status()
		switch st {
		case stack.SynSent, stack.SynReceived:
			return false
		case stack.Established, stack.CloseWait:
			return c.FinQueued() || c.Writable()
		case stack.Closed, stack.FinWait1, stack.FinWait2, stack.Closing, stack.LastAck, stack.TimeWait:
		}
	case kindListen:
		l := s.lis.Load()
		return l == nil || l.Acceptable()
	case kindUDP:
		u := s.udp.Load()
		if d == reading {
			return s.shut[reading].Load() || u != nil && (u.Readable() || u.Err.Load() != 0)
		}
	case kindTCP, kindEpoll:
	}
	return true
}

// enlist enters a waiter with its socket and has the worker tell of it.
func (h *Host) enlist(s *sock, d side, w *waiter) {
	s.obs.Lock()
	w.prev, w.next = nil, s.waiters[d]
	if w.next != nil {
		w.next.prev = w
	}
	s.waiters[d] = w
	s.asleep.Add(1)
	h.watch(s)
	s.obs.Unlock()
}

// delist ends what enlist began. No token comes any more.
func (h *Host) delist(s *sock, d side, w *waiter) {
	s.obs.Lock()
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		s.waiters[d] = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	s.asleep.Add(-1)
	h.watch(s)
	s.obs.Unlock()
	select {
	case <-w.wake:
	default:
	}
}

// rouse wakes those who wait on one side of a socket.
func (s *sock) rouse(d side) {
	s.obs.Lock()
	for w := s.waiters[d]; w != nil; w = w.next {
		w.signal()
	}
	s.obs.Unlock()
}

func (s *sock) rouseAll() {
	s.rouse(reading)
	s.rouse(writing)
}

// watch tells the stack what to report of a socket: what its waiters and any epoll instance wait for. Under s.obs.
func (h *Host) watch(s *sock) {
	w := uint32(0)
	if items := s.items.Load(); items != nil {
		for _, it := range *items {
			// Errors and hang-ups are reported whatever is asked for, and the peer's FIN may be the one that makes one.
			w |= uint32(stack.WatchOpen | stack.WatchRead)
			if it.ev.Load()&epollWrite != 0 {
				w |= uint32(stack.WatchWrite)
			}
		}
	}
	if s.waiters[reading] != nil {
		w |= uint32(stack.WatchRead) | stack.WatchSleep
	}
	if s.waiters[writing] != nil {
		w |= uint32(stack.WatchWrite) | stack.WatchSleep
	}
	set := func(word *atomic.Uint32) {
		if word.Load() != w {
			word.Store(w)
		}
	}
	switch kind(s.kind.Load()) {
	case kindConn:
		if c := s.conn.Load(); c != nil {
			set(&c.Watch)
		}
	case kindListen:
		if l := s.lis.Load(); l != nil {
			set(&l.Watch)
		}
	case kindUDP:
		if u := s.udp.Load(); u != nil {
			set(&u.Watch)
		}
	case kindTCP, kindEpoll:
	}
}

// rewatch is watch after the socket has become something else.
func (h *Host) rewatch(s *sock) {
	s.obs.Lock()
	h.watch(s)
	s.obs.Unlock()
}
