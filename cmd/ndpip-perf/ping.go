package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/api"
	"ndpip/cmd/internal/cli"
	"ndpip/cmd/internal/latency"
)

// lostAfter is when a datagram that has not come back counts as lost.
const lostAfter = time.Second

// spins is how often a read is tried before the loop looks whether it is to end.
const spins = 1024

// asker is what ping and conn have in common: a peer that sends back what it gets, and what is recorded of it.
type asker struct {
	job
	peer netip.AddrPort
	rec  latency.Recorder
	good time.Duration // when the peer last did what it should
}

func (a *asker) prepare(o *options, stop *cli.Stop, noun string) error {
	a.init(o, stop)
	a.peer = netip.AddrPortFrom(o.connectIP, uint16(o.connectPort))
	a.rec = latency.Recorder{W: os.Stdout, JSON: o.format == "json", Noun: noun, Size: o.size, Every: o.interval, Fail: stop.Ask}
	switch {
	case o.hdr == "-":
		a.rec.Log, a.rec.W = os.Stdout, os.Stderr
		a.meter.W = os.Stderr
	case o.hdr != "":
		f, err := os.Create(o.hdr)
		if err != nil {
			return fmt.Errorf("--hdr: %w", err)
		}
		a.rec.Log = f
		a.files = append(a.files, f)
	}
	return nil
}

// absent is err, once the peer has been of no use for --connect-timeout; nil before.
func (a *asker) absent(now time.Duration, err error) error {
	if now-a.good <= a.o.connectTimeout {
		return nil
	}
	udp := ""
	if a.o.udp {
		udp = " --udp"
	}
	return fmt.Errorf("%s for %gs: %w; start 'ndpip-perf recv --echo%s' there, or give a longer --connect-timeout",
		a.peer, a.o.connectTimeout.Seconds(), err, udp)
}

// idle lets the stack work for d, or until the program is to end.
func (a *asker) idle(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end) && !a.stop.Asked(); {
		if _, err := a.wait(); err != nil {
			return
		}
	}
}

// pinger sends a message, waits until it has come back, and so on.
type pinger struct {
	asker
	fd      int
	out, in []byte
	seq     uint64
}

var (
	errLost  = errors.New("no answer within a second")
	errAsked = errors.New("asked to end")
)

func preparePing(o *options, stop *cli.Stop) (worker, error) {
	p := &pinger{fd: -1, out: make([]byte, o.size), in: make([]byte, max(o.size, 2048))}
	return p, p.prepare(o, stop, "pings")
}

func (p *pinger) on(h *api.Host) error {
	end, err := p.open(h)
	if err != nil {
		return err
	}
	defer end()
	p.rec.Start()
	if err = p.connect(); err == nil {
		err = p.ping()
	}
	if p.fd >= 0 {
		p.leave()
	}
	if err == errAsked {
		err = nil
	}
	return err
}

// leave ends the connection and waits a little until the peer has too.
func (p *pinger) leave() {
	if !p.o.udp && p.h.Shutdown(p.fd, unix.SHUT_WR) == nil {
		for end := time.Now().Add(drainSignal); time.Now().Before(end); {
			if n, err := p.h.Read(p.fd, p.in); n <= 0 && !again(err) {
				break
			}
		}
	}
	p.h.Close(p.fd)
}

// connect opens the connection, again and again until the peer is there.
func (p *pinger) connect() error {
	kind := unix.SOCK_STREAM
	if p.o.udp {
		kind = unix.SOCK_DGRAM
	}
	for {
		err := p.attempt(kind)
		switch {
		case err == nil:
			return p.watch(unix.EPOLL_CTL_MOD, p.fd, unix.EPOLLIN, 0)
		case err == errAsked:
			return err
		case !passing(err):
			return fmt.Errorf("connect to %s: %w", p.peer, err)
		}
		if err := p.absent(p.rec.Now(), err); err != nil {
			return err
		}
		p.h.Close(p.fd)
		p.fd = -1
		p.idle(backoff)
	}
}

