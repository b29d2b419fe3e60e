package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// datagrams sends bursts of datagrams on all sockets in turn until the program is to end. Each datagram is the
// beginning of the pattern. A receiver that is not there (its host says so, or does not answer ARP) is tried again
// until --connect-timeout.
func (s *sender) datagrams() error {
	for i := range s.conns {
		if err := s.watch(unix.EPOLL_CTL_MOD, s.conns[i].fd, unix.EPOLLOUT, i); err != nil {
			return err
		}
	}
	var failing time.Time // when the present row of failures began
	for !s.stop.Asked() {
		ready, err := s.wait()
		if err != nil {
			return err
		}
		for i := range ready {
			err := s.burst(&s.conns[ready[i].Data])
			switch {
			case err == nil:
				failing = time.Time{}
			case again(err):
			case !passing(err):
				return fmt.Errorf("send to %s: %w", s.peer, err)
			case failing.IsZero():
				failing = time.Now()
				s.pause(backoff)
			case time.Since(failing) > s.o.connectTimeout:
				return fmt.Errorf("send to %s: %w for %gs; start 'ndpip-perf recv --udp' there, or give a longer --connect-timeout",
					s.peer, err, s.o.connectTimeout.Seconds())
			default:
				s.pause(backoff)
			}
		}
	}
	return nil
}

// burst sends the datagrams of one turn on a socket. The error is that of the first, nil when at least one was sent.
func (s *sender) burst(c *conn) error {
	if s.o.zeroCopy {
		return s.burstBufs(c)
	}
	b := s.pattern.at(0, s.mss)
	for i := range s.o.Burst {
		n, err := s.h.Write(c.fd, b)
		if err != nil {
			if i > 0 && again(err) {
				return nil
			}
			return err
		}
		s.took(c, b[:n])
	}
	return nil
}

// burstBufs is burst with the zero-copy calls.
func (s *sender) burstBufs(c *conn) error {
	b := s.pattern.at(0, s.mss)
	if c.nheld == 0 {
		n, err := s.h.Alloc(c.fd, c.held)
		if n <= 0 {
			return err
		}
		c.nheld = n
		for i := range c.held[:n] {
			buf := &c.held[i]
			if err := buf.Resize(len(b)); err != nil {
				return fmt.Errorf("a datagram of %d bytes: %w", len(b), err)
			}
			copy(buf.Bytes(), b)
		}
	}
	n, err := s.h.Send(c.fd, c.held[:c.nheld])
	if n <= 0 {
		return err
	}
	copy(c.held, c.held[n:c.nheld])
	c.nheld -= n
	for range n {
		s.took(c, b)
	}
	return nil
}
