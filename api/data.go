package api

import (
	"os"

	"golang.org/x/sys/unix"

	"ndpip/stack"
)

// Read reads what is there, at most len(p) bytes, and waits until there is something. It returns 0 at the end of the
// stream, and when p is empty. A non-blocking socket gets EAGAIN instead of waiting. From a UDP socket it reads one
// datagram.
//
// Errors: EAGAIN (also when SO_RCVTIMEO is over), ENOTCONN, ECONNRESET, ETIMEDOUT and others that ended the connection
// (each is reported once), EINVAL (an epoll instance), os.ErrDeadlineExceeded (SetReadDeadline).
func (h *Host) Read(fd int, p []byte) (int, error) {
	s := h.fds.get(fd)
	if s == nil {
		return 0, unix.EBADF
	}
	s.users.begin(reading)
	n, err := h.read(s, p)
	s.users.end(reading)
	return n, err
}

// read is read(2): nothing is what it reads into no space, whatever there is.
func (h *Host) read(s *sock, p []byte) (int, error) {
	if len(p) == 0 && !s.is(kindEpoll) && !s.closed.Load() {
		return 0, s.expired(reading)
	}
	return h.readOrWait(s, p)
}

// readOrWait is recv(2), which waits for data, an error or the end also when it has no space for them.
func (h *Host) readOrWait(s *sock, p []byte) (int, error) {
	var a await
	for {
		if err := s.expired(reading); err != nil {
			return 0, err
		}
		n, e := h.tryRead(s, p)
		if n > 0 || e == 0 {
			return n, nil
		}
		if e != unix.EAGAIN {
			return 0, e
		}
		if s.shut[reading].Load() && !s.nonblock.Load() {
			return 0, nil // a UDP socket; on Linux non-blocking ones get EAGAIN
		}
		if s.nonblock.Load() {
			if h.poll() {
				if n, e = h.tryRead(s, p); n > 0 || e == 0 {
					return n, nil
				}
			}
			return 0, e
		}
		if err := a.wait(h, s, reading); err != nil {
			return 0, err
		}
	}
}

// tryRead reads without waiting.
func (h *Host) tryRead(s *sock, p []byte) (int, unix.Errno) {
	s.gates[reading].enter()
	c := s.conn.Load()
	if c == nil {
		s.gates[reading].leave()
		return h.readOther(s, p)
	}
	n, e := h.st.Recv(c, p)
	if n == 0 && e != 0 {
		e = s.noData(c, e)
	}
	s.gates[reading].leave()
	return n, e
}

// noData is what a read returns when there is nothing to read: EAGAIN, the connection's error, which is reported once,
// or 0 for the end of the stream. Behind the reading gate.
func (s *sock) noData(c *stack.Conn, e unix.Errno) unix.Errno {
	switch {
	case e == unix.EAGAIN && s.shut[reading].Load():
		return 0
	case e == unix.EAGAIN:
		return e
	case s.errGiven.Swap(true):
		return 0
	}
	return outcome(c)
}

// readOther is a read from what is no connection.
func (h *Host) readOther(s *sock, p []byte) (int, unix.Errno) {
	if s.closed.Load() {
		return 0, unix.EBADF
	}
	switch kind(s.kind.Load()) {
	case kindEpoll:
		return 0, unix.EINVAL
	case kindUDP:
		n, _, e := h.tryRecvFrom(s, p)
		return n, e
	case kindTCP:
		if e := s.takeError(); e != 0 {
			return 0, e
		}
		if s.shut[reading].Load() {
			return 0, 0
		}
	case kindConn:
		return 0, unix.EAGAIN // it is becoming something else just now
	case kindListen:
	}
	return 0, unix.ENOTCONN
}

// expired says whether the deadline of one side is over.
func (s *sock) expired(d side) error {
	if l := s.limit[d].Load(); l != 0 && now() >= l {
		return os.ErrDeadlineExceeded
	}
	return nil
}

// Write copies p to the peer's window. A blocking socket waits until all of it is taken, and returns less only if
// the rest failed, which the next call tells; a non-blocking one takes what fits and returns how much that was, or
// EAGAIN if it was none. On a UDP socket that is connected it sends one datagram.
//
// Errors: EAGAIN (also when SO_SNDTIMEO is over), EPIPE (the stream has been ended, or never begun), ECONNRESET and
// others that ended the connection (each is reported once), EDESTADDRREQ (UDP without a peer), EMSGSIZE (UDP), EINVAL
// (an epoll instance), os.ErrDeadlineExceeded (SetWriteDeadline).
func (h *Host) Write(fd int, p []byte) (int, error) {
	s := h.fds.get(fd)
	if s == nil {
		return 0, unix.EBADF
	}
	s.users.begin(writing)
	n, err := h.write(s, p)
	s.users.end(writing)
	return n, err
}