// attempt makes a socket and waits until it is connected.
func (p *pinger) attempt(kind int) (err error) {
	if p.fd, err = p.o.Socket(p.h, kind); err != nil {
		return err
	}
	if err := p.h.Connect(p.fd, p.peer); err != nil && err != unix.EINPROGRESS {
		return err
	}
	if err := p.watch(unix.EPOLL_CTL_ADD, p.fd, unix.EPOLLOUT, 0); err != nil {
		return err
	}
	for !p.stop.Asked() {
		if ready, err := p.wait(); err != nil {
			return err
		} else if len(ready) == 0 {
			continue
		}
		code, err := p.h.GetSockOptInt(p.fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && code != 0 {
			err = unix.Errno(code)
		}
		if err != nil {
			return err
		}
		if _, err := p.h.Getpeername(p.fd); !errors.Is(err, unix.ENOTCONN) {
			return nil
		}
	}
	return errAsked
}

// ping does the round trips. The end of one is the beginning of the next, so the clock is read once for each.
func (p *pinger) ping() error {
	p.rec.Start()
	p.good = 0
	if timer := p.stop.After(p.o.timeout); timer != nil {
		defer timer.Stop()
	}
	var err error
	begin := p.rec.Now()
	for n := 0; (p.o.count == 0 || n < p.o.count) && !p.stop.Asked(); n++ {
		err = p.round(begin)
		now := p.rec.Now()
		if err == nil {
			p.rec.Record(now - begin)
			p.good = now
		} else if err = p.failed(now, err); err != nil {
			break
		}
		begin = now
		if p.rec.Due(now) {
			p.rec.Interval(now)
			begin = p.rec.Now()
		}
	}
	p.rec.Summary(p.rec.Now())
	return err
}

// failed counts a datagram that was lost; with a connection a failure is the end.
func (p *pinger) failed(now time.Duration, err error) error {
	switch {
	case err == errAsked:
		return err
	case !p.o.udp || err != errLost && !passing(err):
		return fmt.Errorf("%s: %w", p.peer, err)
	}
	p.rec.Failed()
	if err != errLost {
		p.idle(backoff)
	}
	return p.absent(now, err)
}

// round sends one message and waits until all of it is back. A long one comes back while its end is still being sent.
func (p *pinger) round(begin time.Duration) error {
	p.seq++
	if len(p.out) >= 8 {
		binary.LittleEndian.PutUint64(p.out, p.seq)
	}
	for sent, got, i := 0, 0, 1; got < len(p.out); i++ {
		if sent < len(p.out) {
			n, err := p.h.Write(p.fd, p.out[sent:])
			if err != nil && !again(err) {
				return err
			}
			sent += max(n, 0)
		}
		n, err := p.h.Read(p.fd, p.in[got:])
		switch {
		case n > 0 && p.o.udp && (n != len(p.out) || binary.LittleEndian.Uint64(p.in) != p.seq): // one that came too late
		case n > 0:
			got += n
		case err == nil && !p.o.udp:
			return errors.New("the peer has closed the connection; want 'ndpip-perf recv --echo' there")
		case err != nil && !again(err):
			return err
		case p.o.yields || i%spins == 0:
			if err := p.pass(begin); err != nil {
				return err
			}
		}
	}
	if len(p.out) >= 8 && binary.LittleEndian.Uint64(p.in) != p.seq {
		return errors.New("what came back is not what was sent; want 'ndpip-perf recv --echo' there")
	}
	return nil
}

// pass looks whether the waiting is to end. Where threads share CPUs it also waits in the stack's way, which gives them up.
func (p *pinger) pass(begin time.Duration) error {
	if p.o.yields {
		if _, err := p.wait(); err != nil {
			return err
		}
	}
	switch {
	case p.stop.Asked():
		return errAsked
	case p.o.udp && p.rec.Now()-begin > lostAfter:
		return errLost
	}
	return nil
}
