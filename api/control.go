package api

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"ndpip/stack"
	"ndpip/tcp"
)

// SOCK_NDPIP is the socket type of programs written for the original; the protocol says which it is.
const SOCK_NDPIP = 42

// Socket makes a socket: AF_INET; SOCK_STREAM, SOCK_DGRAM or SOCK_NDPIP, with SOCK_NONBLOCK or without; IPPROTO_TCP,
// IPPROTO_UDP, or 0 for the type's own.
func (h *Host) Socket(domain, typ, protocol int) (int, error) {
	if domain != unix.AF_INET {
		return -1, unix.EAFNOSUPPORT
	}
	nonblock := typ&unix.SOCK_NONBLOCK != 0
	k := kindTCP
	switch typ &^ (unix.SOCK_NONBLOCK | unix.SOCK_CLOEXEC) {
	case unix.SOCK_STREAM:
		if protocol != 0 && protocol != unix.IPPROTO_TCP {
			return -1, unix.EPROTONOSUPPORT
		}
	case unix.SOCK_DGRAM:
		if protocol != 0 && protocol != unix.IPPROTO_UDP {
			return -1, unix.EPROTONOSUPPORT
		}
		k = kindUDP
	case SOCK_NDPIP:
		switch protocol {
		case unix.IPPROTO_TCP:
		case unix.IPPROTO_UDP:
			k = kindUDP
		default:
			return -1, unix.EPROTONOSUPPORT
		}
	default:
		return -1, unix.EINVAL
	}
	if h.stopped.Load() {
		return -1, unix.ENETDOWN
	}
	s := &sock{}
	s.kind.Store(uint32(k))
	s.nonblock.Store(nonblock)
	h.fds.add(s)
	return s.fd, nil
}

// sock finds a socket by its descriptor: EBADF if there is none, ENOTSOCK if it is an epoll instance.
func (h *Host) sock(fd int) (*sock, error) {
	s := h.fds.get(fd)
	if s == nil {
		return nil, unix.EBADF
	}
	if s.is(kindEpoll) {
		return nil, unix.ENOTSOCK
	}
	return s, nil
}

// SetNonblock turns O_NONBLOCK on or off.
func (h *Host) SetNonblock(fd int, on bool) error {
	s, err := h.sock(fd)
	if err == nil {
		s.nonblock.Store(on)
	}
	return err
}

