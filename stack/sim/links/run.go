package main

import (
	"net/netip"
	"time"

	"ndpip/dpdk"
	"ndpip/stack"
	"ndpip/stack/link"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// sim is two stacks at the ends of one path, and streams from one to the other. It has no checks, unlike package sim:
// those runs are of seconds, and these of minutes.
type sim struct {
	link    *link.Link
	a, b    *side
	streams []*stream
	buf     []byte
}

type side struct {
	*stack.Stack
	since time.Duration // on the link's clock: when the stack's began
}

type stream struct {
	from, to *tcp.Conn
	read     uint64
	start    time.Duration // on the link's clock
}

const (
	mss      = 1460
	addrB    = 0x0a000002
	basePort = 1000
	// together is how long arrivals are gathered, so that a turn has more than one frame. It is short beside the round trip.
	together = 50 * time.Microsecond
	// apart is how long after one stream the next one starts: with all at once, all would leave slow start together.
	apart = 500 * time.Millisecond
)

func newSim(path link.Path, window int, controls []string, seed uint64) *sim {
	buffers := 4096 + len(controls)*3*window/mss
	port := link.Port{Buffers: buffers, TxBuffers: buffers, BufSize: 1728, Trusted: true}
	back := link.Path{Rate: path.Rate, Delay: path.Delay}
	r := &sim{link: link.New(link.Config{Seed: seed, A: port, B: port, AB: path, BA: back}), buf: make([]byte, 1<<16)}
	host := func(e *link.End, own, other byte) *side {
		ip := func(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, n}) }
		mac := func(n byte) wire.MAC { return wire.MAC{2, 0, 0, 0, 0, n} }
		return &side{stack.New(stack.Config{MAC: mac(own), Addr: netip.PrefixFrom(ip(own), 24), Neighbours: map[netip.Addr]stack.MAC{ip(other): mac(other)},
			RcvBuf: window, SndBuf: window, Checksum: stack.ChecksumOff, Burst: dpdk.RxCap, RxBuffers: buffers, TxBuffers: buffers,
			Seed: uint64(own)}, *e.NewLane(true), *e.NewLane(false)), r.link.Now()}
	}
	r.a, r.b = host(r.link.A, 1, 2), host(r.link.B, 2, 1)
	for i, c := range controls {
		id, ok := tcp.ControlNamed(c)
		if !ok {
			panic("no control " + c)
		}
		o := stack.Options{Congestion: id}
		l, e := r.b.Listen(0, uint16(basePort+i), 1, o, 0)
		if e != 0 {
			panic(e)
		}
		s := &stream{start: r.link.Now() + time.Duration(i)*apart}
		if s.from, e = r.a.Connect(0, addrB, uint16(basePort+i), o, uint32(i)); e != 0 {
			panic(e)
		}
		r.streams = append(r.streams, s)
		for s.to == nil {
			r.step(r.link.Now() + time.Second)
			s.to = r.b.Accept(l)
		}
	}
	return r
}

// step lets everybody do what there is to do, and goes on to the next event.
func (r *sim) step(end time.Duration) {
	for busy := true; busy; {
		busy = r.a.Turn()
		busy = r.b.Turn() || busy
		for _, s := range r.streams {
			if s.to == nil || r.link.Now() < s.start {
				continue
			}
			for n, _ := r.b.Recv(s.to, r.buf); n > 0; n, _ = r.b.Recv(s.to, r.buf) {
				s.read += uint64(n)
			}
			for n, _ := r.a.Send(s.from, r.buf); n > 0; n, _ = r.a.Send(s.from, r.buf) {
				busy = true
			}
		}
		r.a.Flush()
		r.b.Flush()
	}
	next := end
	if at, ok := r.link.NextArrival(); ok {
		next = min(next, at+together)
	}
	for _, e := range []*side{r.a, r.b} {
		if at, ok := e.Deadline(); ok {
			next = min(next, e.since+at)
		}
	}
	for _, s := range r.streams {
		if s.start > r.link.Now() {
			next = min(next, s.start)
		}
	}
	r.link.AdvanceTo(max(next, r.link.Now()+time.Microsecond))
}

func (r *sim) until(end time.Duration) {
	for r.link.Now() < end {
		r.step(end)
	}
}

// measure gives the goodput of each stream in Mb/s, for d, after warm.
func (r *sim) measure(warm, d time.Duration) (got []float64) {
	begin := r.link.Now()
	r.until(begin + warm)
	before := make([]uint64, len(r.streams))
	for i, s := range r.streams {
		before[i] = s.read
	}
	r.until(begin + warm + d)
	for i, s := range r.streams {
		got = append(got, float64(s.read-before[i])*8/d.Seconds()/1e6)
	}
	return got
}
