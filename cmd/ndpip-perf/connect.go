package main

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// backoff is the pause before a connection that failed is tried again.
const backoff = 200 * time.Millisecond

// connect opens all connections and waits until they are up. A receiver that is not there yet (no answer to ARP or
// SYN, or a refusal) is tried again until --connect-timeout. It returns nil early when the program is to end.
func (s *sender) connect() error {
	deadline := time.Now().Add(s.o.connectTimeout)
	for i := range s.conns {
		if err := s.dial(i); err != nil && !passing(err) {
			return s.unreachable(err)
		} else if err != nil {
			s.retry(i)
		}
	}
	last := error(unix.ETIMEDOUT) // why the last attempt failed
	for s.open < len(s.conns) {
		if s.stop.Asked() {
			return nil
		}
		ready, err := s.wait()
		if err != nil {
			return err
		}
		for i := range ready {
			key := int(ready[i].Data)
			if err := s.connected(key); err != nil {
				if !passing(err) {
					return s.unreachable(err)
				}
				last = err
				s.retry(key)
			}
		}
		now := time.Now()
		if now.After(deadline) {
			return fmt.Errorf("%d of %d connections to %s are up after %gs, the others: %w; start 'ndpip-perf recv' there, or give a longer --connect-timeout",
				s.open, len(s.conns), s.peer, s.o.connectTimeout.Seconds(), last)
		}
		if err := s.redial(now); err != nil {
			return s.unreachable(err)
		}
	}
	return nil
}

// passing says whether err may go away when the receiver comes up.
func passing(err error) bool {
	switch err {
	case unix.ECONNREFUSED, unix.ETIMEDOUT, unix.EHOSTUNREACH, unix.ENETUNREACH, unix.EHOSTDOWN, unix.ENETDOWN,
		unix.ECONNRESET, unix.ECONNABORTED:
		return true
	}
	return again(err)
}

func (s *sender) unreachable(err error) error {
	return fmt.Errorf("connect to %s: %w", s.peer, err)
}

// dial makes the socket of one connection and begins to connect it.
func (s *sender) dial(key int) error {
	kind := unix.SOCK_STREAM
	if s.o.udp {
		kind = unix.SOCK_DGRAM
	}
	fd, err := s.o.Socket(s.h, kind)
	if err != nil {
		return err
	}
	s.conns[key].fd = fd
	if s.o.bindPort != 0 {
		own := netip.AddrPortFrom(s.h.Addr(), uint16(s.o.bindPort+key))
		if err := s.h.Bind(fd, own); err != nil {
			return fmt.Errorf("bind to %s: %w", own, err)
		}
	}
	err = s.h.Connect(fd, s.peer)
	if err != nil && err != unix.EINPROGRESS {
		return err
	}
	// A UDP socket, or a connection that is up already, is ready at once.
	return s.watch(unix.EPOLL_CTL_ADD, fd, unix.EPOLLOUT, key)
}

// connected is called when the event queue reports an open socket: it is connected, or has failed.
func (s *sender) connected(key int) error {
	c := &s.conns[key]
	if c.fd < 0 || c.up {
		return nil
	}
	code, err := s.h.GetSockOptInt(c.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = unix.Errno(code)
	}
	if err != nil {
		return err
	}
	if _, err := s.h.Getpeername(c.fd); errors.Is(err, unix.ENOTCONN) {
		return nil // the event was not about the connection
	}
	c.up = true
	s.open++
	s.count.Connections.Add(1)
	// No event is wanted until all are up.
	return s.watch(unix.EPOLL_CTL_MOD, c.fd, 0, key)
}

// retry closes a connection that failed and sets the time of the next attempt.
func (s *sender) retry(key int) {
	c := &s.conns[key]
	if c.fd >= 0 {
		s.h.Close(c.fd)
	}
	c.fd = -1
	c.retry = time.Now().Add(backoff)
}

// redial dials again what is due.
func (s *sender) redial(now time.Time) error {
	for i := range s.conns {
		c := &s.conns[i]
		if c.fd >= 0 || now.Before(c.retry) {
			continue
		}
		if err := s.dial(i); err != nil {
			if !passing(err) {
				return err
			}
			s.retry(i)
		}
	}
	return nil
}
