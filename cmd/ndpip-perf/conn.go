package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/api"
	"ndpip/cmd/internal/cli"
)

// opener opens connections, so many at a time; on each it sends some bytes, waits until they are back, and closes.
type opener struct {
	asker
	slots    []slot
	out, in  []byte
	open     int // slots with a connection
	begun    int // connections begun so far, and of these
	done     int // done,
	failures int // failed
}

// slot is one of the connections that are there at a time.
type slot struct {
	fd        int // -1: none
	begin     time.Duration
	sent, got int
	retry     time.Duration // not before this
}

func prepareConn(o *options, stop *cli.Stop) (worker, error) {
	c := &opener{slots: make([]slot, o.parallel), out: make([]byte, o.size), in: make([]byte, max(o.size, 1))}
	for i := range c.slots {
		c.slots[i].fd = -1
	}
	return c, c.prepare(o, stop, "conns")
}

func (c *opener) on(h *api.Host) error {
	end, err := c.asker.open(h)
	if err != nil {
		return err
	}
	defer end()
	err = c.run()
	cut := c.open > 0
	for i := range c.slots {
		if c.slots[i].fd >= 0 {
			c.drop(&c.slots[i], true)
		}
	}
	// What was closed last is to get to the peer before the port goes.
	for end := time.Now().Add(farewell); (cut || c.done > 0) && time.Now().Before(end); {
		if _, err := c.wait(); err != nil {
			break
		}
	}
	return err
}

func (c *opener) run() error {
	c.rec.Start()
	if timer := c.stop.After(c.o.timeout); timer != nil {
		defer timer.Stop()
	}
	defer func() { c.rec.Summary(c.rec.Now()) }()
	if err := c.fill(); err != nil {
		return err
	}
	for !c.stop.Asked() && (c.o.count == 0 || c.done < c.o.count) {
		ready, err := c.wait()
		if err != nil {
			return err
		}
		for i := range ready {
			if err := c.turn(int(ready[i].Data)); err != nil {
				return err
			}
		}
		if now := c.rec.Now(); c.rec.Due(now) {
			c.rec.Interval(now)
		}
		if c.open < len(c.slots) {
			if err := c.fill(); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill begins a connection in each slot that has none and need not wait.
func (c *opener) fill() error {
	now := c.rec.Now()
	for i := range c.slots {
		if s := &c.slots[i]; s.fd < 0 && now >= s.retry {
			if err := c.begin(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin begins a connection, unless --count have been begun.
func (c *opener) begin(key int) error {
	s := &c.slots[key]
	if c.o.count != 0 && c.begun-c.failures >= c.o.count {
		s.retry = 1<<63 - 1
		return nil
	}
	fd, err := c.o.Socket(c.h, unix.SOCK_STREAM)
	if err != nil {
		return err
	}
	*s = slot{fd: fd, begin: c.rec.Now()}
	c.open++
	c.begun++
	if err := c.h.Connect(fd, c.peer); err != nil && err != unix.EINPROGRESS {
		return c.failed(s, err)
	}
	return c.watch(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLET, key)
}

// turn goes on with a connection of which there is news, and begins the next one when it is done.
func (c *opener) turn(key int) error {
	s := &c.slots[key]
	if s.fd < 0 {
		return nil
	}
	done, err := c.step(s)
	if err != nil {
		return c.failed(s, err)
	}
	if !done {
		return nil
	}
	now := c.rec.Now()
	c.rec.Record(now - s.begin)
	c.good = now
	c.done++
	c.drop(s, c.o.reset)
	if c.stop.Asked() {
		return nil
	}
	return c.begin(key)
}

// step does what can be done now: send, and read what comes back.
func (c *opener) step(s *slot) (done bool, err error) {
	if c.o.size == 0 {
		return c.connected(s)
	}
	if s.sent < len(c.out) {
		n, err := c.h.Write(s.fd, c.out[s.sent:])
		if err != nil && !again(err) {
			return false, err
		}
		s.sent += max(n, 0)
	}
	for s.got < s.sent {
		n, err := c.h.Read(s.fd, c.in)
		switch {
		case n > 0:
			s.got += n
		case again(err):
			return false, nil
		case err != nil:
			return false, err
		default:
			return false, errClosed
		}
	}
	return s.got >= len(c.out), nil
}

var errClosed = errors.New("the peer closed before it had sent everything back; want 'ndpip-perf recv --echo' there")

// connected says whether a connection on which nothing is sent is up.
func (c *opener) connected(s *slot) (bool, error) {
	code, err := c.h.GetSockOptInt(s.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && code != 0 {
		err = unix.Errno(code)
	}
	if err != nil {
		return false, err
	}
	_, err = c.h.Getpeername(s.fd)
	return !errors.Is(err, unix.ENOTCONN), nil
}

// failed counts a connection that failed and lets its slot wait. It is the program's failure when none succeeds.
func (c *opener) failed(s *slot, err error) error {
	c.drop(s, true)
	now := c.rec.Now()
	if err != errClosed && !passing(err) && err != unix.EADDRNOTAVAIL && err != unix.EPIPE {
		return fmt.Errorf("connection to %s: %w", c.peer, err)
	}
	c.rec.Failed()
	c.failures++
	s.retry = now + backoff
	return c.absent(now, err)
}

// drop closes a slot's connection.
func (c *opener) drop(s *slot, reset bool) {
	if reset {
		_ = c.h.SetLinger(s.fd, true, 0)
	}
	if err := c.h.Close(s.fd); err != nil {
		fmt.Fprintf(os.Stderr, "ndpip-perf conn: close: %v\n", err)
	}
	s.fd = -1
	c.open--
}
