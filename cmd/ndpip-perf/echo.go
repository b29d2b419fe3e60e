package main

import (
	"golang.org/x/sys/unix"
)

// With --echo the receiver sends back what it gets, for 'ndpip-perf ping' and 'ndpip-perf conn'.

// echo sends b back on a stream. What its peer's window does not take is kept, and until that is gone nothing is read.
func (r *receiver) echo(s *stream, b []byte) error {
	if r.o.udp {
		if _, err := r.h.SendTo(s.fd, b, s.peer); err != nil && !again(err) && !passing(err) {
			return err
		}
		return nil
	}
	n := 0
	if len(s.back) == 0 {
		var err error
		if n, err = r.h.Write(s.fd, b); err != nil && !again(err) {
			return err
		}
		n = max(n, 0)
	}
	r.count.Back.Add(uint64(n))
	if n == len(b) {
		return nil
	}
	s.back = append(s.back, b[n:]...)
	return r.watch(unix.EPOLL_CTL_MOD, s.fd, unix.EPOLLOUT, s.key)
}

// echoRest goes on with what was kept.
func (r *receiver) echoRest(s *stream) error {
	n, err := r.h.Write(s.fd, s.back)
	if err != nil && !again(err) {
		return err
	}
	n = max(n, 0)
	r.count.Back.Add(uint64(n))
	if s.back = s.back[:copy(s.back, s.back[n:])]; len(s.back) > 0 {
		return nil
	}
	return r.watch(unix.EPOLL_CTL_MOD, s.fd, unix.EPOLLIN, s.key)
}
