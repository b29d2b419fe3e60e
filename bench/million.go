package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"ndpip/stack"
	"ndpip/tcp"
)

// crowd is connections that are established and idle, both ends in this process.
type crowd struct {
	first, last float64 // ns to open one of the first and of the last crowdBlock: of the median burst
	rss         int64   // bytes of the process, DPDK's memory included
}

const (
	crowdBlock = 1000
	crowdPorts = 30000 // connections for each listener: there are 32,768 ports
)

// open opens n connections, in bursts, and times them in blocks.
func (p *pair) crowd(n int) (c crowd, err error) {
	var l *stack.Listener
	var e syscall.Errno
	ns := make([]float64, 0, n/burst+1) // of each burst
	ys := make([]*tcp.Conn, burst)
	for i, port := 0, 0; i < n; i += burst {
		if i/crowdPorts >= port {
			port++
			if l, e = p.b.Listen(0, uint16(2000+port), 1024, stack.Options{}, 0); e != 0 {
				return c, fmt.Errorf("listen: %w", e)
			}
		}
		start := time.Now()
		for range burst {
			if _, e := p.a.Connect(0, p.b.Addr(), l.Lport, stack.Options{}, 0); e != 0 {
				return c, fmt.Errorf("connection %d: %w", i, e)
			}
		}
		p.b.Turn()
		p.a.Turn()
		p.b.Turn()
		if k := p.b.AcceptBurst(l, ys); k != burst {
			return c, fmt.Errorf("%d of %d connections were accepted after %d%s", k, burst, i, p.both())
		}
		ns = append(ns, float64(time.Since(start).Nanoseconds())/burst)
	}
	const block = crowdBlock / burst
	c.first, c.last = median(ns[:block]), median(ns[len(ns)-block:])
	c.rss, err = resident()
	return c, err
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// resident is how much memory this process occupies, hugepages included.
func resident() (n int64, err error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		if name == "VmRSS" || name == "HugetlbPages" {
			kb, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			if err != nil {
				return 0, err
			}
			n += kb << 10
		}
	}
	return n, nil
}

// runMillion measures one bulk connection among many idle ones, beside another pair of stacks where it is alone.
func runMillion(e *env, p point) ([]result, error) {
	alone, err := e.bulk(p)
	if err != nil {
		return nil, err
	}
	defer alone.close()
	among, err := e.bulk(p)
	if err != nil {
		return nil, err
	}
	defer among.close()
	if _, err := alone.crowd(crowdBlock); err != nil { // so that the first ones do not find the code cold
		return nil, err
	}
	c, err := among.crowd(p.Connections)
	if err != nil {
		return nil, err
	}
	e.out.printf("%d connections, both ends here: opened in %.0f ns each at first and %.0f ns at last; the process has %d MiB",
		p.Connections, c.first, c.last, c.rss>>20)
	all, err := measure(e.ctx, e.each, one(func() (float64, error) { return alone.sample(alone.copyRound) }),
		one(func() (float64, error) { return among.sample(among.copyRound) }))
	if err != nil {
		return nil, err
	}
	return []result{newResult("million", p, all[0]).counted()}, nil
}

func (e *env) bulk(p point) (*lockstep, error) {
	w, err := e.stackPair(p.Checksum, 0)
	if err != nil {
		return nil, err
	}
	f, err := w.connect(1, p.MSS)
	if err != nil {
		w.close()
		return nil, err
	}
	return newLockstep(w, f, p.MSS), nil
}
