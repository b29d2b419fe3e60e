package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/cmd/internal/latency"
)

// lostAfter is when a datagram that has not come back counts as lost.
const lostAfter = time.Second

// asker is what ping and conn have in common: a peer that sends back what it gets, and what is recorded of it.
type asker struct {
	*job
	rec     latency.Recorder
	out, in []byte
	to      unix.Sockaddr
	end     time.Duration // of the whole, or 0
	good    time.Duration // when the peer last did what it should
}

// ask does the work of ping and conn.
func (j *job) ask(stdout io.Writer) error {
	a := &asker{job: j, out: make([]byte, j.o.size), in: make([]byte, max(j.o.size, 64<<10)), end: j.o.timeout,
		to: &unix.SockaddrInet4{Port: j.o.port, Addr: j.o.peer.As4()}}
	fail := func() { j.asked.Store(true) }
	a.rec = latency.Recorder{W: stdout, JSON: j.o.format == "json", Noun: j.o.verb + "s", Size: j.o.size, Every: j.o.interval, Fail: fail}
	switch {
	case j.o.hdr == "-":
		a.rec.Log, a.rec.W = stdout, os.Stderr
	case j.o.hdr != "":
		f, err := os.Create(j.o.hdr)
		if err != nil {
			return fmt.Errorf("--hdr: %w", err)
		}
		defer f.Close()
		a.rec.Log = f
	}
	if j.o.verb == "conn" {
		return (&opener{asker: a, slots: make(map[int]*slot)}).run()
	}
	return a.ping()
}

// over says whether the program is to end.
func (a *asker) over(now time.Duration) bool { return a.asked.Load() || a.end > 0 && now >= a.end }

// absent is err, once the peer has been of no use for --connect-timeout; nil before.
func (a *asker) absent(now time.Duration, err error) error {
	if now-a.good <= a.o.connectIn {
		return nil
	}
	return fmt.Errorf("%s:%d for %gs: %w; start 'linux-perf recv --echo' there, or give a longer --connect-timeout", a.o.peer, a.o.port, a.o.connectIn.Seconds(), err)
}

var (
	errLost   = errors.New("no answer within a second")
	errAsked  = errors.New("asked to end")
	errClosed = errors.New("the peer closed before it had sent everything back; want 'linux-perf recv --echo' there")
)

// ping sends a message, waits until it has come back, and so on. The end of a round trip is the beginning of the next.
func (a *asker) ping() error {
	bytes := make(map[int]*uint64)
	if err := a.connect(bytes); err != nil {
		return err
	}
	fd := -1
	for fd = range bytes {
		defer unix.Close(fd)
	}
	a.rec.Start()
	if fd < 0 {
		return nil // asked to end
	}
	var err error
	var seq uint64
	begin := a.rec.Now()
	for n := 0; (a.o.count == 0 || n < a.o.count) && !a.over(begin); n++ {
		seq++
		err = a.round(fd, seq, begin)
		now := a.rec.Now()
		switch {
		case err == nil:
			a.rec.Record(now - begin)
			a.good = now
		case a.o.udp && (err == errLost || err == unix.ECONNREFUSED):
			a.rec.Failed()
			if err == unix.ECONNREFUSED {
				time.Sleep(backoff)
			}
			err = a.absent(now, err)
		}
		if err != nil {
			break
		}
		begin = now
		if a.rec.Due(now) {
			a.rec.Interval(now)
			begin = a.rec.Now()
		}
	}
	if err == errAsked {
		err = nil
	}
	a.rec.Summary(a.rec.Now())
	return err
}

