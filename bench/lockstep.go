package main

import (
	"fmt"
	"syscall"
	"time"

	"ndpip/dpdk"
	"ndpip/stack"
	"ndpip/tcp"
)

// flows are connections between two stacks: x[i] and y[i] are the ends of one.
type flows struct{ x, y []*tcp.Conn }

var flowPort uint16 = 1000

// connect opens n connections whose segments have mss bytes.
func (p *pair) connect(n, mss int) (f flows, err error) {
	flowPort++
	l, e := p.b.Listen(0, flowPort, 1024, stack.Options{}, 0)
	if e != 0 {
		return f, fmt.Errorf("listen: %w", e)
	}
	for start := time.Now(); len(f.y) < n; {
		if time.Since(start) > 10*time.Second {
			return f, fmt.Errorf("%d of %d connections came up within 10 s%s", len(f.y), n, p.both())
		}
		for i := len(f.x) - len(f.y); i < 256 && len(f.x) < n; i++ {
			c, e := p.a.Connect(0, p.b.Addr(), flowPort, stack.Options{MaxTxSeg: mss}, uint32(len(f.x)))
			if e != 0 {
				return f, fmt.Errorf("connect: %w", e)
			}
			f.x = append(f.x, c)
		}
		p.turns(1)
		for c := p.b.Accept(l); c != nil; c = p.b.Accept(l) {
			f.y = append(f.y, c)
		}
	}
	p.turns(10)
	by := map[uint16]*tcp.Conn{}
	for _, c := range f.y {
		by[c.Rport] = c
	}
	for i, c := range f.x {
		f.y[i] = by[c.Lport]
	}
	return f, nil
}

func (p *pair) turns(n int) {
	for range n {
		p.a.Turn()
		p.b.Turn()
	}
}

// lockstep is both ends on one core: app A writes a burst, stack B takes its turn, app B reads, stack A takes its
// turn; then the next connection.
type lockstep struct {
	*pair
	flows
	mss     int
	out, in []byte // the applications' buffers: a burst
	next    int
}

func newLockstep(p *pair, f flows, mss int) *lockstep {
	return &lockstep{pair: p, flows: f, mss: mss, out: make([]byte, burst*mss), in: make([]byte, burst*mss)}
}

// flow is the connection whose turn it is.
func (l *lockstep) flow() (x, y *tcp.Conn) {
	x, y = l.x[l.next], l.y[l.next]
	if l.next++; l.next == len(l.x) {
		l.next = 0
	}
	return x, y
}

// sample gives the ns per segment of the whole way.
func (l *lockstep) sample(round func(x, y *tcp.Conn) error) (float64, error) {
	start := time.Now()
	for range rounds {
		if err := round(l.flow()); err != nil {
			return 0, err
		}
	}
	return float64(time.Since(start).Nanoseconds()) / (rounds * burst), nil
}

func (l *lockstep) copyRound(x, y *tcp.Conn) error {
	if n, e := l.a.Send(x, l.out); n != len(l.out) {
		return l.short("write", n, len(l.out), "bytes", e)
	}
	l.b.Turn()
	if n, e := l.b.Recv(y, l.in); n != len(l.in) {
		return l.short("read", n, len(l.in), "bytes", e)
	}
	l.a.Turn()
	return nil
}

// zeroRound is copyRound with the zero-copy calls; the payload is touched as little as an application can.
func (l *lockstep) zeroRound(x, y *tcp.Conn) error {
	a, b := l.a, l.b
	var f [burst]dpdk.Frame
	if n := a.AllocBufs(f[:]); n != burst {
		return l.short("alloc", n, burst, "buffers", syscall.ENOBUFS)
	}
	for i := range f {
		f[i].Len = uint32(l.mss)
		f[i].Bytes()[0] = byte(i)
	}
	if n, e := a.SendBufs(x, f[:]); n != burst {
		return l.short("send", n, burst, "buffers", e)
	}
	b.Turn()
	if n, e := b.RecvBufs(y, f[:]); n != burst {
		return l.short("recv", n, burst, "buffers", e)
	}
	for i := range f {
		if f[i].Bytes()[0] != byte(i) {
			return fmt.Errorf("buffer %d begins with %d", i, f[i].Bytes()[0])
		}
	}
	b.FreeBufs(f[:], true)
	a.Turn()
	return nil
}

// short is a call that did not move the whole burst: in lockstep it always can.
func (l *lockstep) short(call string, got, want int, unit string, e syscall.Errno) error {
	return fmt.Errorf("%s moved %d of %d %s (%v)%s", call, got, want, unit, e, l.both())
}

func runLockstep(zero bool) func(*env, point) ([]result, error) {
	return func(e *env, p point) ([]result, error) {
		w, err := e.stackPair(p.Checksum, 0)
		if err != nil {
			return nil, err
		}
		defer w.close()
		f, err := w.connect(p.Connections, p.MSS)
		if err != nil {
			return nil, err
		}
		l := newLockstep(w, f, p.MSS)
		name, round := "lockstep-copy", l.copyRound
		if zero {
			name, round = "lockstep-zerocopy", l.zeroRound
		}
		all, err := measure(e.ctx, e.each, e.floorAt(p.MSS), one(func() (float64, error) { return l.sample(round) }).over(p.Connections))
		if err != nil {
			return nil, err
		}
		return []result{newResult(name, p, all[0]).counted()}, nil
	}
}
