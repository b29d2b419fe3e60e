package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// backoff is the pause before a connection that failed is tried again.
const backoff = 100 * time.Millisecond

// drainTime is how long the peer may take to read what is on its way and to close.
const drainTime = 3 * time.Second

// send opens all connections and writes to them in turn, until the program is to end.
func (j *job) send() (verb string, span time.Duration, err error) {
	verb = "sent"
	bytes := make(map[int]*uint64)
	if err := j.connect(bytes); err != nil {
		return verb, 0, err
	}
	if j.o.udp {
		span, err := j.datagrams(bytes)
		return verb, span, err
	}
	events := uint32(unix.EPOLLOUT)
	if j.o.bidir {
		events |= unix.EPOLLIN
	}
	for fd := range bytes {
		if err := j.watch(unix.EPOLL_CTL_ADD, fd, events, fd); err != nil {
			return verb, 0, err
		}
	}
	each := func(visit func(int)) {
		for fd := range bytes {
			visit(fd)
		}
	}
	begun := time.Now()
	buf := make([]byte, j.o.burst*j.o.mss)
	for i := range buf {
		buf[i] = byte(i)
	}
	in := make([]byte, max(len(buf), 16<<10))
	for len(bytes) > 0 && !j.asked.Load() && (j.o.timeout == 0 || time.Since(begun) < j.o.timeout) {
		ready, err := j.wait()
		if err != nil {
			return verb, 0, err
		}
		for i := range ready {
			fd := int(ready[i].Fd)
			if j.o.bidir && ready[i].Events&unix.EPOLLIN != 0 {
				if n, _ := unix.Read(fd, in); n > 0 {
					j.count.Back.Add(uint64(n))
				}
			}
			if ready[i].Events&^unix.EPOLLIN == 0 {
				continue
			}
			n, err := unix.Write(fd, buf)
			switch {
			case n > 0:
				j.moved(bytes[fd], n)
			case !passing(err):
				if len(bytes) == 1 {
					return verb, 0, fmt.Errorf("connection to %s:%d: %w after %d bytes", j.o.peer, j.o.port, err, *bytes[fd])
				}
				j.close(fd, *bytes[fd])
				delete(bytes, fd)
			}
		}
		j.look(each)
	}
	span = time.Since(begun)
	j.drain(bytes)
	j.finish()
	return verb, span, nil
}

// connect opens the connections, one after the other, each tried again until the time is up.
func (j *job) connect(bytes map[int]*uint64) error {
	deadline := time.Now().Add(j.o.connectIn)
	to := &unix.SockaddrInet4{Port: j.o.port, Addr: j.o.peer.As4()}
	for len(bytes) < j.o.connections {
		fd, err := j.socket()
		if err != nil {
			return err
		}
		if j.o.bind.IsValid() && !j.o.bind.IsUnspecified() || j.o.bindPort != 0 {
			own := &unix.SockaddrInet4{Addr: j.o.bind.As4()}
			if j.o.bindPort != 0 {
				own.Port = j.o.bindPort + len(bytes)
			}
			if err := unix.Bind(fd, own); err != nil {
				return fmt.Errorf("bind to %s:%d: %w", j.o.bind, own.Port, err)
			}
		}
		if err = unix.Connect(fd, to); err == unix.EINPROGRESS {
			err = j.connected(fd, deadline)
		}
		switch {
		case err == nil:
			bytes[fd] = new(uint64)
			j.count.Connections.Add(1)
			continue
		case j.asked.Load():
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("%d of %d connections to %s:%d are up after %gs, the next: %w; start 'linux-perf recv' there, or give a longer --connect-timeout",
				len(bytes), j.o.connections, j.o.peer, j.o.port, j.o.connectIn.Seconds(), err)
		}
		unix.Close(fd)
		time.Sleep(backoff)
	}
	return nil
}

// connected waits until a connection is up or has failed.
func (j *job) connected(fd int, deadline time.Time) error {
	for !j.asked.Load() {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		n, err := unix.Poll(poll, 50)
		switch {
		case err != nil && err != unix.EINTR:
			return err
		case n > 0:
			code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
			if err == nil && code != 0 {
				err = unix.Errno(code)
			}
			return err
		case time.Now().After(deadline):
			return unix.ETIMEDOUT
		}
	}
	return unix.EINTR
}

// drain ends every stream and waits until the peer has closed too.
func (j *job) drain(bytes map[int]*uint64) {
	for fd := range bytes {
		_ = unix.Shutdown(fd, unix.SHUT_WR)
		_ = j.watch(unix.EPOLL_CTL_MOD, fd, unix.EPOLLIN|unix.EPOLLRDHUP, fd)
	}
	scratch := make([]byte, 4096)
	for end := time.Now().Add(drainTime); len(bytes) > 0 && time.Now().Before(end); {
		ready, err := j.wait()
		if err != nil {
			break
		}
		for i := range ready {
			fd := int(ready[i].Fd)
			if n, err := unix.Read(fd, scratch); n > 0 || passing(err) {
				continue
			}
			j.close(fd, *bytes[fd])
			delete(bytes, fd)
		}
	}
	for fd, n := range bytes {
		j.close(fd, *n)
	}
}
