package api

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// TCPConn is a TCP connection as a net.Conn. It is an io.ReaderFrom and an io.WriterTo without a copy of the data.
type TCPConn struct {
	endpoint
	wmu sync.Mutex // a Write is one piece of the stream, whoever else writes
}

// UDPConn is a UDP socket as a net.PacketConn, and when it is connected as a net.Conn.
type UDPConn struct{ endpoint }

var (
	_ net.Conn       = (*TCPConn)(nil)
	_ io.ReaderFrom  = (*TCPConn)(nil)
	_ io.WriterTo    = (*TCPConn)(nil)
	_ net.PacketConn = (*UDPConn)(nil)
	_ net.Conn       = (*UDPConn)(nil)
)

// Read reads what is there, and waits until there is something; io.EOF: the peer has ended the stream.
func (c *TCPConn) Read(p []byte) (int, error) {
	n, err := c.h.read(c.s, p)
	switch {
	case err != nil:
		return n, c.fail("read", err)
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write writes all of p, unless there is an error.
func (c *TCPConn) Write(p []byte) (int, error) {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	for n := 0; ; {
		k, err := c.h.write(c.s, p[n:])
		n += k
		if err != nil {
			return n, c.fail("write", err)
		}
		if n == len(p) {
			return n, nil
		}
	}
}

// SetDeadline sets the time at which calls end with os.ErrDeadlineExceeded, those that wait included; zero: never.
func (e *endpoint) SetDeadline(t time.Time) error { return e.setDeadline(t, reading, writing) }

// SetReadDeadline is SetDeadline for reading, and for accepting.
func (e *endpoint) SetReadDeadline(t time.Time) error { return e.setDeadline(t, reading) }

// SetWriteDeadline is SetDeadline for writing.
func (e *endpoint) SetWriteDeadline(t time.Time) error { return e.setDeadline(t, writing) }

func (e *endpoint) setDeadline(t time.Time, sides ...side) error {
	if e.s.closed.Load() {
		return e.fail("set", unix.EBADF)
	}
	for _, d := range sides {
		e.s.setLimit(d, t)
	}
	return nil
}

// CloseWrite ends the stream to the peer, which reads io.EOF then. Reading goes on.
func (c *TCPConn) CloseWrite() error { return c.halfClose(unix.SHUT_WR) }

// CloseRead ends reading.
func (c *TCPConn) CloseRead() error { return c.halfClose(unix.SHUT_RD) }

func (c *TCPConn) halfClose(how int) error {
	if err := c.s.lock(); err != nil {
		return c.fail("close", err)
	}
	defer c.s.mu.Unlock()
	return c.fail("shutdown", c.h.shutdown(c.s, how))
}

// set sets an option by its number.
func (e *endpoint) set(level, name, value int) error {
	return e.fail("setsockopt", e.h.setOption(e.s, level, name, value))
}

// SetNoDelay is there because others have it: nothing is ever delayed.
func (c *TCPConn) SetNoDelay(bool) error { return nil }

// SetKeepAlive turns keep-alive probes on or off. Unlike package net's, they are off by default.
func (c *TCPConn) SetKeepAlive(on bool) error {
	return c.set(unix.SOL_SOCKET, unix.SO_KEEPALIVE, flag(on))
}

// SetKeepAlivePeriod sets after how much silence a probe is sent, and how long after that the next; in whole seconds.
func (c *TCPConn) SetKeepAlivePeriod(d time.Duration) error {
	seconds := int((d + time.Second - 1) / time.Second)
	return errors.Join(c.set(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, seconds), c.set(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, seconds))
}

// SetLinger sets SO_LINGER: below 0 off, 0: Close resets the connection, above: Close waits so many seconds at most.
func (c *TCPConn) SetLinger(seconds int) error {
	return c.fail("setsockopt", c.h.setLinger(c.s, seconds >= 0, max(seconds, 0)))
}

// ReadFrom takes one datagram and its source. What does not fit p is lost.
func (c *UDPConn) ReadFrom(p []byte) (int, net.Addr, error) {
	n, from, err := c.h.recvFrom(c.s, p)
	if err != nil {
		return n, nil, c.fail("read", err)
	}
	return n, netAddr(true, from), nil
}

// WriteTo sends one datagram. A socket that is connected sends to its peer alone, by Write.
func (c *UDPConn) WriteTo(p []byte, to net.Addr) (int, error) {
	if c.remote != nil {
		return 0, c.fail("write", net.ErrWriteToConnected)
	}
	a, err := fromNetAddr(to)
	if err != nil {
		return 0, c.fail("write", err)
	}
	if !a.IsValid() {
		return 0, c.fail("write", unix.EDESTADDRREQ)
	}
	n, err := c.h.sendTo(c.s, p, a)
	return n, c.fail("write", err)
}

// Read takes one datagram.
func (c *UDPConn) Read(p []byte) (int, error) {
	n, err := c.h.read(c.s, p)
	return n, c.fail("read", err)
}

// Write sends one datagram to the peer.
func (c *UDPConn) Write(p []byte) (int, error) {
	n, err := c.h.write(c.s, p)
	return n, c.fail("write", err)
}
