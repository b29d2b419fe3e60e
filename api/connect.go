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
	began, err := h.beginConnect(s, a)
	if err != nil || s.is(kindUDP) {
		return err
	}
	if s.nonblock.Load() {
		if began {
			return unix.EINPROGRESS
		}
		return unix.EALREADY
	}
	var w await
	for {
		if err := s.expired(writing); err != nil {
			return err
		}
		if up, err := h.connectEnd(s); up || err != nil {
			return err
		}
		if err := w.wait(h, s, writing); err == unix.EAGAIN {
			return unix.EINPROGRESS
		} else if err != nil {
			return err
		}
	}
}

// beginConnect begins to connect, or finds it begun; else it returns what connect returns.
func (h *Host) beginConnect(s *sock, a netip.AddrPort) (began bool, err error) {
	ip, ok := addr4(a.Addr())
	if !ok {
		return false, unix.EAFNOSUPPORT
	}
	if err := s.lock(); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	switch kind(s.kind.Load()) {
	case kindUDP:
		return false, h.connectUDP(s, ip, a.Port())
	case kindListen:
		return false, unix.EISCONN
	case kindConn:
		return false, h.connectAgain(s)
	case kindTCP, kindEpoll:
	}
	switch {
	case ip == 0, ip>>28 >= 14:
		return false, unix.ENETUNREACH // 0.0.0.0, multicast, broadcast
	case a.Port() == 0:
		return false, unix.ECONNREFUSED
	}
	c, e := h.st.Connect(s.lport, ip, a.Port(), s.opts, uint32(s.fd))
	if e != 0 {
		return false, e
	}
	c.SetLinger0(s.linger0())
	s.errGiven.Store(false)
	s.shut[reading].Store(false)
	s.conn.Store(c)
	s.kind.Store(uint32(kindConn))
	h.rewatch(s)
	h.changed(s)
	return true, nil
}

// connectAgain is connect on a socket that is a connection: nil if it is still being opened. Under s.mu.
func (h *Host) connectAgain(s *sock) error {
	c := s.conn.Load()
	switch st, _, _ := c.Status(); st {
	case stack.SynSent, stack.SynReceived:
		return nil
	case stack.Closed:
		if c.WasUp() {
			return unix.EISCONN
		}
		err := error(unix.ECONNABORTED)
		if e := s.takeError(); e != 0 {
			err = e
		}
		h.disconnect(s)
		return err
	case stack.Established, stack.FinWait1, stack.FinWait2, stack.CloseWait, stack.Closing, stack.LastAck, stack.TimeWait:
	}
	return unix.EISCONN
}

// connectEnd says whether a connection has come up, or what has become of the attempt.
func (h *Host) connectEnd(s *sock) (up bool, err error) {
	if err := s.lock(); err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	if !s.is(kindConn) {
		return false, unix.ECONNABORTED // shut down meanwhile
	}
	switch err := h.connectAgain(s); err {
	case nil:
		return false, nil
	case unix.EISCONN:
		return true, nil
	default:
		return false, err
	}
}

// disconnect takes a dead connection off its socket, which can be connected again then. Under s.mu.
func (h *Host) disconnect(s *sock) {
	c := s.conn.Load()
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

// shutdown is Shutdown under s.mu.
func (h *Host) shutdown(s *sock, how int) error {
	if how < unix.SHUT_RD || how > unix.SHUT_RDWR {
		return unix.EINVAL
	}
	rd, wr := how != unix.SHUT_WR, how != unix.SHUT_RD
	switch kind(s.kind.Load()) {
	case kindTCP:
		return unix.ENOTCONN
	case kindUDP:
		if u := s.udp.Load(); u == nil {
			return unix.ENOTCONN
		} else if ip, _ := u.Remote(); ip == 0 {
			return unix.ENOTCONN
		}
		if wr {
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
		c := s.conn.Load()
		st, _, _ := c.Status()
		switch {
		case st == stack.SynSent:
			h.disconnect(s)
			return nil
		case st == stack.Closed || st == stack.TimeWait:
			return unix.ENOTCONN
		case wr:
			s.gates[writing].enter() // a write that is under way must not come behind the FIN
			if !c.FinQueued() {
				h.st.Shutdown(c)
			}
			s.gates[writing].leave()
		}
	case kindEpoll:
	}
	if rd {
		s.shut[reading].Store(true)
	}
	h.poll()
	h.changed(s)
	return nil
}
