package api

import (
	"net/netip"

	"golang.org/x/sys/unix"

	"ndpip/stack"
)

// Connect opens a TCP connection, or sets a UDP socket's peer. A blocking socket waits until the connection is open;
// a non-blocking one gets EINPROGRESS at once, becomes writable when it is open, and SO_ERROR tells how it went. After
// an attempt that failed the socket may be connected again. A UDP socket's peer is taken away with the zero AddrPort.
//
// Errors: EINPROGRESS (also when SO_SNDTIMEO is over), EALREADY (under way), EISCONN, ECONNREFUSED, ETIMEDOUT,
// EHOSTUNREACH, ENETUNREACH, EADDRNOTAVAIL (no port is free), EADDRINUSE, ECONNABORTED (the attempt has failed, and
// SO_ERROR has told why), EAFNOSUPPORT (not IPv4).
func (h *Host) Connect(fd int, a netip.AddrPort) error {
	s, err := h.sock(fd)
	if err != nil {
		return err
	}
	return h.connect(s, a)
}

func (h *Host) connect(s *sock, a netip.AddrPort) error {
	done, err := h.beginConnect(s, a)
	if done || err != nil {
		return err
	}
	var w await
	for {
		if err := s.expired(writing); err != nil {
			return err
		}
		if done, err := h.connected(s); done || err != nil {
			return err
		}
		if err := w.wait(h, s, writing); err == unix.EAGAIN {
			return unix.EINPROGRESS
		} else if err != nil {
			return err
		}
	}
}

// beginConnect begins to connect, or finds it begun. done says that connect is through; else the connection is under
// way and the socket one that blocks.
func (h *Host) beginConnect(s *sock, a netip.AddrPort) (done bool, err error) {
	if err := s.lock(); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	ip, ok := addr4(a.Addr())
	switch kind(s.kind.Load()) {
	case kindUDP:
		if !ok {
			return true, unix.EAFNOSUPPORT
		}
		return true, h.connectUDP(s, ip, a.Port())
	case kindListen:
		return true, unix.EISCONN
	case kindConn:
		done, err = h.connectAgain(s)
		if !done && err == nil && s.nonblock.Load() {
			err = unix.EALREADY
		}
		return done, err
	case kindTCP, kindEpoll:
	}
	switch {
	case !ok:
		return true, unix.EAFNOSUPPORT
	case ip == 0, ip>>28 >= 14:
		return true, unix.ENETUNREACH // 0.0.0.0, multicast, broadcast
	case a.Port() == 0:
		return true, unix.ECONNREFUSED
	}
	c, e := h.st.Connect(s.lport, ip, a.Port(), s.opts, uint32(s.fd))
	if e != 0 {
		return true, e
	}
	c.SetLinger0(s.linger0())
	s.connecting = true
	s.err.Store(0)
	s.errGiven.Store(false)
	s.shut[reading].Store(false)
	s.conn.Store(c)
	s.kind.Store(uint32(kindConn))
	h.rewatch(s)
	h.changed(s)
	if s.nonblock.Load() {
		err = unix.EINPROGRESS
	}
	return false, err
}

// connectAgain is connect on a socket that is a connection, by the book of Linux: the first call after it has come up,
// or has failed, says so; a call that comes later gets EISCONN, or begins anew. Under s.mu.
func (h *Host) connectAgain(s *sock) (done bool, err error) {
	if !s.connecting {
		return true, unix.EISCONN
	}
	switch st, _, _ := s.conn.Load().Status(); st {
	case stack.SynSent, stack.SynReceived:
		return false, nil
	case stack.Closed, stack.TimeWait:
		err = unix.ECONNABORTED
		if e := s.takeError(); e != 0 {
			err = e
		}
		h.disconnect(s)
		return true, err
	case stack.Established, stack.CloseWait:
	case stack.FinWait1, stack.FinWait2, stack.Closing, stack.LastAck:
		err = unix.EISCONN
	}
	s.connecting = false
	return true, err
}

// connected is connectAgain for a call that waits.
func (h *Host) connected(s *sock) (done bool, err error) {
	if err := s.lock(); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	if !s.is(kindConn) {
		return true, unix.ECONNABORTED // it was given up by shutdown
	}
	if !s.connecting {
		return true, nil // another call of connect has told
	}
	return h.connectAgain(s)
}

