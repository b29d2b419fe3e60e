package api

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"ndpip/stack"
)

// SOCK_NDPIP is the socket type of programs written for the original; the protocol says which it is.
const SOCK_NDPIP = 42

// Socket makes a socket: AF_INET; SOCK_STREAM, SOCK_DGRAM or SOCK_NDPIP, with SOCK_NONBLOCK or without (SOCK_CLOEXEC is
// ignored); IPPROTO_TCP, IPPROTO_UDP, or 0 for the type's own. The descriptor is the lowest one that is free; it is
// this host's and not the kernel's.
//
// Errors: EAFNOSUPPORT, EPROTONOSUPPORT, ESOCKTNOSUPPORT, EINVAL (unknown flags), ENETDOWN (the host was stopped).
func (h *Host) Socket(domain, typ, protocol int) (int, error) {
	s, err := h.socket(domain, typ, protocol)
	if err != nil {
		return -1, err
	}
	return s.fd, nil
}

func (h *Host) socket(domain, typ, protocol int) (*sock, error) {
	const typeMask = 0xf // SOCK_TYPE_MASK
	flags := typ & (unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC)
	typ &^= flags
	if typ != SOCK_NDPIP && typ&^typeMask != 0 {
		return nil, unix.EINVAL
	}
	if domain != unix.AF_INET {
		return nil, unix.EAFNOSUPPORT
	}
	if protocol < 0 || protocol > 262 { // IPPROTO_MPTCP is the last
		return nil, unix.EINVAL
	}
	k := kindTCP
	switch typ {
	case unix.SOCK_STREAM:
		if protocol != 0 && protocol != unix.IPPROTO_TCP {
			return nil, unix.EPROTONOSUPPORT
		}
	case unix.SOCK_DGRAM:
		if protocol != 0 && protocol != unix.IPPROTO_UDP {
			return nil, unix.EPROTONOSUPPORT
		}
		k = kindUDP
	case SOCK_NDPIP:
		switch protocol {
		case unix.IPPROTO_TCP:
		case unix.IPPROTO_UDP:
			k = kindUDP
		default:
			return nil, unix.EPROTONOSUPPORT
		}
	case 0, unix.SOCK_RAW, unix.SOCK_RDM, unix.SOCK_SEQPACKET:
		return nil, unix.ESOCKTNOSUPPORT
	default:
		return nil, unix.EINVAL
	}
	if h.stopped.Load() {
		return nil, unix.ENETDOWN
	}
	s := &sock{}
	s.kind.Store(uint32(k))
	s.nonblock.Store(flags&unix.SOCK_NONBLOCK != 0)
	if k != kindUDP {
		s.opts.Congestion, _ = stack.ControlNamed(h.cfg.Congestion)
	}
	h.fds.add(s)
	return s, nil
}

// any finds what a descriptor stands for. EBADF: nothing.
func (h *Host) any(fd int) (*sock, error) {
	s := h.fds.get(fd)
	if s == nil || s.closed.Load() {
		return nil, unix.EBADF
	}
	return s, nil
}

// sock finds a socket by its descriptor: EBADF if there is none, ENOTSOCK if it is an epoll instance.
func (h *Host) sock(fd int) (*sock, error) {
	s, err := h.any(fd)
	if err == nil && s.is(kindEpoll) {
		err = unix.ENOTSOCK
	}
	return s, err
}

// locked is sock for a control call: the socket's lock is held, and the socket is open.
func (h *Host) locked(fd int) (*sock, error) {
	s, err := h.sock(fd)
	if err != nil {
		return nil, err
	}
	return s, s.lock()
}

// lock takes the lock of a socket. EBADF: it was closed; the lock is not held then.
func (s *sock) lock() error {
	s.mu.Lock()
	if s.closed.Load() {
		s.mu.Unlock()
		return unix.EBADF
	}
	return nil
}

// SetNonblock turns O_NONBLOCK on or off (fcntl F_SETFL).
func (h *Host) SetNonblock(fd int, on bool) error {
	s, err := h.any(fd)
	if err == nil {
		s.nonblock.Store(on)
	}
	return err
}

// Nonblock says whether O_NONBLOCK is on (fcntl F_GETFL).
func (h *Host) Nonblock(fd int) (bool, error) {
	s, err := h.any(fd)
	return err == nil && s.nonblock.Load(), err
}

// Bind gives a socket its local address and port. Address 0.0.0.0 stands for the host's own, port 0 for a free one.
//
// Errors: EADDRNOTAVAIL (not an address of this host), EADDRINUSE, EINVAL (bound already), EAFNOSUPPORT (not IPv4).
func (h *Host) Bind(fd int, a netip.AddrPort) error {
	s, err := h.locked(fd)
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	ip, ok := addr4(a.Addr())
	switch {
	case !ok:
		return unix.EAFNOSUPPORT
	case ip != 0 && ip != h.st.Addr():
		return unix.EADDRNOTAVAIL
	case s.bound || s.is(kindConn) || s.is(kindListen):
		return unix.EINVAL
	}
	return h.bind(s, ip, a.Port())
}

// bind is Bind under s.mu.
func (h *Host) bind(s *sock, ip uint32, port uint16) error {
	if s.is(kindUDP) {
		u, e := h.st.OpenUDP(ip, port, s.opts)
		if e != 0 {
			return e
		}
		u.Stream = uint32(s.fd)
		port = u.Lport
		s.udp.Store(u)
		h.rewatch(s)
	} else {
		p, e := h.st.Bind(port, s.opts.ReuseAddr)
		if e != 0 {
			return e
		}
		port = p
		s.reserved, s.reuse = true, s.opts.ReuseAddr
	}
	s.bound, s.laddr, s.lport = true, ip, port
	return nil
}

