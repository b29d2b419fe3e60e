package api

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// EpollEvent is what an epoll instance waits for, and what it reports (epoll_ctl(2)): EPOLL* bits, and a number that
// is the application's own.
type EpollEvent struct {
	Events uint32
	Data   uint64
}

// Which events ask for what.
const (
	epollRead   = unix.EPOLLIN | unix.EPOLLRDNORM | unix.EPOLLPRI | unix.EPOLLRDBAND
	epollWrite  = unix.EPOLLOUT | unix.EPOLLWRNORM | unix.EPOLLWRBAND
	epollAlways = unix.EPOLLERR | unix.EPOLLHUP
	epollKnown  = epollRead | epollWrite | epollAlways | unix.EPOLLRDHUP | unix.EPOLLMSG | unix.EPOLLET | unix.EPOLLONESHOT | unix.EPOLLEXCLUSIVE |
		unix.EPOLLWAKEUP
	// disarmed marks a one-shot item that has been reported: nothing is, not even errors, until EPOLL_CTL_MOD.
	disarmed = 1 << 27
)

// epoll is one instance. It keeps a list of the sockets that may be ready, so that a wait costs by what is ready and
// not by what is open: a socket gets on the list when it is added or changed and when there is news of it, and leaves
// it when it is found not ready (level), or reported (edge, one-shot).
type epoll struct {
	mu          sync.Mutex
	items       map[int]*epollItem
	first, last *epollItem   // the list, in the order of reporting
	listed      atomic.Int32 // its length; written under mu
	closed      atomic.Bool
	sleepers    int // waits that sleep
	wake        chan struct{}
	news        atomic.Int64 // when a wait has last found something; for IdleSleep
	kick        func()       // wakes who sleeps in the stack, where there is no worker; else nil
}

type epollItem struct {
	ep      *epoll
	s       *sock
	ev      atomic.Uint32 // events asked for; written under ep.mu
	data    uint64        // under ep.mu, as is what follows
	next    *epollItem
	listed  bool
	removed bool
}

// list puts an item on the list. Under ep.mu.
func (ep *epoll) list(it *epollItem) {
	if it.listed || it.removed {
		return
	}
	it.listed = true
	if ep.last == nil {
		ep.first = it
	} else {
		ep.last.next = it
	}
	ep.last = it
	ep.listed.Add(1)
	if ep.sleepers > 0 {
		ep.signal()
	}
}

// take takes the first item off the list. Under ep.mu.
func (ep *epoll) take() *epollItem {
	it := ep.first
	ep.first = it.next
	if ep.first == nil {
		ep.last = nil
	}
	it.next, it.listed = nil, false
	ep.listed.Add(-1)
	return it
}

func (ep *epoll) signal() {
	if ep.kick != nil {
		ep.kick()
		return
	}
	select {
	case ep.wake <- struct{}{}:
	default:
	}
}

func (h *Host) closeEpoll(ep *epoll) {
	ep.closed.Store(true)
	ep.mu.Lock()
	items := ep.items
	ep.items = nil
	for _, it := range items {
		it.removed = true
	}
	for ep.first != nil {
		ep.take()
	}
	ep.signal()
	ep.mu.Unlock()
	for _, it := range items {
		h.leave(it)
	}
}

// EpollCreate makes an epoll instance; Close closes it.
func (h *Host) EpollCreate() (int, error) {
	if h.stopped.Load() {
		return -1, unix.ENETDOWN
	}
	s := &sock{ep: &epoll{items: map[int]*epollItem{}, wake: make(chan struct{}, 1)}}
	if h.cfg.Inline && h.cfg.IdleSleep > 0 {
		s.ep.kick = h.st.Kick
	}
	s.kind.Store(uint32(kindEpoll))
	h.fds.add(s)
	return s.fd, nil
}

func (h *Host) epoll(fd int) (*epoll, error) {
	s := h.fds.get(fd)
	switch {
	case s == nil || s.closed.Load():
		return nil, unix.EBADF
	case !s.is(kindEpoll):
		return nil, unix.EINVAL
	}
	return s.ep, nil
}

