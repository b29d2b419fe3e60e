package main

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"ndpip/stack"
	"ndpip/tcp"
)

// cycle is the life of connections, both ends on one core: connect, accept, 64 bytes and 64 back, close by the client and
// then by the server. The client's side stays in TIME-WAIT, so that soon every port is in it and each connection takes
// the one that has been so for longest.
type cycle struct {
	*pair
	l       *stack.Listener
	port    uint16
	x, y    []*tcp.Conn
	out, in []byte
}

const (
	cycleBytes   = 64
	cycleSample  = 512 // connections in a sample, and of the kernel's:
	linuxSample  = 64
	cycleBacklog = 1024
)

func newCycle(p *pair, n int) (*cycle, error) {
	if _, err := p.connect(1, 1460); err != nil { // the stacks know each other by now
		return nil, err
	}
	flowPort++
	l, e := p.b.Listen(0, flowPort, cycleBacklog, stack.Options{}, 0)
	if e != 0 {
		return nil, fmt.Errorf("listen: %w", e)
	}
	return &cycle{pair: p, l: l, port: flowPort, x: make([]*tcp.Conn, n), y: make([]*tcp.Conn, n),
		out: make([]byte, cycleBytes), in: make([]byte, cycleBytes)}, nil
}

// round is the life of len(x) connections at once.
func (c *cycle) round() error {
	a, b := c.a, c.b
	for i := range c.x {
		var e syscall.Errno
		if c.x[i], e = a.Connect(0, b.Addr(), c.port, stack.Options{}, 0); e != 0 {
			return c.fault("connect", i, e)
		}
	}
	for range (2*len(c.x)-1)/burst + 1 {
		b.Turn()
	}
	a.Turn()
	for i, x := range c.x {
		if n, e := a.Send(x, c.out); n != cycleBytes {
			return c.fault("write", i, e)
		}
	}
	for range (2*len(c.x)-1)/burst + 1 { // each has sent an ACK and its text
		b.Turn()
	}
	if n := b.AcceptBurst(c.l, c.y); n != len(c.y) {
		return c.fault("accept", n, 0)
	}
	for i, y := range c.y {
		if n, e := b.Recv(y, c.in); n != cycleBytes {
			return c.fault("read", i, e)
		}
		if n, e := b.Send(y, c.in); n != cycleBytes {
			return c.fault("answer", i, e)
		}
	}
	for range (2*len(c.x)-1)/burst + 1 {
		a.Turn()
	}
	for i, x := range c.x {
		if n, e := a.Recv(x, c.in); n != cycleBytes {
			return c.fault("read of the answer", i, e)
		}
		a.Close(x)
	}
	for range (2*len(c.x)-1)/burst + 1 {
		b.Turn()
	}
	for i, y := range c.y {
		if n, e := b.Recv(y, c.in); n != 0 || e != 0 {
			return c.fault("read of the end", i, e)
		}
		b.Close(y)
	}
	for range (2*len(c.x)-1)/burst + 1 {
		a.Turn() // and b takes the last ACK together with the next SYN
	}
	return nil
}

func (c *cycle) fault(call string, i int, e syscall.Errno) error {
	return fmt.Errorf("%s of connection %d of %d failed (%v)%s", call, i, len(c.x), e, c.both())
}

// sample gives the ns per connection.
func (c *cycle) sample() (float64, error) {
	start := time.Now()
	for range cycleSample / len(c.x) {
		if err := c.round(); err != nil {
			return 0, err
		}
	}
	return float64(time.Since(start).Nanoseconds()) / cycleSample, nil
}

func runCycle(name string, archive int) func(*env, point) ([]result, error) {
	return func(e *env, p point) ([]result, error) {
		linux, back, err := e.linuxBeside(p.Connections)
		var skip errSkip
		if errors.As(err, &skip) {
			e.out.printf("%s has no figure of the kernel's beside it: %s", name, skip.why)
			linux, back = one(func() (float64, error) { return 0, nil }), func() {}
		} else if err != nil {
			return nil, err
		}
		defer back()
		w, err := e.stackPair(p.Checksum, archive)
		if err != nil {
			return nil, err
		}
		defer w.close()
		c, err := newCycle(w, p.Connections)
		if err != nil {
			return nil, err
		}
		it := sampler{parts: 1, warm: 2 * 32768 / cycleSample, take: func(out []float64) (n int, err error) {
			out[0], err = c.sample()
			return cycleSample, err
		}}
		all, err := measure(e.ctx, e.each, linux, it)
		if err != nil {
			return nil, err
		}
		return []result{newResult(name, p, all[0]).counted().perCycle()}, nil
	}
}

// linuxBeside is the kernel's sampler, for the same number of connections at once.
func (e *env) linuxBeside(n int) (s sampler, back func(), err error) {
	v, err := e.newVeth(1460)
	if err != nil {
		return s, nil, err
	}
	ip, err := systemTool("ip")
	if err != nil {
		v.remove()
		return s, nil, err
	}
	// As in tcpSocket, but by the route: a call for each socket would count.
	for ns, addr := range map[string]string{v.from: vethFrom, v.to: vethTo} {
		if err := e.command(10*time.Second, "", ip, "-n", ns, "route", "replace", "10.3.0.0/24", "dev", vethName, "proto", "kernel", "scope", "link", "src", addr,
			"congctl", "cubic"); err != nil {
			v.remove()
			return s, nil, err
		}
	}
	c, home, err := newLinuxCycle(v, n)
	if err != nil {
		v.remove()
		return s, nil, err
	}
	return one(c.sample), func() { home(); v.remove() }, nil
}
