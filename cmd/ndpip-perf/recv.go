package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/api"
	"ndpip/cmd/internal/cli"
)

// backlog is how many connections may wait to be accepted. A burst of as many connects as the paper has fits.
const backlog = 8192

// receiver takes connections and reads what they bring.
type receiver struct {
	job
	out     *os.File // --out
	pattern pattern  // --verify
	buf     []byte
	bufs    []api.Buf // --zero-copy
	chunk   int       // --bidir: bytes in a write

	listener int
	streams  []*stream // key-1 in the event queue; nil where free
	spare    []int     // free places in streams
	total    int       // connections so far
	first    time.Time // of the first connection or datagram
	last     time.Time // end of the last connection that ended, or the last datagram

	closedStreams int // and of these, the bytes of the one that brought the least, and the most
	least, most   uint64
}

// stream is one connection, or the datagrams of the UDP socket.
type stream struct {
	fd    int
	key   int // in the event queue
	peer  netip.AddrPort
	bytes uint64
	sum   hash.Hash // --sha256
	back  []byte    // --echo: what its peer's window has not taken yet
	sent  uint64    // --bidir
}

func prepareRecv(o *options, stop *cli.Stop) (worker, error) {
	r := new(receiver)
	r.init(o, stop)
	switch {
	case o.out == "-":
		r.out, r.meter.W = os.Stdout, os.Stderr
	case o.out != "":
		f, err := os.Create(o.out)
		if err != nil {
			return nil, fmt.Errorf("--out: %w", err)
		}
		r.out = f
		r.files = append(r.files, f)
	}
	segment := o.MSS
	if segment == 0 {
		segment = cli.DefaultMSS
	}
	// One read takes what one turn of the stack brings, and with small segments no less than fills a page or two.
	r.buf = make([]byte, max(o.Burst*segment, 16<<10))
	r.bufs = make([]api.Buf, o.Burst)
	if o.verify || o.bidir {
		r.pattern = newPattern(len(r.buf))
	}
	return r, nil
}

func (r *receiver) on(h *api.Host) error {
	end, err := r.start(h)
	if err != nil {
		return err
	}
	if timer := r.stop.After(r.o.timeout); timer != nil {
		defer timer.Stop()
	}
	if r.o.udp {
		err = r.datagrams()
	} else {
		err = r.serve()
	}
	connections, reading := r.total, r.reading()
	open := len(r.streams) - len(r.spare)
	for _, s := range r.streams {
		if s != nil {
			r.close(s)
		}
	}
	if open > 0 {
		r.linger()
	}
	end()
	if err != nil {
		return err
	}
	reading.Least, reading.Most = r.least, r.most
	r.meter.Summary("received", reading, r.span(), connections)
	// A signal may end --out before the peer does; --timeout makes that a failure.
	if r.out != nil && r.stop.Expired() {
		return fmt.Errorf("--timeout %gs is over and the peer has not closed; %s holds %d bytes", r.o.timeout.Seconds(), r.o.out, reading.Bytes)
	}
	return nil
}

// farewell is the time between the last frame and the end of the port, when connections were cut short: over memif
// a frame that the peer has not read yet is gone with the port, and it would wait for a long time for the reset.
const farewell = 150 * time.Millisecond

// linger lets the farewell pass, in which the stack may work.
func (r *receiver) linger() {
	for end := time.Now().Add(farewell); time.Now().Before(end); {
		if _, err := r.wait(); err != nil {
			return
		}
	}
}

// span is the time from the first connection to the end of the last, or to now while one is open; or from the first
// datagram to the last.
func (r *receiver) span() time.Duration {
	switch {
	case r.first.IsZero():
		return 0
	case !r.o.udp && len(r.spare) < len(r.streams):
		return time.Since(r.first)
	}
	return r.last.Sub(r.first)
}

// socket makes a socket that is bound to the own address and port.
func (r *receiver) socket(kind int) (int, error) {
	fd, err := r.o.Socket(r.h, kind)
	if err != nil {
		return -1, err
	}
	own := netip.AddrPortFrom(r.h.Addr(), uint16(r.o.bindPort))
	if err := r.h.Bind(fd, own); err != nil {
		r.h.Close(fd)
		return -1, fmt.Errorf("bind to %s: %w", own, err)
	}
	return fd, nil
}

// ready says on standard error that a peer may come.
func (r *receiver) ready(what string) {
	fmt.Fprintf(os.Stderr, "%s on %s:%d (%s)\n", what, r.h.Addr(), r.o.bindPort, r.h.MAC())
}

// serve accepts and reads until the program is to end, or with --out until the connection has ended.
func (r *receiver) serve() error {
	fd, err := r.socket(unix.SOCK_STREAM)
	if err != nil {
		return err
	}
	defer func() { r.h.Close(fd) }()
	r.listener = fd
	if err := r.h.Listen(fd, backlog); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if err := r.watch(unix.EPOLL_CTL_ADD, fd, unix.EPOLLIN, 0); err != nil {
		return err
	}
	r.ready("listening")
	for !r.stop.Asked() {
		ready, err := r.wait()
		if err != nil {
			return err
		}
		for i := range ready {
			key := ready[i].Data
			if key == 0 {
				if err := r.accept(); err != nil {
					return err
				}
				continue
			}
			s := r.streams[key-1]
			open, err := r.serveOne(s, ready[i].Events)
			if err != nil {
				return err
			}
			if open {
				continue
			}
			r.forget(int(key - 1))
			if r.out != nil {
				return nil
			}
		}
	}
	return nil
}

