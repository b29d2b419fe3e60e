package api

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// SendTo sends one datagram; without an address to the peer that the socket is connected to. On a TCP socket the
// address is ignored, as by Linux, and it is Write.
//
// Errors: those of Write, EMSGSIZE (longer than one frame holds: nothing is fragmented), ENETUNREACH, ECONNREFUSED and
// EHOSTUNREACH (what ICMP said of an earlier datagram of a connected socket), EINVAL (port 0), ENOTSOCK.
func (h *Host) SendTo(fd int, p []byte, to netip.AddrPort) (int, error) {
	s, err := h.sock(fd)
	if err != nil {
		return 0, err
	}
	s.users.begin(writing)
	n, err := h.sendTo(s, p, to)
	s.users.end(writing)
	return n, err
}

func (h *Host) sendTo(s *sock, p []byte, to netip.AddrPort) (int, error) {
	if !s.is(kindUDP) {
		return h.write(s, p)
	}
	ip, port, err := destination(to)
	if err != nil {
		return 0, err
	}
	var a await
	for {
		if err := s.expired(writing); err != nil {
			return 0, err
		}
		n, e := h.trySendTo(s, p, ip, port)
		switch {
		case e == 0:
			return n, nil
		case e != unix.EAGAIN && e != unix.ENOBUFS:
			return 0, e
		case s.nonblock.Load():
			h.poll()
			return 0, e
		}
		if err := a.wait(h, s, writing); err != nil {
			return 0, err
		}
	}
}

// destination is where a datagram is to go; port 0: to the socket's peer.
func destination(to netip.AddrPort) (ip uint32, port uint16, err error) {
	if !to.IsValid() {
		return 0, 0, nil
	}
	ip, ok := addr4(to.Addr())
	switch {
	case !ok:
		return 0, 0, unix.EAFNOSUPPORT
	case to.Port() == 0:
		return 0, 0, unix.EINVAL
	}
	return ip, to.Port(), nil
}

// trySendTo sends one datagram without waiting; port 0: to the socket's peer.
func (h *Host) trySendTo(s *sock, p []byte, ip uint32, port uint16) (int, unix.Errno) {
	if s.udp.Load() == nil {
		if port == 0 {
			return 0, s.orClosed(unix.EDESTADDRREQ)
		}
		if e := h.autobind(s); e != 0 {
			return 0, e
		}
	}
	s.gates[writing].enter()
	defer s.gates[writing].leave()
	u := s.udp.Load()
	if u == nil {
		return 0, unix.EBADF
	}
	if port == 0 {
		if ip, port = u.Remote(); ip == 0 {
			return 0, unix.EDESTADDRREQ
		}
	}
	switch {
	case u.Err.Load() != 0:
		return 0, unix.Errno(u.Err.Swap(0))
	case s.shut[writing].Load():
		return 0, unix.EPIPE
	}
	if e := h.st.SendTo(u, p, ip, port); e != 0 {
		return 0, e
	}
	return len(p), 0
}

func (s *sock) orClosed(e unix.Errno) unix.Errno {
	if s.closed.Load() {
		return unix.EBADF
	}
	return e
}

// autobind gives a UDP socket a port of its own.
func (h *Host) autobind(s *sock) unix.Errno {
	if s.lock() != nil {
		return unix.EBADF
	}
	defer s.mu.Unlock()
	if s.udp.Load() != nil {
		return 0
	}
	if err := h.bind(s, 0, 0); err != nil {
		return err.(unix.Errno)
	}
	h.changed(s)
	return 0
}

// RecvFrom takes one datagram and its source. What does not fit p is lost, as in POSIX. On a TCP socket it is a read,
// and the source is the zero AddrPort.
//
// Errors: those of Read, ECONNREFUSED and EHOSTUNREACH (what ICMP said of a datagram of a connected socket), ENOTSOCK.
func (h *Host) RecvFrom(fd int, p []byte) (int, netip.AddrPort, error) {
	s, err := h.sock(fd)
	if err != nil {
		return 0, netip.AddrPort{}, err
	}
	s.users.begin(reading)
	n, from, err := h.recvFrom(s, p)
	s.users.end(reading)
	return n, from, err
}

func (h *Host) recvFrom(s *sock, p []byte) (int, netip.AddrPort, error) {
	if !s.is(kindUDP) {
		n, err := h.readOrWait(s, p)
		return n, netip.AddrPort{}, err
	}
	var a await
	for {
		if err := s.expired(reading); err != nil {
			return 0, netip.AddrPort{}, err
		}
		n, from, e := h.tryRecvFrom(s, p)
		if e == unix.EAGAIN && s.nonblock.Load() && h.poll() {
			n, from, e = h.tryRecvFrom(s, p)
		}
		switch {
		case e == 0:
			return n, from, nil
		case e != unix.EAGAIN || s.nonblock.Load():
			return 0, netip.AddrPort{}, e
		case s.shut[reading].Load():
			return 0, netip.AddrPort{}, nil
		}
		if err := a.wait(h, s, reading); err != nil {
			return 0, netip.AddrPort{}, err
		}
	}
}

// tryRecvFrom takes a datagram without waiting.
func (h *Host) tryRecvFrom(s *sock, p []byte) (int, netip.AddrPort, unix.Errno) {
	s.gates[reading].enter()
	defer s.gates[reading].leave()
	u := s.udp.Load()
	if u == nil {
		return 0, netip.AddrPort{}, s.orClosed(unix.EAGAIN)
	}
	if u.Err.Load() != 0 {
		return 0, netip.AddrPort{}, unix.Errno(u.Err.Swap(0))
	}
	n, _, ip, port, e := h.st.RecvFrom(u, p)
	if e == 0 {
		return n, addrPort(ip, port), 0
	}
	return 0, netip.AddrPort{}, e
}
