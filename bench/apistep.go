package main

import (
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/api"
	"ndpip/dpdk"
)

// apistep is lockstep through package api, as a program has it: descriptors, epoll, inline hosts. A write is followed
// by the receiver's epoll_wait, which takes its stack's turn and names the ready sockets, by a read of each, and by
// the sender's epoll_wait, which takes its own stack's turn.
type apistep struct {
	x, y    *api.Host
	fds     []int // of x; y's come from its epoll instance
	theirs  []int // of y
	ex, ey  int   // epoll instances
	events  []api.EpollEvent
	mss     int
	out, in []byte
	bufs    []api.Buf
	next    int
}

// apiHosts is two inline hosts on a net_ring pair, the same for all rows. They are not stopped before the process ends:
// what one has sent lies in its own buffers until the other has taken it, so neither can go first.
func (e *env) apiHosts() (x, y *api.Host, err error) {
	if e.hosts[0] != nil {
		return e.hosts[0], e.hosts[1], nil
	}
	pairs++
	ids := [2]uint16{}
	if ids[0], ids[1], err = dpdk.RingPair(fmt.Sprintf("bench%d", pairs), 8192); err != nil {
		return nil, nil, err
	}
	for i, id := range ids {
		e.hosts[i], err = api.Open(api.Config{
			Port: int(id), MAC: []byte{2, 0, 0, 0, 1, byte(1 + i)}, Addr: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 1, byte(1 + i)}), 24),
			Checksum: api.ChecksumOff, Inline: true, WorkerCPU: -1,
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return e.hosts[0], e.hosts[1], nil
}

