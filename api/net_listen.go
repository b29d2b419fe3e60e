package api

import (
	"context"
	"net"

	"golang.org/x/sys/unix"

	"ndpip/stack"
)

// TCPListener is a listener as a net.Listener.
type TCPListener struct{ endpoint }

var _ net.Listener = (*TCPListener)(nil)

// listenBacklog is how many connections may wait for Accept.
const listenBacklog = 4096

// Listen listens on a TCP port: ":80", "10.0.0.1:0" and the like; port 0 is a free one.
func (n *Net) Listen(network, address string) (net.Listener, error) {
	udp, err := transport(network)
	if err == nil && udp {
		err = net.UnknownNetworkError(network)
	}
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: err}
	}
	e, err := n.bound(unix.SOCK_STREAM, network, address)
	if err != nil {
		return nil, err
	}
	if err := n.h.Listen(e.s.fd, listenBacklog); err != nil {
		_ = n.h.close(e.s)
		return nil, e.fail("listen", err)
	}
	e.local = netAddr(false, n.h.socketName(e.s))
	return &TCPListener{*e}, nil
}

// ListenPacket makes a UDP socket on a port.
func (n *Net) ListenPacket(network, address string) (net.PacketConn, error) {
	udp, err := transport(network)
	if err == nil && !udp {
		err = net.UnknownNetworkError(network)
	}
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: err}
	}
	e, err := n.bound(unix.SOCK_DGRAM, network, address)
	if err != nil {
		return nil, err
	}
	return &UDPConn{*e}, nil
}

// bound makes a socket on an address.
func (n *Net) bound(typ int, network, address string) (*endpoint, error) {
	e := &endpoint{h: n.h, udp: typ == unix.SOCK_DGRAM}
	a, err := resolve(context.Background(), network, address)
	if err != nil {
		return nil, e.fail("listen", err)
	}
	e.local = netAddr(e.udp, a)
	if e.s, err = n.h.socket(unix.AF_INET, typ, 0); err != nil {
		return nil, e.fail("socket", err)
	}
	if err := n.h.Bind(e.s.fd, a); err != nil {
		_ = n.h.close(e.s)
		return nil, e.fail("bind", err)
	}
	e.local = netAddr(e.udp, n.h.socketName(e.s))
	return e, nil
}

// Accept waits for the next connection.
func (l *TCPListener) Accept() (net.Conn, error) {
	c, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	return c, nil
}

// AcceptTCP is Accept with the connection's own type.
func (l *TCPListener) AcceptTCP() (*TCPConn, error) {
	s, err := l.h.accept(l.s)
	if err != nil {
		return nil, l.fail("accept", err)
	}
	return newTCPConn(l.h, s), nil
}

// Addr is the address that it listens on.
func (l *TCPListener) Addr() net.Addr { return l.local }

// newTCPConn makes a net.Conn of a socket that is connected. The addresses are the connection's for its whole life.
func newTCPConn(h *Host, s *sock) *TCPConn {
	c := &TCPConn{endpoint: endpoint{h: h, s: s}}
	s.mu.Lock()
	defer s.mu.Unlock()
	if conn := s.conn.Load(); conn != nil {
		c.local, c.remote = connAddrs(conn)
	}
	return c
}

func connAddrs(c *stack.Conn) (local, remote net.Addr) {
	return netAddr(false, addrPort(c.Laddr, c.Lport)), netAddr(false, addrPort(c.Raddr, c.Rport))
}

// Conn makes a net.Conn of a connected TCP socket, or of a UDP socket, that the calls by descriptor have made. The
// descriptor stays valid; closing either closes both. Errors: EBADF, ENOTSOCK, ENOTCONN.
func (n *Net) Conn(fd int) (net.Conn, error) {
	s, err := n.h.locked(fd)
	if err != nil {
		return nil, err
	}
	if s.is(kindUDP) {
		e := endpoint{h: n.h, s: s, udp: true, local: netAddr(true, n.h.localAddr(s))}
		if u := s.udp.Load(); u != nil {
			if ip, port := u.Remote(); ip != 0 {
				e.remote = netAddr(true, addrPort(ip, port))
			}
		}
		s.mu.Unlock()
		return &UDPConn{e}, nil
	}
	connected := s.is(kindConn)
	s.mu.Unlock()
	if !connected {
		return nil, unix.ENOTCONN
	}
	s.nonblock.Store(false)
	return newTCPConn(n.h, s), nil
}
