package api

import (
	"golang.org/x/sys/unix"

	"ndpip/stack"
)

// events is what a socket is ready for, as Linux's tcp_poll and udp_poll give it. writes says that the room to write
// is asked for: if there is none, its coming back will be news. For who may touch the socket, see sock.
func (h *Host) events(s *sock, writes bool) uint32 {
	switch kind(s.kind.Load()) {
	case kindTCP:
		m := uint32(unix.EPOLLOUT | unix.EPOLLWRNORM | unix.EPOLLHUP)
		if s.shut[reading].Load() {
			m |= unix.EPOLLIN | unix.EPOLLRDNORM | unix.EPOLLRDHUP
		}
		if s.err.Load() != 0 {
			m |= unix.EPOLLERR
		}
		return m
	case kindListen:
		if l := s.lis.Load(); l != nil && l.Acceptable() {
			return unix.EPOLLIN | unix.EPOLLRDNORM
		}
	case kindUDP:
		return eventsUDP(s)
	case kindConn:
		if c := s.conn.Load(); c != nil {
			return h.eventsTCP(s, c, writes)
		}
	case kindEpoll:
	}
	return 0
}

func eventsUDP(s *sock) uint32 {
	m := uint32(unix.EPOLLOUT | unix.EPOLLWRNORM)
	u := s.udp.Load()
	rd := s.shut[reading].Load()
	if rd {
		m |= unix.EPOLLIN | unix.EPOLLRDNORM | unix.EPOLLRDHUP
		if s.shut[writing].Load() {
			m |= unix.EPOLLHUP
		}
	}
	if u != nil && u.Readable() {
		m |= unix.EPOLLIN | unix.EPOLLRDNORM
	}
	if u != nil && u.Err.Load() != 0 {
		m |= unix.EPOLLERR
	}
	return m
}

func (h *Host) eventsTCP(s *sock, c *stack.Conn, writes bool) (m uint32) {
	st, _, eof := c.Status()
	if st == stack.SynSent || st == stack.SynReceived {
		return 0
	}
	over := st == stack.Closed || st == stack.TimeWait
	rdDone := eof || over || s.shut[reading].Load()
	wrDone := over || c.FinQueued()
	if rdDone && wrDone {
		m |= unix.EPOLLHUP
	}
	if rdDone {
		m |= unix.EPOLLIN | unix.EPOLLRDNORM | unix.EPOLLRDHUP
	} else if h.st.Readable(c) {
		m |= unix.EPOLLIN | unix.EPOLLRDNORM
	}
	if wrDone || h.roomy(s, c, writes) {
		m |= unix.EPOLLOUT | unix.EPOLLWRNORM
	}
	if s.pending(c) != 0 {
		m |= unix.EPOLLERR
	}
	return m
}

// roomy says whether there is room to write. If there is none and it is asked for, noSpace is set; the second look is
// for room that came before that.
func (h *Host) roomy(s *sock, c *stack.Conn, asked bool) bool {
	if c.Writable() {
		return true
	}
	if !asked {
		return false
	}
	s.noSpace.Store(true)
	return c.Writable()
}
