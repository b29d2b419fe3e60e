package api

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"ndpip/dpdk"
)

// Zero copy: the application writes into the port's buffers and reads from them. Each buffer belongs to the
// application, the stack, or the port: see Buf for the application's part. A Send takes buffers over one by one, in
// order; those that it has not taken are the application's still, and unaltered.

// bufBatch is how many buffers go through one call into the stack.
const bufBatch = 64

// Alloc gives buffers for sending on a socket, as many as there are, at most len(bufs). Each has the length of the
// largest segment, or datagram, that the socket sends. It does not wait.
//
// Errors: ENOBUFS (there is none), ENOTCONN (TCP), ENOTSOCK.
func (h *Host) Alloc(fd int, bufs []Buf) (int, error) {
	s, err := h.sock(fd)
	if err != nil {
		return 0, err
	}
	return h.alloc(s, bufs)
}

func (h *Host) alloc(s *sock, bufs []Buf) (int, error) {
	size := uint32(h.st.MaxDatagram())
	if !s.is(kindUDP) {
		c := s.conn.Load()
		if c == nil {
			return 0, unix.ENOTCONN
		}
		size = uint32(c.SndMSS)
	}
	n := 0
	var f [bufBatch]dpdk.Frame
	for n < len(bufs) {
		k := h.st.AllocBufs(f[:min(len(f), len(bufs)-n)])
		if k == 0 {
			break
		}
		if !h.bufs.give(bufs[n:n+k], f[:k], false) {
			h.st.FreeBufs(f[:k], false)
			return n, unix.ENETDOWN
		}
		for i := range bufs[n : n+k] {
			bufs[n+i].len = min(bufs[n+i].len, size)
		}
		n += k
	}
	if n == 0 && len(bufs) > 0 {
		h.poll()
		return 0, unix.ENOBUFS
	}
	return n, nil
}

// sendable says whether a buffer can be sent: it is the application's, and comes from Alloc.
func (h *Host) sendable(b *Buf) bool { return h.bufs.owned(b) && !b.slot.received }

// Prepare checks that a buffer can be sent on a socket. The headers are written by Send, which alone knows the
// sequence number.
//
// Errors: EINVAL (not a buffer from Alloc that the application owns), EMSGSIZE (longer than a segment or datagram may
// be), ENOTCONN (TCP), ENOTSOCK.
func (h *Host) Prepare(fd int, b *Buf) error {
	s, err := h.sock(fd)
	if err != nil {
		return err
	}
	limit := h.st.MaxDatagram()
	if !s.is(kindUDP) {
		c := s.conn.Load()
		if c == nil {
			return unix.ENOTCONN
		}
		limit = int(c.SndMSS)
	}
	switch {
	case b == nil || !h.sendable(b):
		return unix.EINVAL
	case b.Len() > limit:
		return unix.EMSGSIZE
	}
	return nil
}

// Send sends each buffer as one segment, or on a connected UDP socket as one datagram, and takes it over: in order,
// and as many as the peer's window takes. What it has not taken stays the caller's, unaltered. A blocking socket waits
// until it has taken one; when some were taken, what became of the next is for the next call to tell.
//
// Errors: EAGAIN, EINVAL (the first is not a buffer from Alloc that the application owns), EMSGSIZE (the first is longer
// than a segment or datagram may be), and those of Write.
func (h *Host) Send(fd int, bufs []Buf) (int, error) {
	s, err := h.sock(fd)
	if err != nil {
		return 0, err
	}
	s.users.begin(writing)
	n, err := h.send(s, bufs, netip.AddrPort{})
	s.users.end(writing)
	return n, err
}

// SendBufsTo is Send for a UDP socket, to an address.
func (h *Host) SendBufsTo(fd int, bufs []Buf, to netip.AddrPort) (int, error) {
	s, err := h.sock(fd)
	if err != nil {
		return 0, err
	}
	s.users.begin(writing)
	n, err := h.send(s, bufs, to)
	s.users.end(writing)
	return n, err
}

func (h *Host) send(s *sock, bufs []Buf, to netip.AddrPort) (int, error) {
	ip, port, err := destination(to)
	if err != nil {
		return 0, err
	}
	var a await
	n := 0
	for {
		if err := s.expired(writing); err != nil {
			return n, lessThan(n, err)
		}
		k, e := h.trySend(s, bufs[n:min(len(bufs), n+bufBatch)], ip, port)
		n += k
		switch {
		case e == 0 && n == len(bufs):
			return n, nil
		case e == 0 && k > 0:
			continue
		case n > 0 || e != 0 && e != unix.EAGAIN && e != unix.ENOBUFS || s.nonblock.Load():
			if n == 0 {
				h.poll()
			}
			return n, lessThan(n, e)
		}
		if err := a.wait(h, s, writing); err != nil {
			return 0, err
		}
	}
}