// Listen makes a TCP socket listen, with at most backlog connections (and, as on Linux, one more) that are not yet accepted;
// less than 0, or more than 4096, stands for 4096. A second call changes the backlog. A socket that is not bound gets a free
// port.
//
// Errors: EOPNOTSUPP (UDP), EINVAL (connected), EADDRINUSE (another socket listens there).
func (h *Host) Listen(fd, backlog int) error {
	s, err := h.locked(fd)
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	switch kind(s.kind.Load()) {
	case kindUDP:
		return unix.EOPNOTSUPP
	case kindConn:
		return unix.EINVAL
	case kindListen:
		h.st.SetBacklog(s.lis.Load(), backlogOf(backlog))
		return nil
	case kindTCP, kindEpoll:
	}
	if !s.bound {
		if err := h.bind(s, 0, 0); err != nil {
			return err
		}
	}
	l, e := h.st.Listen(s.laddr, s.lport, backlogOf(backlog), s.opts, uint32(s.fd))
	if e != 0 {
		return e
	}
	s.shut[reading].Store(false)
	s.lis.Store(l)
	s.kind.Store(uint32(kindListen))
	h.rewatch(s)
	h.changed(s)
	return nil
}

// mostBacklog is Linux's net.core.somaxconn.
const mostBacklog = 4096

func backlogOf(n int) int {
	if n < 0 || n > mostBacklog {
		n = mostBacklog
	}
	return n + 1
}

// Accept takes the next connection of a listener, with its peer's address, and waits for one. The new socket takes over
// O_NONBLOCK and the options. Several goroutines may accept from one listener.
//
// Errors: EAGAIN, EINVAL (does not listen), EOPNOTSUPP (UDP).
func (h *Host) Accept(fd int) (int, netip.AddrPort, error) {
	s, err := h.sock(fd)
	if err != nil {
		return -1, netip.AddrPort{}, err
	}
	n, err := h.accept(s)
	if err != nil {
		return -1, netip.AddrPort{}, err
	}
	c := n.conn.Load()
	return n.fd, addrPort(c.Raddr, c.Rport), nil
}

func (h *Host) accept(s *sock) (*sock, error) {
	var a await
	for {
		if err := s.expired(reading); err != nil {
			return nil, err
		}
		c, err := h.tryAccept(s)
		switch {
		case err != nil:
			return nil, err
		case c != nil:
			return h.accepted(s, c), nil
		case s.nonblock.Load():
			if h.poll() {
				if c, err := h.tryAccept(s); c != nil && err == nil {
					return h.accepted(s, c), nil
				}
			}
			return nil, unix.EAGAIN
		}
		if err := a.wait(h, s, reading); err != nil {
			return nil, err
		}
	}
}

func (h *Host) tryAccept(s *sock) (*stack.Conn, error) {
	s.gates[reading].enter()
	defer s.gates[reading].leave()
	switch {
	case s.closed.Load():
		return nil, unix.EBADF
	case s.is(kindListen):
		if l := s.lis.Load(); l != nil {
			return h.st.Accept(l), nil
		}
	case s.is(kindUDP):
		return nil, unix.EOPNOTSUPP
	}
	return nil, unix.EINVAL
}

// accepted makes a socket for a connection of listener s.
func (h *Host) accepted(s *sock, c *stack.Conn) *sock {
	s.mu.Lock()
	n := &sock{opts: s.opts, linger: s.linger, keepAlive: s.keepAlive, keep: s.keep}
	s.mu.Unlock()
	for d := range n.timeout {
		n.timeout[d].Store(s.timeout[d].Load())
	}
	n.bound, n.laddr, n.lport = true, c.Laddr, c.Lport
	n.nonblock.Store(s.nonblock.Load())
	n.conn.Store(c)
	n.kind.Store(uint32(kindConn))
	h.fds.add(n)
	c.Stream = uint32(n.fd)
	c.SetLinger0(n.linger0())
	return n
}

func (s *sock) linger0() bool { return s.linger.Onoff != 0 && s.linger.Linger == 0 }

// Getsockname gives a socket's own address and port: zero for what it has not yet.
func (h *Host) Getsockname(fd int) (netip.AddrPort, error) {
	s, err := h.locked(fd)
	if err != nil {
		return netip.AddrPort{}, err
	}
	defer s.mu.Unlock()
	return h.localAddr(s), nil
}

// localAddr is Getsockname under s.mu.
func (h *Host) localAddr(s *sock) netip.AddrPort {
	switch {
	case s.is(kindConn):
		c := s.conn.Load()
		return addrPort(c.Laddr, c.Lport)
	case s.is(kindUDP) && s.laddr == 0:
		if u := s.udp.Load(); u != nil {
			if r, _ := u.Remote(); r != 0 {
				return addrPort(h.st.Addr(), s.lport)
			}
		}
	}
	return addrPort(s.laddr, s.lport)
}

// Getpeername gives the address and port of a socket's peer. ENOTCONN: it has none.
func (h *Host) Getpeername(fd int) (netip.AddrPort, error) {
	s, err := h.locked(fd)
	if err != nil {
		return netip.AddrPort{}, err
	}
	defer s.mu.Unlock()
	switch kind(s.kind.Load()) {
	case kindConn:
		c := s.conn.Load()
		if st, _, _ := c.Status(); st.Synchronized() && st != stack.TimeWait {
			return addrPort(c.Raddr, c.Rport), nil
		}
	case kindUDP:
		if u := s.udp.Load(); u != nil {
			if ip, port := u.Remote(); ip != 0 {
				return addrPort(ip, port), nil
			}
		}
	case kindTCP, kindListen, kindEpoll:
	}
	return netip.AddrPort{}, unix.ENOTCONN
}