// newAPIStep opens n connections from x to y.
func newAPIStep(x, y *api.Host, n, mss int) (s *apistep, err error) {
	s = &apistep{x: x, y: y, mss: mss, events: make([]api.EpollEvent, 64),
		out: make([]byte, burst*mss), in: make([]byte, burst*mss), bufs: make([]api.Buf, burst)}
	if s.ex, err = x.EpollCreate(); err != nil {
		return nil, err
	}
	if s.ey, err = y.EpollCreate(); err != nil {
		return nil, err
	}
	l, err := y.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer y.Close(l)
	at := netip.AddrPortFrom(y.Addr(), 7)
	if err := y.Bind(l, at); err != nil {
		return nil, err
	}
	if err := y.Listen(l, 1024); err != nil {
		return nil, err
	}
	accepted := 0
	for start := time.Now(); accepted < n; {
		if time.Since(start) > 10*time.Second {
			return nil, fmt.Errorf("%d of %d connections came up within 10 s%s", accepted, n, s.both())
		}
		for i := len(s.fds) - accepted; i < 256 && len(s.fds) < n; i++ {
			if err := s.open(at); err != nil {
				return nil, err
			}
		}
		if err := s.turns(); err != nil {
			return nil, err
		}
		for {
			fd, _, err := y.Accept(l)
			if err == unix.EAGAIN {
				break
			} else if err != nil {
				return nil, fmt.Errorf("accept: %w", err)
			}
			if err := y.SetNonblock(fd, true); err != nil {
				return nil, err
			}
			if err := y.EpollCtl(s.ey, unix.EPOLL_CTL_ADD, fd, &api.EpollEvent{Events: unix.EPOLLIN, Data: uint64(fd)}); err != nil {
				return nil, err
			}
			s.theirs = append(s.theirs, fd)
			accepted++
		}
	}
	for range 10 {
		if err := s.turns(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *apistep) open(at netip.AddrPort) error {
	fd, err := s.x.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	s.fds = append(s.fds, fd)
	if err := s.x.SetSockOptInt(fd, unix.SOL_SOCKET, api.SO_NDPIP_MAX_TX_SEG, s.mss); err != nil {
		return err
	}
	if err := s.x.Connect(fd, at); err != nil && err != unix.EINPROGRESS {
		return fmt.Errorf("connect: %w", err)
	}
	return nil
}

// turns lets both stacks take a turn.
func (s *apistep) turns() error {
	if _, err := s.x.EpollWait(s.ex, s.events, 0); err != nil {
		return fmt.Errorf("epoll_wait: %w", err)
	}
	if _, err := s.y.EpollWait(s.ey, s.events, 0); err != nil {
		return fmt.Errorf("epoll_wait: %w", err)
	}
	return nil
}

func (s *apistep) sample(round func(fd int) error) (float64, error) {
	start := time.Now()
	for range rounds {
		if err := round(s.fds[s.next]); err != nil {
			return 0, err
		}
		if s.next++; s.next == len(s.fds) {
			s.next = 0
		}
	}
	return float64(time.Since(start).Nanoseconds()) / (rounds * burst), nil
}

// arrived waits, without waiting, for the one socket that has something to read.
func (s *apistep) arrived() (fd int, err error) {
	n, err := s.y.EpollWait(s.ey, s.events, 0)
	if n != 1 || err != nil {
		return 0, fmt.Errorf("epoll_wait names %d sockets instead of one (%v)%s", n, err, s.both())
	}
	return int(s.events[0].Data), nil
}

// linger is a struct linger that makes close reset the connection: nothing stays in TIME-WAIT.
var linger = []byte{1, 0, 0, 0, 0, 0, 0, 0}

// acknowledged lets the sender's stack take the acknowledgement.
func (s *apistep) acknowledged() error {
	_, err := s.x.EpollWait(s.ex, s.events, 0)
	return err
}

func (s *apistep) copyRound(fd int) error {
	if n, err := s.x.Write(fd, s.out); n != len(s.out) {
		return fmt.Errorf("write moved %d of %d bytes (%v)%s", n, len(s.out), err, s.both())
	}
	at, err := s.arrived()
	if err != nil {
		return err
	}
	if n, err := s.y.Read(at, s.in); n != len(s.in) {
		return fmt.Errorf("read moved %d of %d bytes (%v)%s", n, len(s.in), err, s.both())
	}
	return s.acknowledged()
}

func (s *apistep) zeroRound(fd int) error {
	if n, err := s.x.Alloc(fd, s.bufs); n != burst {
		return fmt.Errorf("alloc gave %d of %d buffers (%v)%s", n, burst, err, s.both())
	}
	for i := range s.bufs {
		s.bufs[i].Bytes()[0] = byte(i) // alloc has given each the length of a segment
	}
	if n, err := s.x.Send(fd, s.bufs); n != burst {
		return fmt.Errorf("send took %d of %d buffers (%v)%s", n, burst, err, s.both())
	}
	at, err := s.arrived()
	if err != nil {
		return err
	}
	if n, err := s.y.Recv(at, s.bufs); n != burst {
		return fmt.Errorf("recv gave %d of %d buffers (%v)%s", n, burst, err, s.both())
	}
	for i := range s.bufs {
		if s.bufs[i].Bytes()[0] != byte(i) {
			return fmt.Errorf("buffer %d begins with %d", i, s.bufs[i].Bytes()[0])
		}
	}
	if err := s.y.Free(at, s.bufs); err != nil {
		return fmt.Errorf("free: %w", err)
	}
	return s.acknowledged()
}

// close ends all connections.
func (s *apistep) close() {
	for _, end := range []struct {
		h   *api.Host
		fds []int
	}{{s.x, s.fds}, {s.y, s.theirs}} {
		for i, fd := range end.fds {
			_ = end.h.SetSockOpt(fd, unix.SOL_SOCKET, unix.SO_LINGER, linger)
			_ = end.h.Close(fd)
			if i%64 == 63 {
				_ = s.turns()
			}
		}
	}
	for range 100 {
		_ = s.turns()
	}
	_ = s.x.Close(s.ex)
	_ = s.y.Close(s.ey)
}

func (s *apistep) both() string {
	return fmt.Sprintf("\n  A: %+v\n  B: %+v", s.x.Stats(), s.y.Stats())
}

func runAPI(zero bool) func(*env, point) ([]result, error) {
	return func(e *env, p point) ([]result, error) {
		x, y, err := e.apiHosts()
		if err != nil {
			return nil, err
		}
		s, err := newAPIStep(x, y, p.Connections, p.MSS)
		if err != nil {
			return nil, err
		}
		defer s.close()
		e.watch("counters", s.both)
		name, round := "api-copy", s.copyRound
		if zero {
			name, round = "api-zerocopy", s.zeroRound
		}
		all, err := measure(e.ctx, e.each, e.floorAt(p.MSS), one(func() (float64, error) { return s.sample(round) }).over(p.Connections))
		if err != nil {
			return nil, err
		}
		return []result{newResult(name, p, all[0]).counted()}, nil
	}
}
