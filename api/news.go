package api

import (
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"ndpip/stack"
)

// News of sockets go from the stack's ready list to epoll instances and to sleeping goroutines. Whoever polls takes them
// for all (EpollWait, a leading goroutine of an inline host). When all sleep, the host's news goroutine does: the worker
// wakes it through an eventfd, which Go's poller watches, and not through a channel: the worker's thread never comes back
// to Go's scheduler, and what a channel makes ready there waits until another thread steals it, 50 µs and more.

// awakener is the eventfd.
type awakener struct {
	file   *os.File
	fd     int
	called atomic.Uint32 // 1: written, and the news goroutine has not begun to look
	stop   atomic.Bool
	done   chan struct{}
}

func (h *Host) startNews() error {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return &EnvError{"eventfd", err}
	}
	a := &h.awake
	a.fd, a.file, a.done = fd, os.NewFile(uintptr(fd), "ndpip-news"), make(chan struct{})
	h.st.SetWaker(a.call)
	raw, err := a.file.SyscallConn()
	if err != nil {
		_ = a.file.Close()
		return &EnvError{"eventfd", err}
	}
	go func() {
		defer close(a.done)
		// The function is called once now and then after each write to the eventfd. Nobody reads it: Go's poller reports
		// edges, and each write is one.
		_ = raw.Read(func(uintptr) bool {
			a.called.Store(0) // before the look: what is told from here on wakes anew
			h.news.Lock()
			h.takeLocked()
			h.news.Unlock()
			return a.stop.Load()
		})
	}()
	return nil
}

func (h *Host) stopNews() {
	a := &h.awake
	if a.file == nil {
		return
	}
	a.stop.Store(true)
	a.called.Store(0)
	a.call()
	<-a.done
	_ = a.file.Close()
}

// call wakes the news goroutine, on the worker's thread.
func (a *awakener) call() {
	if a.called.Load() == 0 && a.called.Swap(1) == 0 {
		one := uint64(1)
		_, _, _ = unix.RawSyscall(unix.SYS_WRITE, uintptr(a.fd), uintptr(unsafe.Pointer(&one)), 8)
	}
}

// takeNews takes names off the stack's ready list, unless another goroutine is at it.
func (h *Host) takeNews() {
	if h.st.HasNews() && h.news.TryLock() {
		h.takeLocked()
		h.news.Unlock()
	}
}

// takeAll is takeNews that also waits for another goroutine to be through: what was told before is seen afterwards.
func (h *Host) takeAll() {
	if h.st.HasNews() || h.taking.Load() {
		h.news.Lock()
		h.takeLocked()
		h.news.Unlock()
	}
}

func (h *Host) takeLocked() {
	h.taking.Store(true)
	t := teller{h: h}
	var names [64]uint32
	for {
		n, all := h.st.Ready(names[:])
		for _, fd := range names[:n] {
			if s := h.fds.get(int(fd)); s != nil {
				t.tell(s, h.takeWord(s))
			}
		}
		if all {
			h.fds.each(func(s *sock) { t.tell(s, h.takeWord(s)) })
		}
		if n < len(names) {
			break
		}
	}
	t.release()
	h.taking.Store(false)
}

// takeWord takes what has happened to a socket since it was last taken.
func (h *Host) takeWord(s *sock) stack.Pend {
	switch kind(s.kind.Load()) {
	case kindConn:
		if c := s.conn.Load(); c != nil && c.Ready.Load() != 0 {
			return stack.Pend(c.Ready.Swap(0))
		}
	case kindListen:
		if l := s.lis.Load(); l != nil {
			return stack.Pend(l.Ready.Swap(0))
		}
	case kindUDP:
		if u := s.udp.Load(); u != nil {
			return stack.Pend(u.Ready.Swap(0))
		}
	case kindTCP, kindEpoll:
	}
	return 0
}

// changed is a change that the application has made itself: all who wait for the socket look at it.
func (h *Host) changed(s *sock) {
	s.rouseAll()
	t := teller{h: h}
	t.tell(s, stack.WatchOpen)
	t.release()
}

// teller passes news on. It holds the lock of the epoll instance of the last socket, as the next one is likely to be in
// the same.
type teller struct {
	h  *Host
	ep *epoll
}

func (t *teller) lock(ep *epoll) {
	if t.ep != ep {
		t.release()
		ep.mu.Lock()
		t.ep = ep
	}
}

func (t *teller) release() {
	if t.ep != nil {
		t.ep.mu.Unlock()
		t.ep = nil
	}
}

// tell lists a socket with its epoll instances and wakes its waiters, as far as what has happened concerns them.
func (t *teller) tell(s *sock, what stack.Pend) {
	if what == 0 {
		return
	}
	// Room to write is news if it was missed: a write had found none, or an epoll instance.
	if what&stack.WatchWrite != 0 && !(s.noSpace.Load() && t.h.readyNow(s, writing) && s.noSpace.Swap(false)) {
		what &^= stack.WatchWrite
	}
	// The end of the stream is more than something to read: also those are told who wait to write.
	if what&stack.WatchRead != 0 && !s.ended && s.atEnd() {
		s.ended = true
		what |= stack.WatchOpen
	}
	t.list(s, what)
	if s.asleep.Load() == 0 {
		return
	}
	s.obs.Lock()
	for _, d := range [2]side{reading, writing} {
		if s.waiters[d] != nil && t.h.readyNow(s, d) {
			for w := s.waiters[d]; w != nil; w = w.next {
				w.signal()
			}
		}
	}
	s.obs.Unlock()
}

// list lists a socket with those of its epoll instances that ask for what has happened.
func (t *teller) list(s *sock, what stack.Pend) {
	if items := s.items.Load(); items != nil {
		for _, it := range *items {
			ev := it.ev.Load()
			if what&stack.WatchOpen != 0 || what&stack.WatchRead != 0 && ev&epollRead != 0 || what&stack.WatchWrite != 0 && ev&epollWrite != 0 {
				t.lock(it.ep)
				it.ep.list(it)
			}
		}
	}
}

// atEnd says whether the peer has ended its stream.
func (s *sock) atEnd() bool {
	if c := s.conn.Load(); c != nil {
		_, _, eof := c.Status()
		return eof
	}
	return false
}