// serveOne does what can be done with a stream that is ready for events; open is false when it has ended.
func (r *receiver) serveOne(s *stream, events uint32) (open bool, err error) {
	if events&unix.EPOLLOUT != 0 {
		switch {
		case len(s.back) > 0:
			err = r.echoRest(s)
		case r.o.bidir:
			err = r.send(s)
		}
		if err != nil {
			return r.broken(s, err)
		}
	}
	if events&^unix.EPOLLOUT == 0 || len(s.back) > 0 {
		return true, nil
	}
	return r.read(s)
}

// send writes to a stream, with --bidir.
func (r *receiver) send(s *stream) error {
	n, err := r.h.Write(s.fd, r.pattern.at(s.sent, r.chunk))
	if n <= 0 {
		if err != nil && !again(err) {
			return err
		}
		return nil
	}
	s.sent += uint64(n)
	r.count.Back.Add(uint64(n))
	return nil
}

// accept takes every connection that waits.
func (r *receiver) accept() error {
	for {
		fd, peer, err := r.h.Accept(r.listener)
		switch {
		case again(err):
			return nil
		case err == unix.ECONNABORTED:
			continue
		case err != nil:
			return fmt.Errorf("accept: %w", err)
		}
		if r.out != nil && r.total > 0 {
			fmt.Fprintf(os.Stderr, "ndpip-perf recv: refused %s: --out takes one connection\n", peer)
			r.h.Close(fd)
			continue
		}
		if err := r.remember(&stream{fd: fd, peer: peer}); err != nil {
			return err
		}
	}
}

// remember watches a new stream.
func (r *receiver) remember(s *stream) error {
	if r.o.sha256 {
		s.sum = sha256.New()
	}
	place := len(r.streams)
	if n := len(r.spare); n > 0 {
		place, r.spare = r.spare[n-1], r.spare[:n-1]
		r.streams[place] = s
	} else {
		r.streams = append(r.streams, s)
	}
	if r.total++; r.total == 1 && !r.o.udp {
		r.first = time.Now()
	}
	r.count.Connections.Add(1)
	events := uint32(unix.EPOLLIN)
	if r.o.bidir {
		events |= unix.EPOLLOUT
		if r.chunk == 0 {
			r.chunk = r.segment(s.fd) * r.o.Burst
		}
	}
	s.key = place + 1
	return r.watch(unix.EPOLL_CTL_ADD, s.fd, events, s.key)
}

// forget closes the stream at a place that has ended.
func (r *receiver) forget(place int) {
	r.close(r.streams[place])
	r.streams[place] = nil
	r.spare = append(r.spare, place)
	r.last = time.Now()
}

// close closes a stream and prints its hash.
func (r *receiver) close(s *stream) {
	r.h.Close(s.fd)
	r.count.Connections.Add(-1)
	if s.bytes > 0 && !r.o.udp {
		r.count.Moving.Add(-1)
	}
	if r.closedStreams++; r.closedStreams == 1 {
		r.least = s.bytes
	}
	r.least, r.most = min(r.least, s.bytes), max(r.most, s.bytes)
	if s.sum != nil {
		r.meter.Stream(s.peer.String(), s.bytes, hex.EncodeToString(s.sum.Sum(nil)))
	}
}

// read takes once what a stream has; open is false when the stream has ended. A peer that resets its connection ends
// that stream alone, except with --out, where it is a failure.
func (r *receiver) read(s *stream) (open bool, err error) {
	var n int
	if r.o.zeroCopy {
		n, err = r.readBufs(s)
	} else if n, err = r.h.Read(s.fd, r.buf); n > 0 {
		err = r.take(s, r.buf[:n])
	}
	if err == nil || again(err) {
		return n > 0 || err != nil, nil
	}
	return r.broken(s, err)
}

// broken is what becomes of a stream that has failed.
func (r *receiver) broken(s *stream, err error) (open bool, _ error) {
	var wrong *contentError
	switch {
	case errors.As(err, &wrong):
		return false, err
	case r.o.echo:
		return false, nil // 'ndpip-perf conn --reset' ends all of its connections like this
	case r.out != nil:
		return false, fmt.Errorf("%s: %w after %d bytes; %s is not complete", s.peer, err, s.bytes, r.o.out)
	}
	fmt.Fprintf(os.Stderr, "ndpip-perf recv: %s: %v after %d bytes\n", s.peer, err, s.bytes)
	return false, nil
}

// readBufs is read with the zero-copy calls. n is the number of buffers, 0 at the end of the stream.
func (r *receiver) readBufs(s *stream) (n int, err error) {
	n, err = r.h.Recv(s.fd, r.bufs)
	if n <= 0 {
		return 0, err
	}
	for i := range r.bufs[:n] {
		if r.o.udp {
			s.bytes = 0
		}
		if err == nil {
			err = r.take(s, r.bufs[i].Bytes())
		}
	}
	if ferr := r.h.Free(s.fd, r.bufs[:n]); err == nil {
		err = ferr
	}
	return n, err
}

// contentError ends the program: what arrived is not what was sent, or could not be written.
type contentError struct{ error }

// take does with a piece of a stream what the options say.
func (r *receiver) take(s *stream, b []byte) error {
	if s.sum != nil {
		s.sum.Write(b)
	}
	if r.out != nil {
		if _, err := r.out.Write(b); err != nil {
			return &contentError{err}
		}
	}
	if r.o.verify {
		if at := r.pattern.differs(s.bytes, b); at >= 0 {
			return &contentError{fmt.Errorf("--verify: byte %d of the stream from %s is not what 'ndpip-perf send' makes", s.bytes+uint64(at), s.peer)}
		}
	}
	if s.bytes == 0 && !r.o.udp {
		r.count.Moving.Add(1)
	}
	s.bytes += uint64(len(b))
	r.count.Bytes.Add(uint64(len(b)))
	if r.o.echo {
		return r.echo(s, b)
	}
	return nil
}
