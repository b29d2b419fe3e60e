package main

import (
	"fmt"
	"time"

	"ndpip/dpdk"
	"ndpip/stack"
	"ndpip/tcp"
)

// flows opens n connections from a to b, whose segments have mss bytes.
func flows(a, b *side, n, mss int) (ca, cb []*tcp.Conn, err error) {
	flowPort++
	l, e := b.Listen(0, flowPort, 1024, stack.Options{}, 0)
	if e != 0 {
		return nil, nil, e
	}
	for start := time.Now(); len(cb) < n; {
		if time.Since(start) > 10*time.Second {
			return nil, nil, fmt.Errorf("%d of %d connections came up: %+v", len(cb), n, b.Counters())
		}
		for i := len(ca) - len(cb); i < 256 && len(ca) < n; i++ {
			c, e := a.Connect(0, b.Addr(), flowPort, stack.Options{MaxTxSeg: mss}, uint32(len(ca)))
			if e != 0 {
				return nil, nil, e
			}
			ca = append(ca, c)
		}
		a.Turn()
		b.Turn()
		for c := b.Accept(l); c != nil; c = b.Accept(l) {
			cb = append(cb, c)
		}
	}
	for range 10 {
		a.Turn()
		b.Turn()
	}
	// The two lists in one order.
	by := map[uint16]*tcp.Conn{}
	for _, c := range cb {
		by[c.Rport] = c
	}
	for i, c := range ca {
		cb[i] = by[c.Lport]
	}
	return ca, cb, nil
}

var flowPort uint16 = 1000

// copyRound moves one write of a full burst from x to y: app A writes, stack B takes its turn, app B reads, stack A
// takes its turn.
func copyRound(a, b *side, x, y *tcp.Conn, out, in []byte) error {
	if n, e := a.Send(x, out); n != len(out) {
		return fmt.Errorf("write: %d of %d bytes: %v", n, len(out), e)
	}
	b.Turn()
	if n, e := b.Recv(y, in); n != len(in) {
		return fmt.Errorf("read: %d of %d bytes: %v", n, len(in), e)
	}
	a.Turn()
	return nil
}

// zeroRound is copyRound with the zero-copy calls; the payload is touched as little as an application can.
func zeroRound(a, b *side, x, y *tcp.Conn, mss int) error {
	var f [burst]dpdk.Frame
	if n := a.AllocBufs(f[:]); n != burst {
		return fmt.Errorf("alloc: %d of %d buffers", n, burst)
	}
	for i := range f {
		f[i].Len = uint32(mss)
		f[i].Bytes()[0] = byte(i)
	}
	if n, e := a.SendBufs(x, f[:]); n != burst {
		return fmt.Errorf("send: %d of %d buffers: %v", n, burst, e)
	}
	b.Turn()
	n, e := b.RecvBufs(y, f[:])
	if n != burst {
		return fmt.Errorf("recv: %d of %d buffers: %v", n, burst, e)
	}
	sum := byte(0)
	for i := range f {
		sum += f[i].Bytes()[0]
	}
	b.FreeBufs(f[:n], true)
	a.Turn()
	return nil
}

// lockstep is both ends on one core, connections in turn.
type lockstep struct {
	a, b    *side
	ca, cb  []*tcp.Conn
	mss     int
	zero    bool
	out, in []byte
	next    int
}

func newLockstep(a, b *side, ca, cb []*tcp.Conn, mss int, zero bool) *lockstep {
	return &lockstep{a: a, b: b, ca: ca, cb: cb, mss: mss, zero: zero, out: make([]byte, burst*mss), in: make([]byte, burst*mss)}
}

// sample gives the ns per segment of the whole way.
func (l *lockstep) sample() (float64, error) {
	start := time.Now()
	for range rounds {
		x, y := l.ca[l.next], l.cb[l.next]
		var err error
		if l.zero {
			err = zeroRound(l.a, l.b, x, y, l.mss)
		} else {
			err = copyRound(l.a, l.b, x, y, l.out, l.in)
		}
		if err != nil {
			return 0, err
		}
		if l.next++; l.next == len(l.ca) {
			l.next = 0
		}
	}
	return float64(time.Since(start).Nanoseconds()) / (rounds * burst), nil
}
