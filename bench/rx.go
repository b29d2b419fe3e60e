package main

import (
	"fmt"
	"time"

	"ndpip/dpdk"
	"ndpip/stack"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// source makes the segments that the receiving end gets, and throws its acknowledgements away. It has no stack of its
// own: the connections were opened by one that takes no turns any more, and it goes on where that stopped.
type source struct {
	out, back *dpdk.Lane
	heads     []header // per connection
	seq       []tcp.Seq
	mss       int
	plain     bool // datagrams, whose headers do not change
}

func newSource(p *pair, f flows, mss int) *source {
	s := &source{out: p.a.app, back: p.a.worker, mss: mss, heads: make([]header, len(f.x)), seq: make([]tcp.Seq, len(f.x))}
	for i, c := range f.x {
		_, nxt, _ := c.Room()
		ack, _ := c.AckWord()
		way := path{stack.MAC{2, 0, 0, 0, 0, 1}, stack.MAC{2, 0, 0, 0, 0, 2}, c.Laddr, c.Raddr, c.Lport, c.Rport}
		way.segment(s.heads[i][:], wire.TCPFields{Seq: uint32(nxt), Ack: uint32(ack), Window: 65535, Flags: wire.ACK}, 0, mss)
		s.seq[i] = nxt
	}
	return s
}

// send puts a burst on the wire: the first of connection i, each further one of the connection that is step further on. The
// payload is whatever the buffers hold.
func (s *source) send(i, step int) error {
	s.out.Want = burst
	s.out.Exchange(dpdk.OpStock)
	if s.out.NStock < burst {
		return fmt.Errorf("the generator has %d of %d buffers: what was received before was not freed", s.out.NStock, burst)
	}
	for range burst {
		h := &s.heads[i]
		f, _ := s.out.Take()
		f.Addr += headLead
		f.Len = uint32(headLen + s.mss)
		if !s.plain {
			h.setSeq(s.seq[i])
			s.seq[i] += tcp.Seq(s.mss)
		}
		copy(f.Bytes(), h[:headLen])
		s.out.Queue(f)
		i = (i + step) % len(s.heads)
	}
	s.out.Exchange(dpdk.OpTx)
	if s.out.NTx > 0 {
		return fmt.Errorf("the ring refused %d frames", s.out.NTx)
	}
	return nil
}

// drain takes the acknowledgements.
func (s *source) drain() {
	for {
		s.back.Exchange(dpdk.OpFree | dpdk.OpRx)
		if s.back.NRx == 0 {
			return
		}
		for _, f := range s.back.Rx[:s.back.NRx] {
			s.back.Release(f.Handle)
		}
	}
}

// ahead is how many bursts lie in the ring before the clock is started.
const ahead = 8

func runRx(e *env, p point) ([]result, error) {
	w, err := e.stackPair(p.Checksum, 0)
	if err != nil {
		return nil, err
	}
	defer w.close()
	f, err := w.connect(p.Connections, p.MSS)
	if err != nil {
		return nil, err
	}
	src := newSource(w, f, p.MSS)
	in := make([]byte, burst*p.MSS)
	next := 0
	sample := func() (float64, error) {
		var sum time.Duration
		for range rounds / ahead {
			first := next
			for range ahead {
				if err := src.send(next, 0); err != nil {
					return 0, fmt.Errorf("%w%s", err, w.both())
				}
				next = (next + 1) % len(f.y)
			}
			start := time.Now()
			for i := range ahead {
				w.b.Turn()
				if n, e := w.b.Recv(f.y[(first+i)%len(f.y)], in); n != len(in) {
					return 0, fmt.Errorf("read gave %d of %d bytes (%v)%s", n, len(in), e, w.both())
				}
			}
			sum += time.Since(start)
			src.drain()
		}
		return float64(sum.Nanoseconds()) / (rounds * burst), nil
	}
	all, err := measure(e.ctx, e.each, e.floorAt(p.MSS), one(sample).over(p.Connections))
	if err != nil {
		return nil, err
	}
	return []result{newResult("rx", p, all[0]).counted()}, nil
}
