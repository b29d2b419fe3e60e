package api

import (
	"golang.org/x/sys/unix"

	"ndpip/dpdk"
	"ndpip/stack"
)

// Zero copy without records: for callers that keep the ownership of buffers themselves, as the C library does, whose
// buffers are the port's own. A frame here describes a payload: Addr is its first byte, Len its length. Nothing is checked
// that Buf would check: who sends or frees a frame twice, or one that is not the host's, destroys the pool.

// AllocFrames is Alloc.
func (h *Host) AllocFrames(fd int, f []dpdk.Frame) (int, error) {
	s, err := h.sock(fd)
	if err != nil {
		return 0, err
	}
	size, err := h.payloadMax(s)
	if err != nil {
		return 0, err
	}
	n := h.st.AllocBufs(f)
	for i := range f[:n] {
		f[i].Len = min(f[i].Len, size)
	}
	if n == 0 && len(f) > 0 {
		h.poll()
		return 0, unix.ENOBUFS
	}
	return n, nil
}

// payloadMax is the largest payload of a segment, or datagram, that a socket sends.
func (h *Host) payloadMax(s *sock) (uint32, error) {
	if s.is(kindUDP) {
		return uint32(h.st.MaxDatagram()), nil
	}
	c := s.conn.Load()
	if c == nil {
		return 0, unix.ENOTCONN
	}
	return uint32(c.SndMSS), nil
}

// SendFrames is Send. With dontWait a blocking socket does not wait either.
func (h *Host) SendFrames(fd int, f []dpdk.Frame, dontWait bool) (int, error) {
	s, err := h.sock(fd)
	if err != nil {
		return 0, err
	}
	s.users.begin(writing)
	n, err := h.sendFrames(s, f, dontWait || s.nonblock.Load())
	s.users.end(writing)
	return n, err
}

func (h *Host) sendFrames(s *sock, f []dpdk.Frame, dontWait bool) (int, error) {
	var a await
	for {
		if err := s.expired(writing); err != nil {
			return 0, err
		}
		n, e := h.trySendFrames(s, f)
		switch {
		case n > 0 || e == 0:
			return n, nil
		case e != unix.EAGAIN && e != unix.ENOBUFS:
			return 0, e
		case dontWait:
			h.poll()
			return 0, e
		}
		if err := a.wait(h, s, writing); err != nil {
			return 0, err
		}
	}
}

func (h *Host) trySendFrames(s *sock, f []dpdk.Frame) (int, unix.Errno) {
	if s.is(kindUDP) && s.udp.Load() == nil {
		return 0, s.orClosed(unix.EDESTADDRREQ)
	}
	s.gates[writing].enter()
	defer s.gates[writing].leave()
	if c := s.conn.Load(); c != nil {
		n, e := h.st.SendBufs(c, f)
		if n < len(f) && e != unix.EMSGSIZE {
			e = h.noRoom(s, c, e)
		}
		return n, e
	}
	u := s.udp.Load()
	if u == nil {
		if s.is(kindUDP) {
			return 0, unix.EBADF
		}
		return h.writeOther(s, nil)
	}
	ip, port := u.Remote()
	if e := s.sendableUDP(u, ip); e != 0 {
		return 0, e
	}
	return h.st.SendUDPBufs(u, f, ip, port)
}

// sendableUDP says whether a datagram can be sent: 0, or why not.
func (s *sock) sendableUDP(u *stack.UDP, ip uint32) unix.Errno {
	switch {
	case ip == 0:
		return unix.EDESTADDRREQ
	case u.Err.Load() != 0:
		return unix.Errno(u.Err.Swap(0))
	case s.shut[writing].Load():
		return unix.EPIPE
	}
	return 0
}

// RecvFrames is Recv. The frames are the caller's until FreeFrames.
func (h *Host) RecvFrames(fd int, f []dpdk.Frame) (int, error) {
	s, err := h.sock(fd)
	if err != nil || len(f) == 0 {
		return 0, err
	}
	s.users.begin(reading)
	n, err := h.recvFrames(s, f)
	s.users.end(reading)
	return n, err
}

func (h *Host) recvFrames(s *sock, f []dpdk.Frame) (int, error) {
	return h.receive(s, func() (int, unix.Errno) {
		s.gates[reading].enter()
		defer s.gates[reading].leave()
		return h.takeFrames(s, f)
	})
}

// FreeFrames gives frames back: those of RecvFrames (received), or those of AllocFrames that were not sent.
func (h *Host) FreeFrames(f []dpdk.Frame, received bool) { h.st.FreeBufs(f, received) }