// round is one round trip. It polls, as ndpip-perf does.
func (a *asker) round(fd int, seq uint64, begin time.Duration) error {
	if len(a.out) >= 8 {
		binary.LittleEndian.PutUint64(a.out, seq)
	}
	for sent, got, i := 0, 0, 1; got < len(a.out); i++ {
		if sent < len(a.out) {
			n, err := unix.Write(fd, a.out[sent:])
			if err != nil && !passing(err) {
				return err
			}
			sent += max(n, 0)
		}
		n, err := unix.Read(fd, a.in[got:])
		switch {
		case n > 0 && a.o.udp && (n != len(a.out) || binary.LittleEndian.Uint64(a.in) != seq): // one that came too late
		case n > 0:
			got += n
		case err == nil && !a.o.udp:
			return errClosed
		case err != nil && !passing(err):
			return err
		case i%64 == 0:
			now := a.rec.Now()
			if a.over(now) {
				return errAsked
			}
			if a.o.udp && now-begin > lostAfter {
				return errLost
			}
		}
	}
	if len(a.out) >= 8 && binary.LittleEndian.Uint64(a.in) != seq {
		return errors.New("what came back is not what was sent; want 'linux-perf recv --echo' there")
	}
	return nil
}

// opener opens connections, so many at a time; on each it sends some bytes, waits until they are back, and closes.
type opener struct {
	*asker
	slots map[int]*slot // by descriptor
	done  int
	retry time.Duration // after a failure, not before this
}

type slot struct {
	begin     time.Duration
	sent, got int
}

func (c *opener) run() error {
	c.rec.Start()
	err := c.loop()
	for fd := range c.slots {
		unix.Close(fd)
	}
	c.rec.Summary(c.rec.Now())
	return err
}

func (c *opener) loop() error {
	for now := c.rec.Now(); !c.over(now) && (c.o.count == 0 || c.done < c.o.count); now = c.rec.Now() {
		for len(c.slots) < c.o.parallel && now >= c.retry && (c.o.count == 0 || c.done+len(c.slots) < c.o.count) {
			if err := c.begin(); err != nil {
				return err
			}
		}
		ready, err := c.wait()
		if err != nil {
			return err
		}
		for i := range ready {
			if err := c.turn(int(ready[i].Fd)); err != nil {
				return err
			}
		}
		if now := c.rec.Now(); c.rec.Due(now) {
			c.rec.Interval(now)
		}
	}
	return nil
}

func (c *opener) begin() error {
	fd, err := c.socket()
	if err != nil {
		return err
	}
	c.slots[fd] = &slot{begin: c.rec.Now()}
	if err := unix.Connect(fd, c.to); err != nil && err != unix.EINPROGRESS {
		return c.fault(fd, err)
	}
	return c.watch(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLET, fd)
}

// turn goes on with a connection of which there is news.
func (c *opener) turn(fd int) error {
	s := c.slots[fd]
	done, err := c.step(fd, s)
	if err != nil {
		return c.fault(fd, err)
	}
	if !done {
		return nil
	}
	now := c.rec.Now()
	c.rec.Record(now - s.begin)
	c.good = now
	c.done++
	if c.o.reset {
		_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	}
	unix.Close(fd)
	delete(c.slots, fd)
	return nil
}

// step does what can be done now: send, and read what comes back.
func (c *opener) step(fd int, s *slot) (done bool, err error) {
	if c.o.size == 0 {
		code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && code != 0 {
			err = unix.Errno(code)
		}
		return err == nil, err
	}
	if s.sent < len(c.out) {
		n, err := unix.Write(fd, c.out[s.sent:])
		if err != nil && !passing(err) {
			return false, err
		}
		s.sent += max(n, 0)
	}
	for s.got < s.sent {
		n, err := unix.Read(fd, c.in)
		switch {
		case n > 0:
			s.got += n
		case passing(err):
			return false, nil
		case err != nil:
			return false, err
		default:
			return false, errClosed
		}
	}
	return s.got >= len(c.out), nil
}

// fault counts a connection that failed. It is the program's failure when none succeeds for a while.
func (c *opener) fault(fd int, err error) error {
	unix.Close(fd)
	delete(c.slots, fd)
	if err == unix.EADDRNOTAVAIL {
		err = fmt.Errorf("%w: the kernel keeps the ports of closed connections for a minute; give --reset", err)
	}
	now := c.rec.Now()
	c.rec.Failed()
	c.retry = now + backoff
	return c.absent(now, err)
}
