package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/api"
	"ndpip/cmd/internal/cli"
)

// sender opens connections and writes to them in turn.
type sender struct {
	job
	peer    netip.AddrPort
	file    *os.File // --file
	pattern pattern

	mss   int // bytes in a segment
	chunk int // bytes in a write: --burst segments
	conns []conn
	in    []byte // --bidir: what is read
	open  int
	begun time.Time
	ended time.Time
}

// conn is one connection, or one UDP socket.
type conn struct {
	fd    int // -1: none
	bytes uint64
	src   io.Reader // --file: what is left of it
	buf   []byte    // --file: what src gave and the connection has not taken yet
	room  []byte    // --file: the memory of buf
	held  []api.Buf // --zero-copy: filled buffers that the connection has not taken yet
	nheld int
	sum   hash.Hash // --sha256
	retry time.Time // when to try again to connect
	up    bool      // connected
	done  bool      // everything is written, and so is the end of the stream
}

func prepareSend(o *options, stop *cli.Stop) (worker, error) {
	s := &sender{peer: netip.AddrPortFrom(o.connectIP, uint16(o.connectPort))}
	s.init(o, stop)
	switch {
	case o.file == "-":
		s.file = os.Stdin
	case o.file != "":
		f, err := os.Open(o.file)
		if err != nil {
			return nil, fmt.Errorf("--file: %w", err)
		}
		s.files = append(s.files, f)
		info, err := f.Stat()
		if err != nil {
			return nil, fmt.Errorf("--file: %w", err)
		}
		switch {
		case info.IsDir():
			return nil, fmt.Errorf("--file: %s is a directory; give a file", o.file)
		case !info.Mode().IsRegular() && (o.connections > 1 || o.repeat > 0):
			return nil, cli.Usagef("--file %s can be read once: leave out --connections and --repeat, or give a regular file", o.file)
		}
		s.file = f
	}
	s.conns = make([]conn, o.connections)
	for i := range s.conns {
		c := &s.conns[i]
		if o.sha256 {
			c.sum = sha256.New()
		}
		s.rewind(c)
	}
	return s, nil
}

// rewind makes a connection as good as new: it is to send all of its stream.
func (s *sender) rewind(c *conn) {
	c.fd, c.bytes, c.buf, c.done = -1, 0, nil, false
	if c.sum != nil {
		c.sum.Reset()
	}
	if s.file != nil {
		c.src = s.file
		if s.o.connections > 1 || s.o.repeat > 0 { // each at its own offset
			c.src = io.NewSectionReader(s.file, 0, 1<<62)
		}
	}
}

func (s *sender) on(h *api.Host) error {
	end, err := s.start(h)
	if err != nil {
		return err
	}
	err = s.transfer()
	for i := range s.conns {
		s.close(i)
	}
	end()
	return err
}

// transfer connects, sends until the end, and prints the summary.
func (s *sender) transfer() error {
	if err := s.connect(); err != nil || s.stop.Asked() {
		return err
	}
	s.size()
	s.begun = time.Now()
	if timer := s.stop.After(s.o.timeout); timer != nil {
		defer timer.Stop()
	}
	err := s.round()
	total := len(s.conns)
	for err == nil && time.Since(s.begun) < s.o.repeat && !s.stop.Asked() {
		s.sums()
		for i := range s.conns {
			s.rewind(&s.conns[i])
		}
		if err = s.connect(); err != nil || s.stop.Asked() {
			break
		}
		total += len(s.conns)
		err = s.round()
	}
	if s.ended.IsZero() {
		s.ended = time.Now()
	}
	reading := s.reading()
	reading.Least = s.conns[0].bytes
	for i := range s.conns {
		n := s.conns[i].bytes
		reading.Least, reading.Most = min(reading.Least, n), max(reading.Most, n)
	}
	s.sums()
	s.meter.Summary("sent", reading, s.ended.Sub(s.begun), total)
	return err
}

// round sends on all connections until the end.
func (s *sender) round() error {
	if s.o.udp {
		return s.datagrams()
	}
	if err := s.stream(); err != nil {
		return err
	}
	return s.drain()
}

// sums prints the hash of each connection's stream.
func (s *sender) sums() {
	for i := range s.conns {
		if c := &s.conns[i]; c.sum != nil {
			s.meter.Stream(s.peer.String(), c.bytes, hex.EncodeToString(c.sum.Sum(nil)))
		}
	}
}

