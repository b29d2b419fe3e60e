package api

import (
	"time"

	"golang.org/x/sys/unix"

	"ndpip/stack"
)

// Close gives a descriptor back. Calls that wait on it end with EBADF. It does not wait: data sent before are
// delivered, and the connection ends in order; or with a reset when received data were left unread, or SO_LINGER has a
// time of 0. With SO_LINGER and another time, a blocking socket waits until the peer has acknowledged all that was
// sent, its end included, at most that long.
func (h *Host) Close(fd int) error {
	s, err := h.any(fd)
	if err != nil {
		return err
	}
	return h.close(s)
}

func (h *Host) close(s *sock) error {
	if s.closed.Swap(true) {
		return unix.EBADF
	}
	s.rouseAll()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.is(kindConn) && s.linger.Onoff != 0 && s.linger.Linger > 0 && !s.nonblock.Load() && !h.stopped.Load() {
		h.lingerOn(s)
	}
	h.fds.remove(s)
	h.forget(s)
	c, l, u := s.conn.Swap(nil), s.lis.Swap(nil), s.udp.Swap(nil)
	h.detach(s)
	switch {
	case c != nil:
		h.st.Close(c)
	case l != nil:
		h.st.Unlisten(l)
	case u != nil:
		h.st.CloseUDP(u)
	case s.ep != nil:
		h.closeEpoll(s.ep)
	}
	if s.reserved {
		h.st.Unbind(s.lport, s.reuse)
	}
	h.poll()
	return nil
}

// lingerOn ends the stream and waits until the peer has acknowledged that.
func (h *Host) lingerOn(s *sock) {
	c := s.conn.Load()
	if _, unread := c.Unread(); unread > 0 || stack.Sendable(c) != 0 && !c.FinQueued() {
		return // it will be a reset, or there is nothing to wait for
	}
	s.gates[writing].enter()
	if !c.FinQueued() {
		h.st.Shutdown(c)
	}
	s.gates[writing].leave()
	w := await{closing: true, end: now() + int64(s.linger.Linger)*int64(time.Second)}
	for !h.ready(s, writing, true) && w.wait(h, s, writing) == nil {
	}
}

// lingered says whether the peer has acknowledged our end of the stream, or never will.
func (h *Host) lingered(s *sock) bool {
	c := s.conn.Load()
	if c == nil || h.stopped.Load() {
		return true
	}
	switch st, _, _ := c.Status(); st {
	case stack.FinWait2, stack.TimeWait, stack.Closed:
		return true
	case stack.SynSent, stack.SynReceived, stack.Established, stack.FinWait1, stack.CloseWait, stack.Closing, stack.LastAck:
	}
	return false
}
