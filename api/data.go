package api

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"ndpip/tcp"
)

// conn is the connection of a descriptor, or the errno that reading and writing has without one.
func (h *Host) conn(fd int) (*sock, error) {
	s, err := h.sock(fd)
	if err != nil {
		return nil, err
	}
	if !s.is(kindConn) {
		if s.is(kindUDP) {
			return s, nil
		}
		return nil, unix.ENOTCONN
	}
	return s, nil
}

// Read reads what is there, at most len(p) bytes, and waits until there is something. It returns 0 at the end of the
// stream. A non-blocking socket gets EAGAIN instead of waiting. From a UDP socket it reads one datagram.
func (h *Host) Read(fd int, p []byte) (int, error) {
	s, err := h.conn(fd)
	if err != nil {
		return 0, err
	}
	if s.is(kindUDP) {
		n, _, err := h.RecvFrom(fd, p)
		return n, err
	}
	if len(p) == 0 {
		return 0, nil
	}
	for {
		n, e := h.st.Recv(s.conn, p)
		if n > 0 || e == 0 {
			return n, nil
		}
		if s.rdShut.Load() {
			return 0, nil
		}
		if e != unix.EAGAIN {
			return 0, s.endOfRead(e)
		}
		if s.nonblock.Load() {
			if h.poll() {
				if n, e = h.st.Recv(s.conn, p); n > 0 || e == 0 {
					return n, nil
				}
			}
			return 0, unix.EAGAIN
		}
		if err := h.wait(s, tcp.PendRead, func() bool { return h.st.Readable(s.conn) || s.rdShut.Load() }); err != nil {
			return 0, err
		}
	}
}

// endOfRead reports a connection's error once; after that the stream is at its end.
func (s *sock) endOfRead(e unix.Errno) error {
	if s.errGiven.Swap(true) {
		return nil
	}
	return e
}

// Write copies p to the peer's window. A blocking socket waits until all of it is taken; a non-blocking one takes what
// fits and returns how much that was, or EAGAIN if it was none. EPIPE: the stream has been ended.
func (h *Host) Write(fd int, p []byte) (int, error) {
	s, err := h.conn(fd)
	if err != nil {
		return 0, err
	}
	if s.is(kindUDP) {
		return h.SendTo(fd, p, netip.AddrPort{})
	}
	n := 0
	for {
		k, e := h.st.Send(s.conn, p[n:])
		n += k
		if n == len(p) {
			return n, nil
		}
		if e != 0 && e != unix.EAGAIN {
			if n > 0 {
				return n, nil
			}
			if e != unix.EPIPE {
				s.errGiven.Store(true)
			}
			return 0, e
		}
		if s.nonblock.Load() {
			if n == 0 {
				h.poll()
				return 0, unix.EAGAIN
			}
			return n, nil
		}
		if err := h.wait(s, tcp.PendWrite, func() bool { return h.writable(s) }); err != nil {
			return n, err
		}
	}
}

// writable says whether a write would take something, or fail.
func (h *Host) writable(s *sock) bool {
	st, _, _ := s.conn.Status()
	switch st {
	case tcp.SynSent, tcp.SynReceived:
		return false
	case tcp.Established, tcp.CloseWait:
		return s.conn.FinQueued() || h.st.Writable(s.conn)
	case tcp.Closed, tcp.FinWait1, tcp.FinWait2, tcp.Closing, tcp.LastAck, tcp.TimeWait:
	}
	return true
}

// SendTo sends one datagram; without an address to the peer that the socket is connected to. On a TCP socket the
// address is ignored, as by Linux.
func (h *Host) SendTo(fd int, p []byte, to netip.AddrPort) (int, error) {
	s, err := h.conn(fd)
	if err != nil {
		return 0, err
	}
	if s.is(kindConn) {
		return h.Write(fd, p)
	}
	if err := h.autobind(s); err != nil {
		return 0, err
	}
	if e := s.udp.Err.Swap(0); e != 0 {
		return 0, unix.Errno(e)
	}
	ip, ok := addr4(to.Addr())
	port := to.Port()
	if !ok {
		return 0, unix.EAFNOSUPPORT
	}
	if !to.IsValid() {
		if ip, port = s.udp.Remote(); ip == 0 {
			return 0, unix.EDESTADDRREQ
		}
	}
	if port == 0 {
		return 0, unix.EINVAL
	}
	for {
		e := h.st.SendTo(s.udp, p, ip, port)
		switch {
		case e == 0:
			return len(p), nil
		case e != unix.EAGAIN && e != unix.ENOBUFS || s.nonblock.Load():
			h.poll()
			return 0, e
		}
		h.pause()
		if h.stopped.Load() || s.closed.Load() {
			return 0, unix.EBADF
		}
	}
}

// autobind gives a UDP socket a port of its own.
func (h *Host) autobind(s *sock) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.udp != nil {
		return nil
	}
	return h.bind(s, 0, 0)
}

// RecvFrom takes one datagram and its source. What does not fit p is lost, as in POSIX. On a TCP socket it reads.
func (h *Host) RecvFrom(fd int, p []byte) (int, netip.AddrPort, error) {
	s, err := h.conn(fd)
	if err != nil {
		return 0, netip.AddrPort{}, err
	}
	if s.is(kindConn) {
		n, err := h.Read(fd, p)
		return n, netip.AddrPort{}, err
	}
	if err := h.autobind(s); err != nil {
		return 0, netip.AddrPort{}, err
	}
	for {
		n, _, ip, port, e := h.st.RecvFrom(s.udp, p)
		if e == 0 {
			return n, addrPort(ip, port), nil
		}
		if x := s.udp.Err.Swap(0); x != 0 {
			return 0, netip.AddrPort{}, unix.Errno(x)
		}
		if s.nonblock.Load() {
			h.poll()
			return 0, netip.AddrPort{}, e
		}
		if err := h.wait(s, tcp.PendRead, func() bool { return s.udp.Readable() || s.udp.Err.Load() != 0 }); err != nil {
			return 0, netip.AddrPort{}, err
		}
	}
}