// EpollCtl adds, changes or removes (EPOLL_CTL_ADD, _MOD, _DEL) a socket. Events: EPOLLIN, EPOLLOUT, EPOLLRDHUP,
// EPOLLPRI (which never comes), EPOLLET, EPOLLONESHOT; EPOLLERR and EPOLLHUP are always reported.
//
// Errors: EBADF, EEXIST (added already), ENOENT (not added), EFAULT (ev is nil), EINVAL (epfd is no instance, fd is
// one, or op is unknown).
func (h *Host) EpollCtl(epfd, op, fd int, ev *EpollEvent) error {
	if op != unix.EPOLL_CTL_DEL && ev == nil {
		return unix.EFAULT
	}
	s := h.fds.get(fd)
	if e := h.fds.get(epfd); e == nil || s == nil || e.closed.Load() || s.closed.Load() {
		return unix.EBADF
	}
	ep, err := h.epoll(epfd)
	switch {
	case err != nil:
		return err
	case s.is(kindEpoll):
		return unix.EINVAL // instances do not nest
	}
	ep.mu.Lock()
	defer ep.mu.Unlock()
	if ep.items == nil {
		return unix.EBADF
	}
	it := ep.items[fd]
	switch op {
	case unix.EPOLL_CTL_ADD:
		if it != nil {
			return unix.EEXIST
		}
		it = &epollItem{ep: ep, s: s}
		it.ev.Store(ev.Events & epollKnown)
		it.data = ev.Data
		ep.items[fd] = it
		h.join(it)
		if s.closed.Load() { // Close may have looked through the items before this one was among them
			h.remove(it)
			return unix.EBADF
		}
	case unix.EPOLL_CTL_MOD:
		if it == nil {
			return unix.ENOENT
		}
		it.ev.Store(ev.Events & epollKnown)
		it.data = ev.Data
		h.rewatch(s)
	case unix.EPOLL_CTL_DEL:
		if it == nil {
			return unix.ENOENT
		}
		h.remove(it)
		return nil
	default:
		return unix.EINVAL
	}
	ep.list(it) // after the watch: what happens from here on lists it again
	return nil
}

// remove takes an item out of its instance. Under ep.mu.
func (h *Host) remove(it *epollItem) {
	it.removed = true
	delete(it.ep.items, it.s.fd)
	h.leave(it)
}

// join enters an item with its socket.
func (h *Host) join(it *epollItem) {
	s := it.s
	s.obs.Lock()
	defer s.obs.Unlock()
	var all []*epollItem
	if old := s.items.Load(); old != nil {
		all = append(all, *old...)
	}
	all = append(all, it)
	s.items.Store(&all)
	h.watch(s)
}

func (h *Host) leave(it *epollItem) {
	s := it.s
	s.obs.Lock()
	defer s.obs.Unlock()
	old := s.items.Load()
	if old == nil {
		return
	}
	var all []*epollItem
	for _, o := range *old {
		if o != it {
			all = append(all, o)
		}
	}
	if all == nil {
		s.items.Store(nil)
	} else {
		s.items.Store(&all)
	}
	h.watch(s)
}

// forget takes a socket that is being closed out of all instances. Afterwards none of them touches it.
func (h *Host) forget(s *sock) {
	for {
		items := s.items.Load()
		if items == nil {
			return
		}
		for _, it := range *items {
			it.ep.mu.Lock()
			if !it.removed {
				h.remove(it)
			} else {
				h.leave(it)
			}
			it.ep.mu.Unlock()
		}
	}
}

