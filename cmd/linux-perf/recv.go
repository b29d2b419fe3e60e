package main

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// backlog is how many connections may wait to be accepted; the kernel takes net.core.somaxconn if that is less.
const backlog = 8192

// receive takes connections and reads what they bring, until the program is to end.
func (j *job) receive() (verb string, span time.Duration, err error) {
	verb = "received"
	l, err := j.socket()
	if err != nil {
		return verb, 0, err
	}
	defer unix.Close(l)
	if err := unix.Bind(l, &unix.SockaddrInet4{Port: j.o.bindPort, Addr: j.o.bind.As4()}); err != nil {
		return verb, 0, fmt.Errorf("bind to %s:%d: %w", j.o.bind, j.o.bindPort, err)
	}
	if err := unix.Listen(l, backlog); err != nil {
		return verb, 0, fmt.Errorf("listen: %w", err)
	}
	if err := j.watch(unix.EPOLL_CTL_ADD, l, unix.EPOLLIN, l); err != nil {
		return verb, 0, err
	}
	fmt.Fprintf(os.Stderr, "listening on %s:%d\n", j.o.bind, j.o.bindPort)
	bytes := make(map[int]*uint64)
	var first, last time.Time
	begun := time.Now()
	buf := make([]byte, max(j.o.burst*j.o.mss, 16<<10))
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
				if err := j.accept(l, bytes); err != nil {
					return verb, 0, err
				}
				continue
			}
			n, err := unix.Read(fd, buf)
			switch {
			case n > 0:
				*bytes[fd] += uint64(n)
				j.count.Bytes.Add(uint64(n))
			case passing(err):
			default: // its end, or its failure, which is that of one connection
				j.close(fd, *bytes[fd])
				delete(bytes, fd)
				last = time.Now()
			}
		}
		j.look(func(visit func(int)) {
			for fd := range bytes {
				visit(fd)
			}
		})
	}
	for fd, n := range bytes {
		j.close(fd, *n)
		last = time.Now()
	}
	j.finish()
	return verb, last.Sub(first), nil
}

// accept takes every connection that waits.
func (j *job) accept(l int, bytes map[int]*uint64) error {
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
		bytes[fd] = new(uint64)
		if err := j.watch(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN, fd); err != nil {
			return err
		}
	}
}
