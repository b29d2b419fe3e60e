package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// datagrams reads from one UDP socket until the program is to end. Each datagram that send makes is the beginning of
// the pattern.
func (r *receiver) datagrams() error {
	fd, err := r.socket(unix.SOCK_DGRAM)
	if err != nil {
		return err
	}
	s := &stream{fd: fd}
	if err := r.remember(s); err != nil {
		return err
	}
	r.ready("waiting for datagrams")
	for !r.stop.Asked() {
		ready, err := r.wait()
		if err != nil {
			return err
		}
		if len(ready) == 0 {
			continue
		}
		if err := r.burst(s); err != nil && !again(err) {
			return err
		}
		r.last = time.Now()
		if r.first.IsZero() {
			r.first = r.last
		}
	}
	return nil
}

// burst reads the datagrams of one turn.
func (r *receiver) burst(s *stream) error {
	if r.o.zeroCopy {
		_, err := r.readBufs(s)
		return err
	}
	for range r.o.Burst {
		n, peer, err := r.h.RecvFrom(s.fd, r.buf)
		if err != nil {
			return err
		}
		s.peer, s.bytes = peer, 0
		if err := r.take(s, r.buf[:n]); err != nil {
			return err
		}
	}
	return nil
}