// EpollWait waits until a socket is ready, at most msec milliseconds (-1: for ever; 0: it only looks), and fills evs.
// It polls without rest, or gives its CPU away in between (Config.Yield), or sleeps after a time (Config.IdleSleep).
// Several goroutines may wait on one instance: each event goes to one of them, as far as it is an edge or one-shot.
//
// Errors: EINVAL (evs is empty, or epfd is no epoll instance), EBADF (also when epfd is closed meanwhile).
func (h *Host) EpollWait(epfd int, evs []EpollEvent, msec int) (int, error) {
	ep, err := h.epoll(epfd)
	if err != nil {
		return 0, err
	}
	if len(evs) == 0 {
		return 0, unix.EINVAL
	}
	h.poll()
	h.takeAll()
	if n := h.collect(ep, evs); n > 0 {
		ep.found(h)
		return n, nil
	}
	h.st.Flush() // before a longer wait: buffers go back, and what waits for the port goes out
	if msec == 0 {
		return 0, nil
	}
	begin := now()
	end := int64(0)
	if msec > 0 {
		end = begin + int64(msec)*int64(time.Millisecond)
	}
	for i := 1; ; i++ {
		h.poll()
		h.takeNews()
		if n := h.collect(ep, evs); n > 0 {
			ep.found(h)
			return n, nil
		}
		switch {
		case ep.closed.Load() || h.stopped.Load():
			return 0, unix.EBADF
		case i&15 == 0 && (end != 0 || h.cfg.IdleSleep > 0):
			t := now()
			if end != 0 && t >= end {
				return 0, nil
			}
			if h.cfg.IdleSleep > 0 {
				if idle := t - ep.news.Load(); idle >= int64(h.cfg.IdleSleep) {
					h.doze(ep, t, idle, end)
				}
			}
		}
		if h.cfg.Yield {
			yield(i)
		} else if i&1023 == 1023 {
			runtime.Gosched()
		}
	}
}

// found notes that a wait was not in vain.
func (ep *epoll) found(h *Host) {
	if h.cfg.IdleSleep > 0 {
		ep.news.Store(now())
	}
}

// yield gives the CPU to another thread of the machine, and now and then to another goroutine of this process.
func yield(i int) {
	if i&63 == 63 {
		runtime.Gosched()
	} else {
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
}

// doze sleeps until an item is listed, or until end. Without a worker it is the sleep of the stack itself.
func (h *Host) doze(ep *epoll, t, idle, end int64) {
	limit := time.Duration(1<<63 - 1)
	if end != 0 {
		limit = time.Duration(end - t)
	}
	if h.cfg.Inline {
		ep.mu.Lock()
		ep.sleepers++
		ep.mu.Unlock()
		slept := h.st.Rest(idle, limit, func() bool {
			h.takeAll()
			return ep.listed.Load() > 0 || ep.closed.Load()
		})
		ep.mu.Lock()
		ep.sleepers--
		ep.mu.Unlock()
		if !slept {
			time.Sleep(min(limit, 100*time.Microsecond))
		}
		return
	}
	// The order: parked before the last look at the news, and the last look at the list under the lock that lists items.
	h.st.Park()
	defer h.st.Unpark()
	h.news.Lock()
	h.takeLocked()
	h.news.Unlock()
	ep.mu.Lock()
	if ep.listed.Load() > 0 || ep.closed.Load() {
		ep.mu.Unlock()
		return
	}
	ep.sleepers++
	ep.mu.Unlock()
	if end == 0 {
		<-ep.wake
	} else {
		w := waiterPool.Get().(*waiter)
		w.start(limit)
		select {
		case <-ep.wake:
		case <-w.timer.C:
		}
		w.timer.Stop()
		waiterPool.Put(w)
	}
	ep.mu.Lock()
	if ep.sleepers--; ep.sleepers > 0 && (ep.listed.Load() > 0 || ep.closed.Load()) {
		ep.signal() // there may be work for one more
	}
	ep.mu.Unlock()
}

// collect reports the listed sockets that are ready. Those that stay ready go to the end of the list, behind those
// that this wait has no room for.
func (h *Host) collect(ep *epoll, evs []EpollEvent) (n int) {
	if ep.listed.Load() == 0 {
		return 0
	}
	ep.mu.Lock()
	for left := ep.listed.Load(); left > 0 && n < len(evs); left-- {
		it := ep.take()
		ev := it.ev.Load()
		if it.removed || ev&disarmed != 0 {
			continue
		}
		mask := h.events(it.s, ev&epollWrite != 0) & (ev | epollAlways)
		if mask == 0 {
			continue
		}
		evs[n] = EpollEvent{mask, it.data}
		n++
		switch {
		case ev&unix.EPOLLONESHOT != 0:
			it.ev.Store(disarmed)
		case ev&unix.EPOLLET == 0:
			ep.list(it)
		}
	}
	ep.mu.Unlock()
	return n
}
