package api

import (
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/stack"
	"ndpip/tcp"
)

// EpollEvent is what an epoll instance waits for, and what it reports (epoll_ctl(2)): EPOLL* bits, and a number that
// is the application's own.
type EpollEvent struct {
	Events uint32
	Data   uint64
}

// epoll is one instance. It keeps a list of the sockets that may be ready, so that a wait costs by what is ready and
// not by what is open: a socket gets on the list when it is added or changed and when the worker has news of it, and
// leaves it when it is found not ready (level), or reported (edge, one-shot).
type epoll struct {
	mu    sync.Mutex
	items map[int]*epollItem
	ready []*epollItem
	keep  []*epollItem // scratch of collect
}

type epollItem struct {
	ep      *epoll
	s       *sock
	ev      EpollEvent
	listed  bool // on the ready list
	removed bool
}

func (ep *epoll) close() {
	ep.mu.Lock()
	items := ep.items
	ep.items, ep.ready = nil, nil
	ep.mu.Unlock()
	for _, it := range items {
		it.s.leave(it)
	}
}

// list puts an item on the ready list. Under ep.mu.
func (ep *epoll) list(it *epollItem) {
	if !it.listed && !it.removed {
		it.listed = true
		ep.ready = append(ep.ready, it)
	}
}

// EpollCreate makes an epoll instance; Close closes it.
func (h *Host) EpollCreate() (int, error) {
	s := &sock{ep: &epoll{items: map[int]*epollItem{}}}
	s.kind.Store(uint32(kindEpoll))
	h.fds.add(s)
	return s.fd, nil
}

func (h *Host) epoll(fd int) (*epoll, error) {
	s := h.fds.get(fd)
	switch {
	case s == nil:
		return nil, unix.EBADF
	case !s.is(kindEpoll):
		return nil, unix.EINVAL
	}
	return s.ep, nil
}

// EpollCtl adds, changes or removes (EPOLL_CTL_ADD, _MOD, _DEL) a socket. Events: EPOLLIN, EPOLLOUT, EPOLLRDHUP,
// EPOLLPRI, EPOLLET, EPOLLONESHOT; EPOLLERR and EPOLLHUP are always reported.
func (h *Host) EpollCtl(epfd, op, fd int, ev *EpollEvent) error {
	ep, err := h.epoll(epfd)
	if err != nil {
		return err
	}
	s := h.fds.get(fd)
	switch {
	case s == nil:
		return unix.EBADF
	case s.is(kindEpoll):
		return unix.EINVAL // instances do not nest
	case op != unix.EPOLL_CTL_DEL && ev == nil:
		return unix.EFAULT
	}
	ep.mu.Lock()
	defer ep.mu.Unlock()
	it := ep.items[fd]
	switch op {
	case unix.EPOLL_CTL_ADD:
		if it != nil {
			return unix.EEXIST
		}
		it = &epollItem{ep: ep, s: s, ev: *ev}
		ep.items[fd] = it
		s.join(it)
	case unix.EPOLL_CTL_MOD:
		if it == nil {
			return unix.ENOENT
		}
		it.ev = *ev
	case unix.EPOLL_CTL_DEL:
		if it == nil {
			return unix.ENOENT
		}
		it.removed = true
		delete(ep.items, fd)
		s.leave(it)
		h.rewatch(s)
		return nil
	default:
		return unix.EINVAL
	}
	h.rewatch(s)
	ep.list(it) // after the watch: what happens from here on lists it again
	return nil
}

func (s *sock) join(it *epollItem) {
	s.epMu.Lock()
	defer s.epMu.Unlock()
	var all []*epollItem
	if old := s.items.Load(); old != nil {
		all = append(all, *old...)
	}
	all = append(all, it)
	s.items.Store(&all)
}

func (s *sock) leave(it *epollItem) {
	s.epMu.Lock()
	defer s.epMu.Unlock()
	var all []*epollItem
	if old := s.items.Load(); old != nil {
		for _, o := range *old {
			if o != it {
				all = append(all, o)
			}
		}
	}
	s.items.Store(&all)
}

// forget takes a closed socket out of all instances.
func (h *Host) forget(s *sock) {
	items := s.items.Load()
	if items == nil {
		return
	}
	for _, it := range *items {
		it.ep.mu.Lock()
		it.removed = true
		if it.ep.items[s.fd] == it {
			delete(it.ep.items, s.fd)
		}
		it.ep.mu.Unlock()
	}
	s.items.Store(nil)
}

// rewatch tells the stack what to report of a socket: what any instance waits for.
func (h *Host) rewatch(s *sock) {
	var w tcp.Pend
	if items := s.items.Load(); items != nil {
		for _, it := range *items {
			w |= tcp.PendOpen // errors and hang-ups, whatever is asked for
			if it.ev.Events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLRDNORM) != 0 {
				w |= tcp.PendRead
			}
			if it.ev.Events&(unix.EPOLLOUT|unix.EPOLLWRNORM) != 0 {
				w |= tcp.PendWrite
			}
		}
	}
	switch {
	case s.is(kindConn):
		s.conn.Watch.Store(uint32(w))
	case s.is(kindListen):
		s.lis.Watch.Store(uint32(w))
	case s.is(kindUDP) && s.udp != nil:
		s.udp.Watch.Store(uint32(w))
	}
	if w != 0 {
		h.notify(s) // what came before the watch
	}
}

// notify lists a socket in all its instances.
func (h *Host) notify(s *sock) {
	items := s.items.Load()
	if items == nil {
		return
	}
	for _, it := range *items {
		if it.ep.mu.TryLock() {
			it.ep.list(it)
			it.ep.mu.Unlock()
		}
	}
}

