package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// backlog is how many connections may wait to be accepted; the kernel takes net.core.somaxconn if that is less.
const backlog = 8192

// stream is one connection.
type stream struct {
	bytes uint64
	back  []byte // --echo: what the peer's window has not taken yet
}

// receive takes connections and reads what they bring, or datagrams, until the program is to end.
func (j *job) receive() (verb string, span time.Duration, err error) {
	verb = "received"
	l, err := j.socket()
	if err != nil {
		return verb, 0, err
	}
	if err := unix.Bind(l, &unix.SockaddrInet4{Port: j.o.bindPort, Addr: j.o.bind.As4()}); err != nil {
		unix.Close(l)
		return verb, 0, fmt.Errorf("bind to %s:%d: %w", j.o.bind, j.o.bindPort, err)
	}
	if err := j.watch(unix.EPOLL_CTL_ADD, l, unix.EPOLLIN, l); err != nil {
		return verb, 0, err
	}
	if j.o.udp {
		fmt.Fprintf(os.Stderr, "waiting for datagrams on %s:%d\n", j.o.bind, j.o.bindPort)
		span, err = j.take(l)
		return verb, span, err
	}
	defer unix.Close(l)
	if err := unix.Listen(l, backlog); err != nil {
		return verb, 0, fmt.Errorf("listen: %w", err)
	}
	fmt.Fprintf(os.Stderr, "listening on %s:%d\n", j.o.bind, j.o.bindPort)
	streams := make(map[int]*stream)
	var first, last time.Time
	begun := time.Now()
	buf := make([]byte, max(j.o.burst*j.o.mss, 16<<10))
	out := make([]byte, j.o.burst*j.o.mss)
	for !j.asked.Load() && (j.o.timeout == 0 || time.Since(begun) < j.o.timeout) {
		ready, err := j.wait()
		if err != nil {
			return verb, 0, err
		}
		for i := range ready {
			fd := int(ready[i].Fd)
			if fd == l {
				if first.IsZero() {
					first = time.Now()
				}
				if err := j.accept(l, streams); err != nil {
					return verb, 0, err
				}
				continue
			}
			if !j.serve(fd, streams[fd], ready[i].Events, buf, out) { // its end, or its failure, which is that of one connection
				j.close(fd, streams[fd].bytes)
				delete(streams, fd)
				last = time.Now()
			}
		}
		j.look(func(visit func(int)) {
			for fd := range streams {
				visit(fd)
			}
		})
	}
	for fd, s := range streams {
		j.close(fd, s.bytes)
		last = time.Now()
	}
	j.finish()
	return verb, last.Sub(first), nil
}

// serve does what can be done with a stream that is ready for events; false says that it has ended.
func (j *job) serve(fd int, s *stream, events uint32, buf, out []byte) bool {
	if events&unix.EPOLLOUT != 0 {
		from := out
		if j.o.echo {
			from = s.back
		}
		n, err := unix.Write(fd, from)
		if err != nil && !passing(err) {
			return false
		}
		j.count.Back.Add(uint64(max(n, 0)))
		if j.o.echo && n > 0 {
			if s.back = s.back[:copy(s.back, s.back[n:])]; len(s.back) == 0 {
				_ = j.watch(unix.EPOLL_CTL_MOD, fd, unix.EPOLLIN, fd)
			}
		}
	}
	if events&^unix.EPOLLOUT == 0 || len(s.back) > 0 {
		return true
	}
	n, err := unix.Read(fd, buf)
	if n <= 0 {
		return passing(err)
	}
	j.moved(&s.bytes, n)
	if !j.o.echo {
		return true
	}
	sent, err := unix.Write(fd, buf[:n])
	if err != nil && !passing(err) {
		return false
	}
	sent = max(sent, 0)
	j.count.Back.Add(uint64(sent))
	if sent < n {
		s.back = append(s.back, buf[sent:n]...)
		_ = j.watch(unix.EPOLL_CTL_MOD, fd, unix.EPOLLOUT, fd)
	}
	return true
}

// accept takes every connection that waits.
func (j *job) accept(l int, streams map[int]*stream) error {
	events := uint32(unix.EPOLLIN)
	if j.o.bidir {
		events |= unix.EPOLLOUT
	}
	for {
		fd, _, err := unix.Accept4(l, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		switch {
		case passing(err):
			return nil
		case err == unix.ECONNABORTED:
			continue
		case err != nil:
			return fmt.Errorf("accept: %w", err)
		}
		j.count.Connections.Add(1)
		streams[fd] = new(stream)
		if err := j.watch(unix.EPOLL_CTL_ADD, fd, events, fd); err != nil {
			return err
		}
	}
}