// size learns the segment size from the first connection and makes the memory that depends on it.
func (s *sender) size() {
	s.mss = s.segment(s.conns[0].fd)
	s.chunk = s.mss * s.o.Burst
	if s.file == nil {
		s.pattern = newPattern(s.chunk)
	}
	if s.o.bidir {
		s.in = make([]byte, max(s.chunk, 16<<10))
	}
	for i := range s.conns {
		c := &s.conns[i]
		if s.file != nil {
			c.room = make([]byte, s.chunk)
		}
		if s.o.zeroCopy {
			c.held = make([]api.Buf, s.o.Burst)
		}
	}
}

// stream writes until the program is to end, or with --file until every connection has the whole file.
func (s *sender) stream() error {
	events := uint32(unix.EPOLLOUT)
	if s.o.bidir {
		events |= unix.EPOLLIN
	}
	for i := range s.conns {
		if err := s.watch(unix.EPOLL_CTL_MOD, s.conns[i].fd, events, i); err != nil {
			return err
		}
	}
	left := len(s.conns)
	for left > 0 && !s.stop.Asked() {
		ready, err := s.wait()
		if err != nil {
			return err
		}
		for i := range ready {
			key := int(ready[i].Data)
			c := &s.conns[key]
			if c.fd < 0 || c.done {
				continue
			}
			switch err := s.turn(c, ready[i].Events); {
			case err == nil:
			case again(err):
			case err == io.EOF:
				left--
				if err := s.finish(key); err != nil {
					return err
				}
			default:
				if err := s.lost(key, err); err != nil {
					return err
				}
				left--
			}
		}
	}
	return nil
}

// turn does what can be done with a connection that is ready for events.
func (s *sender) turn(c *conn, events uint32) error {
	if s.o.bidir && events&^unix.EPOLLOUT != 0 {
		n, err := s.h.Read(c.fd, s.in)
		switch {
		case n > 0:
			s.count.Back.Add(uint64(n))
		case err == nil:
			return errors.New("the receiver has closed it")
		case !again(err):
			return err
		}
	}
	if s.o.bidir && events&unix.EPOLLOUT == 0 {
		return nil
	}
	return s.write(c)
}

// lost is called when a connection has failed. A sender of many endless streams goes on while one is left.
func (s *sender) lost(key int, err error) error {
	c := &s.conns[key]
	err = fmt.Errorf("connection to %s: %w after %d bytes", s.peer, err, c.bytes)
	if s.file != nil || s.open <= 1 {
		return err
	}
	fmt.Fprintf(os.Stderr, "ndpip-perf send: %v\n", err)
	s.close(key)
	return nil
}

// write gives the connection one chunk. The result is io.EOF when the file has been written.
func (s *sender) write(c *conn) error {
	if s.o.zeroCopy {
		return s.writeBufs(c)
	}
	b, err := s.next(c)
	if err != nil {
		return err
	}
	n, err := s.h.Write(c.fd, b)
	if n <= 0 {
		return err
	}
	s.took(c, b[:n])
	if s.file != nil {
		c.buf = c.buf[n:]
	}
	return nil
}

// took counts what a connection has taken.
func (s *sender) took(c *conn, b []byte) {
	if c.sum != nil {
		c.sum.Write(b)
	}
	if c.bytes == 0 {
		s.count.Moving.Add(1)
	}
	c.bytes += uint64(len(b))
	s.count.Bytes.Add(uint64(len(b)))
}

// next is what the connection is to send next: at most a chunk, and never nothing without an error.
func (s *sender) next(c *conn) ([]byte, error) {
	if s.file == nil {
		return s.pattern.at(c.bytes, s.chunk), nil
	}
	if len(c.buf) > 0 {
		return c.buf, nil
	}
	n, err := io.ReadFull(c.src, c.room)
	c.buf = c.room[:n]
	switch {
	case n > 0:
		return c.buf, nil
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	}
	return nil, fmt.Errorf("--file: %w", err)
}

// finish ends the connection's stream: the peer reads its end after the data.
func (s *sender) finish(key int) error {
	c := &s.conns[key]
	c.done = true
	if err := s.h.Shutdown(c.fd, unix.SHUT_WR); err != nil {
		return fmt.Errorf("shutdown of the connection to %s: %w", s.peer, err)
	}
	return s.watch(unix.EPOLL_CTL_MOD, c.fd, unix.EPOLLIN|unix.EPOLLRDHUP, key)
}

func (s *sender) close(key int) {
	c := &s.conns[key]
	if c.fd < 0 {
		return
	}
	if c.nheld > 0 {
		s.h.Free(c.fd, c.held[:c.nheld])
		c.nheld = 0
	}
	s.h.Close(c.fd)
	c.fd = -1
	if c.up {
		c.up = false
		s.open--
		s.count.Connections.Add(-1)
		if c.bytes > 0 {
			s.count.Moving.Add(-1)
		}
	}
}