// disconnect takes a dead connection off its socket, which can be connected again then. Under s.mu.
func (h *Host) disconnect(s *sock) {
	c := s.conn.Load()
	s.connecting = false
	s.kind.Store(uint32(kindTCP))
	s.conn.Store(nil)
	h.detach(s)
	h.st.Close(c)
	if !s.reserved {
		s.laddr, s.lport, s.bound = 0, 0, false
	}
	h.changed(s)
}

// detach waits until nobody touches what was just taken off a socket; see sock. Under s.mu, and under no other lock.
func (h *Host) detach(s *sock) {
	for d := range s.gates {
		s.gates[d].enter()
		s.gates[d].leave()
	}
	h.news.Lock()
	h.news.Unlock() //lint:ignore SA2001 it is the passing that counts
	if items := s.items.Load(); items != nil {
		for _, it := range *items {
			it.ep.mu.Lock()
			it.ep.mu.Unlock() //lint:ignore SA2001 as above
		}
	}
	s.obs.Lock()
	s.obs.Unlock() //lint:ignore SA2001 as above
}

func (h *Host) connectUDP(s *sock, ip uint32, port uint16) error {
	if ip == 0 && port == 0 {
		if u := s.udp.Load(); u != nil {
			h.st.ConnectUDP(u, 0, 0)
		}
		return nil
	}
	if !h.st.Reaches(ip) {
		return unix.ENETUNREACH
	}
	if s.udp.Load() == nil {
		if err := h.bind(s, 0, 0); err != nil {
			return err
		}
	}
	h.st.ConnectUDP(s.udp.Load(), ip, port)
	return nil
}

// Shutdown ends the stream to the peer (SHUT_WR), stops reading (SHUT_RD), or both (SHUT_RDWR). What was received
// before SHUT_RD can still be read; then there is the end of the stream. A listener stops listening with SHUT_RD, and an
// attempt to connect is given up.
//
// Errors: ENOTCONN, EINVAL (how).
func (h *Host) Shutdown(fd, how int) error {
	s, err := h.locked(fd)
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	return h.shutdown(s, how)
}

// shutdown is Shutdown under s.mu. Whatever comes of it, who waits for the socket looks at it anew, as on Linux.
func (h *Host) shutdown(s *sock, how int) error {
	if how < unix.SHUT_RD || how > unix.SHUT_RDWR {
		return unix.EINVAL
	}
	rd, wr := how != unix.SHUT_WR, how != unix.SHUT_RD
	var err error
	switch kind(s.kind.Load()) {
	case kindTCP:
		err = unix.ENOTCONN
	case kindUDP:
		if u := s.udp.Load(); u == nil {
			err = unix.ENOTCONN
		} else if ip, _ := u.Remote(); ip == 0 {
			err = unix.ENOTCONN
		} else if wr {
			s.shut[writing].Store(true)
		}
	case kindListen:
		if !rd {
			return nil
		}
		l := s.lis.Load()
		s.kind.Store(uint32(kindTCP))
		s.lis.Store(nil)
		h.detach(s)
		h.st.Unlisten(l)
		h.changed(s)
		return nil
	case kindConn:
		switch st, _, _ := s.conn.Load().Status(); {
		case st == stack.SynSent:
			s.err.Store(uint32(unix.ECONNRESET))
			h.disconnect(s)
			return nil
		case st == stack.Closed || st == stack.TimeWait:
			err = unix.ENOTCONN
		default:
			h.shutStream(s, rd, wr)
		}
	case kindEpoll:
	}
	if rd {
		s.shut[reading].Store(true)
	}
	h.poll()
	h.changed(s)
	return err
}

// shutStream ends the directions of a connection.
func (h *Host) shutStream(s *sock, rd, wr bool) {
	c := s.conn.Load()
	s.connecting = false // Linux has it like this, too
	if rd {
		c.ShutRead()
	}
	if wr {
		s.gates[writing].enter() // a write that is under way must not come behind the FIN
		if !c.FinQueued() {
			h.st.Shutdown(c)
		}
		s.gates[writing].leave()
	}
}