// dispatch takes names off the stack's ready list and lists their sockets. ep.mu of ep is held.
func (h *Host) dispatch(ep *epoll) {
	if !h.ready.TryLock() {
		return
	}
	defer h.ready.Unlock()
	var names [64]uint32
	for {
		n, all := h.st.Ready(names[:])
		for _, fd := range names[:n] {
			if s := h.fds.get(int(fd)); s != nil {
				h.news(s, ep)
			}
		}
		if all {
			h.fds.each(func(s *sock) { h.news(s, ep) })
		}
		if n < len(names) {
			return
		}
	}
}

// news is a socket that the stack has named. Its Ready mark is cleared first: what happens from here on names it anew.
func (h *Host) news(s *sock, ep *epoll) {
	switch kind(s.kind.Load()) {
	case kindConn:
		s.conn.Ready.Store(0)
	case kindListen:
		s.lis.Ready.Store(0)
	case kindUDP:
		if s.udp != nil {
			s.udp.Ready.Store(0)
		}
	case kindTCP, kindEpoll:
		return
	}
	items := s.items.Load()
	if items == nil {
		return
	}
	for _, it := range *items {
		if it.ep == ep {
			ep.list(it)
			continue
		}
		it.ep.mu.Lock()
		it.ep.list(it)
		it.ep.mu.Unlock()
	}
}

// EpollWait waits until a socket is ready, at most msec milliseconds (-1: for ever; 0: it only looks), and fills evs.
// It polls without rest unless the host was opened with Yield. EINVAL: evs is empty.
func (h *Host) EpollWait(epfd int, evs []EpollEvent, msec int) (int, error) {
	ep, err := h.epoll(epfd)
	if err != nil {
		return 0, err
	}
	if len(evs) == 0 {
		return 0, unix.EINVAL
	}
	var end time.Time
	for i := 0; ; i++ {
		h.poll()
		ep.mu.Lock()
		h.dispatch(ep)
		n := 0
		if len(ep.ready) > 0 {
			n = h.collect(ep, evs)
		}
		closed := ep.items == nil
		ep.mu.Unlock()
		switch {
		case n > 0:
			return n, nil
		case closed || h.stopped.Load():
			return 0, unix.EBADF
		case msec == 0:
			h.st.Flush()
			return 0, nil
		case i == 0:
			h.st.Flush() // before a longer wait: buffers go back, and what waits for the port goes out
			if msec > 0 {
				end = time.Now().Add(time.Duration(msec) * time.Millisecond)
			}
		case msec > 0 && i&15 == 0 && !time.Now().Before(end):
			return 0, nil
		}
		if h.cfg.Yield {
			yield(i)
		} else if i&1023 == 1023 {
			runtime.Gosched()
		}
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

// collect reports the listed sockets that are ready. Those that stay listed are looked at again by the next wait,
// behind those that it has not come to. Under ep.mu.
func (h *Host) collect(ep *epoll, evs []EpollEvent) (n int) {
	list := ep.ready
	keep := ep.keep[:0]
	i := 0
	for ; i < len(list) && n < len(evs); i++ {
		it := list[i]
		it.listed = false
		if it.removed || it.ev.Events&disarmed != 0 {
			continue
		}
		mask := h.events(it.s) & (it.ev.Events | unix.EPOLLERR | unix.EPOLLHUP)
		if mask == 0 {
			continue
		}
		evs[n] = EpollEvent{mask, it.ev.Data}
		n++
		switch {
		case it.ev.Events&unix.EPOLLONESHOT != 0:
			it.ev.Events = disarmed
		case it.ev.Events&unix.EPOLLET == 0:
			it.listed = true
			keep = append(keep, it)
		}
	}
	rest := copy(list, list[i:])
	ep.ready = append(list[:rest], keep...)
	ep.keep = keep[:0]
	return n
}

// disarmed marks a one-shot item that has been reported: nothing is, not even errors, until EPOLL_CTL_MOD.
const disarmed = 1 << 27

// events is what a socket is ready for, as Linux's tcp_poll and udp_poll give it.
func (h *Host) events(s *sock) (m uint32) {
	switch kind(s.kind.Load()) {
	case kindTCP:
		return unix.EPOLLOUT | unix.EPOLLHUP
	case kindListen:
		if s.lis.Acceptable() {
			m = unix.EPOLLIN | unix.EPOLLRDNORM
		}
		return m
	case kindUDP:
		m = unix.EPOLLOUT | unix.EPOLLWRNORM
		if s.udp != nil && s.udp.Readable() {
			m |= unix.EPOLLIN | unix.EPOLLRDNORM
		}
		if s.udp != nil && s.udp.Err.Load() != 0 {
			m |= unix.EPOLLERR
		}
		return m
	case kindConn, kindEpoll:
	}
	c := s.conn
	st, _, eof := c.Status()
	if st == tcp.SynSent || st == tcp.SynReceived {
		return 0
	}
	rdDone := eof || st == tcp.Closed || s.rdShut.Load()
	wrDone := st == tcp.Closed || c.FinQueued()
	if st == tcp.Closed || rdDone && wrDone {
		m |= unix.EPOLLHUP
	}
	if rdDone {
		m |= unix.EPOLLIN | unix.EPOLLRDNORM | unix.EPOLLRDHUP
	} else if _, n := c.Unread(); n > 0 {
		m |= unix.EPOLLIN | unix.EPOLLRDNORM
	}
	if wrDone || h.st.Writable(c) {
		m |= unix.EPOLLOUT | unix.EPOLLWRNORM
	}
	if stack.Outcome(c) != 0 && !s.errGiven.Load() {
		m |= unix.EPOLLERR
	}
	return m
}