// trySend sends a batch without waiting. With an error, a part may have been taken.
func (h *Host) trySend(s *sock, bufs []Buf, ip uint32, port uint16) (int, unix.Errno) {
	udp := s.is(kindUDP)
	if udp && s.udp.Load() == nil {
		if port == 0 {
			return 0, s.orClosed(unix.EDESTADDRREQ)
		}
		if e := h.autobind(s); e != 0 {
			return 0, e
		}
	}
	s.gates[writing].enter()
	defer s.gates[writing].leave()
	c, u := s.conn.Load(), s.udp.Load()
	switch {
	case c == nil && u == nil && udp:
		return 0, unix.EBADF
	case c == nil && u == nil:
		return h.writeOther(s, nil)
	case u != nil:
		if port == 0 {
			if ip, port = u.Remote(); ip == 0 {
				return 0, unix.EDESTADDRREQ
			}
		}
		if u.Err.Load() != 0 {
			return 0, unix.Errno(u.Err.Swap(0))
		}
		if s.shut[writing].Load() {
			return 0, unix.EPIPE
		}
	}
	// The buffers are taken from the application before the stack sees them, so that no other goroutine can send or free
	// one meanwhile, nor this call one that is there twice; and given back if the stack does not take them.
	var f [bufBatch]dpdk.Frame
	k := 0
	h.bufs.mu.Lock()
	for ; k < len(bufs); k++ {
		b := &bufs[k]
		if !h.sendable(b) {
			break
		}
		h.bufs.claim(b)
		f[k] = dpdk.Frame{Handle: b.slot.handle, Addr: b.addr, Len: b.len}
	}
	h.bufs.mu.Unlock()
	if k == 0 && len(bufs) > 0 {
		return 0, unix.EINVAL
	}
	var n int
	var e unix.Errno
	if u != nil {
		n, e = h.st.SendUDPBufs(u, f[:k], ip, port)
	} else {
		n, e = h.st.SendBufs(c, f[:k])
	}
	h.bufs.mu.Lock()
	for i := range bufs[:k] {
		if i < n {
			h.bufs.retire(&bufs[i])
		} else {
			h.bufs.restore(&bufs[i])
		}
	}
	h.bufs.mu.Unlock()
	if c != nil && n < k {
		if e != unix.EMSGSIZE {
			e = h.noRoom(s, c, e)
		}
	} else if n < len(bufs) && e == 0 && k < len(bufs) {
		e = unix.EINVAL // what comes next cannot be sent
	}
	return n, e
}

// Recv takes received buffers over from a socket, at most len(bufs): each is what one segment brought, or one datagram.
// It waits until there is one. At the end of the stream it returns 0. The errors are Read's.
func (h *Host) Recv(fd int, bufs []Buf) (int, error) {
	s, err := h.sock(fd)
	if err != nil || len(bufs) == 0 {
		return 0, err
	}
	s.users.begin(reading)
	n, err := h.recv(s, bufs)
	s.users.end(reading)
	return n, err
}

func (h *Host) recv(s *sock, bufs []Buf) (int, error) {
	return h.receive(s, func() (int, unix.Errno) { return h.tryRecv(s, bufs) })
}

// receive waits until try has something to return, or only tries, as the socket is set.
func (h *Host) receive(s *sock, try func() (int, unix.Errno)) (int, error) {
	var a await
	for {
		if err := s.expired(reading); err != nil {
			return 0, err
		}
		n, e := try()
		if e == unix.EAGAIN && s.nonblock.Load() && h.poll() {
			n, e = try()
		}
		switch {
		case n > 0 || e == 0:
			return n, nil
		case e != unix.EAGAIN || s.nonblock.Load():
			return 0, e
		case s.shut[reading].Load():
			return 0, nil
		}
		if err := a.wait(h, s, reading); err != nil {
			return 0, err
		}
	}
}

// tryRecv takes a batch without waiting.
func (h *Host) tryRecv(s *sock, bufs []Buf) (n int, e unix.Errno) {
	s.gates[reading].enter()
	defer s.gates[reading].leave()
	var f [bufBatch]dpdk.Frame
	n, e = h.takeFrames(s, f[:min(len(f), len(bufs))])
	if n > 0 && !h.bufs.give(bufs, f[:n], true) {
		h.st.FreeBufs(f[:n], true)
		return 0, unix.EBADF
	}
	return n, e
}

// takeFrames takes received payloads. Behind the reading gate.
func (h *Host) takeFrames(s *sock, f []dpdk.Frame) (n int, e unix.Errno) {
	c, u := s.conn.Load(), s.udp.Load()
	switch {
	case c != nil:
		if n, e = h.st.RecvBufs(c, f); n == 0 && e != 0 {
			e = s.noData(c, e)
		}
		return n, e
	case u != nil && u.Err.Load() != 0:
		return 0, unix.Errno(u.Err.Swap(0))
	case u != nil:
		return h.st.RecvUDPBufs(u, f)
	case s.is(kindUDP):
		return 0, s.orClosed(unix.EAGAIN)
	}
	var one [1]byte
	return h.readOther(s, one[:])
}

// Free gives buffers back. It works after the socket was closed, too: fd is only for those who are used to it. EINVAL:
// one of them is none that the application owns; the others are given back all the same.
func (h *Host) Free(_ int, bufs []Buf) error {
	var err error
	var f [2][bufBatch]dpdk.Frame // allocated, received
	for len(bufs) > 0 {
		var n [2]int
		some := bufs[:min(len(bufs), bufBatch)]
		bufs = bufs[len(some):]
		h.bufs.mu.Lock()
		for i := range some {
			b := &some[i]
			if !h.bufs.claim(b) {
				err = unix.EINVAL
				*b = Buf{}
				continue
			}
			d := flag(b.slot.received)
			f[d][n[d]].Handle = b.slot.handle
			n[d]++
			h.bufs.retire(b)
		}
		h.bufs.mu.Unlock()
		for d := range f {
			if n[d] > 0 {
				h.st.FreeBufs(f[d][:n[d]], d == 1)
			}
		}
	}
	return err
}