func (h *Host) write(s *sock, p []byte) (int, error) {
	var a await
	done := 0
	for {
		if err := s.expired(writing); err != nil {
			return done, lessThan(done, err)
		}
		n, e := h.tryWrite(s, p[done:])
		done += n
		switch {
		case e == 0 && done == len(p):
			return done, nil
		case e != 0 && e != unix.EAGAIN:
			return done, lessThan(done, e)
		case s.nonblock.Load():
			if done == 0 {
				h.poll()
				return 0, unix.EAGAIN
			}
			return done, nil
		}
		if err := a.wait(h, s, writing); err != nil {
			return done, lessThan(done, err)
		}
	}
}

// lessThan is the error of a call that has done a part: none, as POSIX wants.
func lessThan(done int, err error) error {
	if done > 0 {
		return nil
	}
	return err
}

// tryWrite writes without waiting. EAGAIN can come with n > 0: the rest has to wait.
func (h *Host) tryWrite(s *sock, p []byte) (int, unix.Errno) {
	s.gates[writing].enter()
	c := s.conn.Load()
	if c == nil {
		s.gates[writing].leave()
		return h.writeOther(s, p)
	}
	n, e := h.st.Send(c, p)
	if n < len(p) || e != 0 {
		e = h.noRoom(s, c, e)
	}
	s.gates[writing].leave()
	return n, e
}

// noRoom is what a write returns that could not take all. Behind the writing gate.
func (h *Host) noRoom(s *sock, c *stack.Conn, e unix.Errno) unix.Errno {
	if e != 0 && e != unix.EAGAIN {
		return s.broken()
	}
	// EPOLLOUT is news from here on; what has come before this is looked for.
	s.noSpace.Store(true)
	if s.items.Load() != nil && c.Writable() && s.noSpace.Swap(false) {
		t := teller{h: h}
		t.list(s, stack.WatchWrite)
		t.release()
	}
	return unix.EAGAIN
}

// broken is the error of a write to a stream that takes no more: what ended the connection, which is reported once, and
// else EPIPE.
func (s *sock) broken() unix.Errno {
	if e := s.takeError(); e != 0 {
		return e
	}
	return unix.EPIPE
}

// writeOther is a write to what is no connection.
func (h *Host) writeOther(s *sock, p []byte) (int, unix.Errno) {
	if s.closed.Load() {
		return 0, unix.EBADF
	}
	switch kind(s.kind.Load()) {
	case kindEpoll:
		return 0, unix.EINVAL
	case kindUDP:
		return h.trySendTo(s, p, 0, 0)
	case kindConn:
		return 0, unix.EAGAIN // it is becoming something else just now
	case kindTCP, kindListen:
	}
	return 0, s.broken()
}

// outcome is the errno of a connection that has not ended in order; 0: none. A reset behind the peer's FIN is EPIPE: there
// was nothing left to read, only writing has failed.
func outcome(c *stack.Conn) unix.Errno {
	e := stack.Outcome(c)
	if e == unix.ECONNRESET {
		if _, _, eof := c.Status(); eof {
			return unix.EPIPE
		}
	}
	return e
}

// pending is the connection's error as long as nobody was told.
func (s *sock) pending(c *stack.Conn) unix.Errno {
	if e := outcome(c); e != 0 && !s.errGiven.Load() {
		return e
	}
	if s.err.Load() != 0 {
		return unix.Errno(s.err.Swap(0))
	}
	return 0
}

// takeError is the socket's error, which is reported once. For who may touch the socket.
func (s *sock) takeError() unix.Errno {
	if c := s.conn.Load(); c != nil {
		if e := outcome(c); e != 0 && !s.errGiven.Swap(true) {
			return e
		}
	}
	if u := s.udp.Load(); u != nil && u.Err.Load() != 0 {
		return unix.Errno(u.Err.Swap(0))
	}
	if s.err.Load() != 0 {
		return unix.Errno(s.err.Swap(0))
	}
	return 0
}