// Bind gives a socket its local address and port. Address 0.0.0.0 stands for the host's own, port 0 for a free one.
func (h *Host) Bind(fd int, a netip.AddrPort) error {
	s, err := h.sock(fd)
	if err != nil {
		return err
	}
	ip, ok := addr4(a.Addr())
	if !ok {
		return unix.EAFNOSUPPORT
	}
	if ip != 0 && ip != h.st.Addr() {
		return unix.EADDRNOTAVAIL
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bound || s.is(kindConn) || s.is(kindListen) {
		return unix.EINVAL
	}
	return h.bind(s, ip, a.Port())
}

func (h *Host) bind(s *sock, ip uint32, port uint16) error {
	if s.is(kindUDP) {
		u, e := h.st.OpenUDP(ip, port, s.opts)
		if e != 0 {
			return e
		}
		u.Stream = uint32(s.fd)
		s.udp, port = u, u.Lport
	} else {
		p, e := h.st.Bind(port, s.opts.ReuseAddr)
		if e != 0 {
			return e
		}
		port = p
		s.reserved, s.reuse = true, s.opts.ReuseAddr
	}
	s.bound, s.laddr, s.lport = true, ip, port
	h.rewatch(s)
	return nil
}

// Listen makes a TCP socket listen, with at most backlog connections that are not yet accepted. A second call changes
// the backlog.
func (h *Host) Listen(fd, backlog int) error {
	s, err := h.sock(fd)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch kind(s.kind.Load()) {
	case kindUDP:
		return unix.EOPNOTSUPP
	case kindConn:
		return unix.EINVAL
	case kindListen:
		h.st.SetBacklog(s.lis, backlog)
		return nil
	case kindTCP, kindEpoll:
	}
	if !s.bound {
		if err := h.bind(s, 0, 0); err != nil {
			return err
		}
	}
	l, e := h.st.Listen(s.laddr, s.lport, backlog, s.opts, uint32(s.fd))
	if e != 0 {
		return e
	}
	s.lis = l
	s.kind.Store(uint32(kindListen))
	h.rewatch(s)
	return nil
}

// Connect opens a TCP connection, or sets a UDP socket's peer. A blocking socket waits until the connection is open;
// a non-blocking one gets EINPROGRESS at once, becomes writable when it is open, and SO_ERROR tells how it went.
func (h *Host) Connect(fd int, a netip.AddrPort) error {
	s, err := h.sock(fd)
	if err != nil {
		return err
	}
	ip, ok := addr4(a.Addr())
	if !ok {
		return unix.EAFNOSUPPORT
	}
	s.mu.Lock()
	switch kind(s.kind.Load()) {
	case kindUDP:
		defer s.mu.Unlock()
		return h.connectUDP(s, ip, a.Port())
	case kindListen:
		s.mu.Unlock()
		return unix.EISCONN
	case kindConn:
		s.mu.Unlock()
		return h.connectAgain(s)
	case kindTCP, kindEpoll:
	}
	if a.Port() == 0 || ip == 0 {
		s.mu.Unlock()
		return unix.ECONNREFUSED
	}
	c, e := h.st.Connect(s.lport, ip, a.Port(), s.opts, uint32(s.fd))
	if e != 0 {
		s.mu.Unlock()
		return e
	}
	s.conn = c
	c.SetLinger0(s.linger0())
	s.kind.Store(uint32(kindConn))
	h.rewatch(s)
	s.mu.Unlock()
	if s.nonblock.Load() {
		return unix.EINPROGRESS
	}
	return h.awaitOpen(s)
}

func (s *sock) linger0() bool { return s.linger.Onoff != 0 && s.linger.Linger == 0 }

// awaitOpen waits for the end of the handshake.
func (h *Host) awaitOpen(s *sock) error {
	err := h.wait(s, tcp.PendOpen, func() bool {
		st, _, _ := s.conn.Status()
		return st != tcp.SynSent && st != tcp.SynReceived
	})
	if err != nil {
		return err
	}
	return h.outcome(s)
}

// outcome is the connection's error, reported once.
func (h *Host) outcome(s *sock) error {
	if e := stack.Outcome(s.conn); e != 0 && !s.errGiven.Swap(true) {
		return e
	}
	return nil
}

// connectAgain is connect on a socket that has been connected before.
func (h *Host) connectAgain(s *sock) error {
	st, _, _ := s.conn.Status()
	switch st {
	case tcp.SynSent, tcp.SynReceived:
		if s.nonblock.Load() {
			return unix.EALREADY
		}
		return h.awaitOpen(s)
	case tcp.Closed:
		if err := h.outcome(s); err != nil {
			return err
		}
		return unix.ECONNABORTED
	case tcp.Established, tcp.FinWait1, tcp.FinWait2, tcp.CloseWait, tcp.Closing, tcp.LastAck, tcp.TimeWait:
	}
	return unix.EISCONN
}

func (h *Host) connectUDP(s *sock, ip uint32, port uint16) error {
	if s.udp == nil {
		if err := h.bind(s, 0, 0); err != nil {
			return err
		}
	}
	if ip == 0 && port == 0 {
		h.st.ConnectUDP(s.udp, 0, 0)
		return nil
	}
	if !h.st.Reaches(ip) {
		return unix.ENETUNREACH
	}
	h.st.ConnectUDP(s.udp, ip, port)
	return nil
}

// Accept takes the next connection of a listener, with its peer's address. The new socket takes over O_NONBLOCK.
func (h *Host) Accept(fd int) (int, netip.AddrPort, error) {
	s, err := h.sock(fd)
	if err != nil {
		return -1, netip.AddrPort{}, err
	}
	if s.is(kindUDP) {
		return -1, netip.AddrPort{}, unix.EOPNOTSUPP
	}
	if !s.is(kindListen) {
		return -1, netip.AddrPort{}, unix.EINVAL
	}
	var c *tcp.Conn
	for {
		s.mu.Lock() // several goroutines may accept
		c = h.st.Accept(s.lis)
		s.mu.Unlock()
		if c != nil {
			break
		}
		if s.nonblock.Load() {
			h.poll()
			return -1, netip.AddrPort{}, unix.EAGAIN
		}
		if err := h.wait(s, tcp.PendRead, s.lis.Acceptable); err != nil {
			return -1, netip.AddrPort{}, err
		}
	}
	n := &sock{conn: c, opts: s.opts, linger: s.linger, noDelay: s.noDelay, bound: true, laddr: c.Laddr, lport: c.Lport}
	n.nonblock.Store(s.nonblock.Load())
	n.kind.Store(uint32(kindConn))
	h.fds.add(n)
	c.Stream = uint32(n.fd)
	c.SetLinger0(n.linger0())
	return n.fd, addrPort(c.Raddr, c.Rport), nil
}

// Shutdown ends the stream to the peer (SHUT_WR), stops reading (SHUT_RD), or both.
func (h *Host) Shutdown(fd, how int) error {
	s, err := h.sock(fd)
	if err != nil {
		return err
	}
	if how < unix.SHUT_RD || how > unix.SHUT_RDWR {
		return unix.EINVAL
	}
	if !s.is(kindConn) {
		return unix.ENOTCONN
	}
	st, _, _ := s.conn.Status()
	if !st.Synchronized() {
		return unix.ENOTCONN
	}
	if how != unix.SHUT_WR {
		s.rdShut.Store(true)
	}
	if how != unix.SHUT_RD && !s.conn.FinQueued() {
		h.st.Shutdown(s.conn)
	}
	h.poll()
	h.notify(s)
	return nil
}

// Close gives a descriptor back. It does not wait: data sent before are delivered, and the connection ends in order,
// or with a reset when data were left unread.
func (h *Host) Close(fd int) error {
	s := h.fds.get(fd)
	if s == nil || !h.fds.remove(s) {
		return unix.EBADF
	}
	s.closed.Store(true)
	h.forget(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch kind(s.kind.Load()) {
	case kindTCP:
	case kindConn:
		h.st.Close(s.conn)
	case kindListen:
		h.st.Unlisten(s.lis)
	case kindUDP:
		if s.udp != nil {
			h.st.CloseUDP(s.udp)
		}
	case kindEpoll:
		s.ep.close()
	}
	if s.reserved {
		h.st.Unbind(s.lport, s.reuse)
	}
	h.poll()
	return nil
}

// Getsockname gives a socket's own address and port.
func (h *Host) Getsockname(fd int) (netip.AddrPort, error) {
	s, err := h.sock(fd)
	if err != nil {
		return netip.AddrPort{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.is(kindConn):
		return addrPort(s.conn.Laddr, s.conn.Lport), nil
	case s.udp != nil:
		if r, _ := s.udp.Remote(); r != 0 && s.laddr == 0 {
			return addrPort(h.st.Addr(), s.lport), nil
		}
	}
	return addrPort(s.laddr, s.lport), nil
}

// Getpeername gives the address and port of a socket's peer. ENOTCONN: it has none.
func (h *Host) Getpeername(fd int) (netip.AddrPort, error) {
	s, err := h.sock(fd)
	if err != nil {
		return netip.AddrPort{}, err
	}
	switch {
	case s.is(kindConn):
		if st, _, _ := s.conn.Status(); st.Synchronized() {
			return addrPort(s.conn.Raddr, s.conn.Rport), nil
		}
	case s.udp != nil:
		if ip, port := s.udp.Remote(); ip != 0 {
			return addrPort(ip, port), nil
		}
	}
	return netip.AddrPort{}, unix.ENOTCONN
}
