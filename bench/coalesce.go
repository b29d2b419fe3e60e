package main

import (
	"fmt"
	"time"

	"ndpip/stack"
	"ndpip/stack/wire"
	"ndpip/tcp"
	"ndpip/udp"
)

// Receive coalescing: the receiving end alone, as in rx, on two stacks by turns, one of which takes each frame by itself.
// The other's figure is the row's floor.

// arrivals is a receiving end and what is sent to it.
type arrivals struct {
	*pair
	send func(i int) error // a burst, the i-th
	read func(i int) error // what it has brought
}

// sample is ns per segment of the turns and the reads.
func (a *arrivals) sample(src *source) (float64, error) {
	var sum time.Duration
	for range rounds / ahead {
		for i := range ahead {
			if err := a.send(i); err != nil {
				return 0, fmt.Errorf("%w%s", err, a.both())
			}
		}
		start := time.Now()
		for i := range ahead {
			a.b.Turn()
			if err := a.read(i); err != nil {
				return 0, fmt.Errorf("%w%s", err, a.both())
			}
		}
		sum += time.Since(start)
		src.drain()
	}
	return float64(sum.Nanoseconds()) / (rounds * burst), nil
}

// bulkArrivals are bursts of one connection.
func bulkArrivals(w *pair, f flows, mss int) (*arrivals, *source) {
	src := newSource(w, f, mss)
	in := make([]byte, burst*mss)
	return &arrivals{w, func(int) error { return src.send(0, 0) }, func(int) error { return readAll(w.b.Stack, f.y[0], in) }}, src
}

// mixedArrivals are bursts in which no two neighbours are of the same connection.
func mixedArrivals(w *pair, f flows, mss int) (*arrivals, *source) {
	src := newSource(w, f, mss)
	in := make([]byte, mss)
	n := len(f.y)
	return &arrivals{w, func(i int) error { return src.send(i*burst%n, 1) }, func(i int) error {
		for k := range burst {
			if err := readAll(w.b.Stack, f.y[(i*burst+k)%n], in); err != nil {
				return err
			}
		}
		return nil
	}}, src
}

func readAll(s *stack.Stack, c *tcp.Conn, in []byte) error {
	if n, e := s.Recv(c, in); n != len(in) {
		return fmt.Errorf("read gave %d of %d bytes (%v)", n, len(in), e)
	}
	return nil
}

// udpPort is the port of the receiving socket.
const udpPort = 7777

// datagramArrivals are bursts of datagrams for one socket, with as much payload as the other rows' segments.
func datagramArrivals(w *pair, size int) (*arrivals, *source, error) {
	u, e := w.b.OpenUDP(0, udpPort, stack.Options{})
	if e != 0 {
		return nil, nil, e
	}
	// The header is shorter than a segment's, and so the source's own "mss" with it.
	src := &source{out: w.a.app, back: w.a.worker, mss: size - (wire.TCPLen - wire.UDPLen), heads: make([]header, 1), seq: make([]tcp.Seq, 1), plain: true}
	h := src.heads[0][:]
	at := wire.PutEthernet(h, w.b.Config().MAC, w.a.Config().MAC, wire.TypeIPv4)
	at += wire.PutIPv4(h[at:], w.a.Addr(), w.b.Addr(), wire.ProtoUDP, wire.IPv4Len+wire.UDPLen+size, 0)
	wire.PutUDP(h[at:], udpPort, udpPort, wire.UDPLen+size, 0)
	in := make([]byte, size)
	return &arrivals{w, func(int) error { return src.send(0, 0) }, func(int) error { return readDatagrams(w.b.Stack, u, in) }}, src, nil
}

func readDatagrams(s *stack.Stack, u *udp.Sock, in []byte) error {
	for range burst {
		if n, _, _, _, e := s.RecvFrom(u, in); n != len(in) || e != 0 {
			return fmt.Errorf("a datagram gave %d of %d bytes (%w)", n, len(in), e)
		}
	}
	return nil
}

// runCoalesce measures both stacks in turn.
func runCoalesce(name string) func(*env, point) ([]result, error) {
	return func(e *env, p point) ([]result, error) {
		var ways [2]*arrivals
		var srcs [2]*source
		for i := range ways {
			w, err := e.stackPairWith(stack.Config{Checksum: sums(p.Checksum), NoCoalesce: i == 1})
			if err != nil {
				return nil, err
			}
			defer w.close()
			if name == "coalesce-udp" {
				if ways[i], srcs[i], err = datagramArrivals(w, p.MSS); err != nil {
					return nil, err
				}
				continue
			}
			f, err := w.connect(p.Connections, p.MSS)
			if err != nil {
				return nil, err
			}
			if ways[i], srcs[i] = bulkArrivals(w, f, p.MSS); p.Connections > 1 {
				ways[i], srcs[i] = mixedArrivals(w, f, p.MSS)
			}
		}
		on := func(i int) sampler {
			return one(func() (float64, error) { return ways[i].sample(srcs[i]) }).over(p.Connections)
		}
		all, err := measure(e.ctx, e.each, on(1), on(0))
		if err != nil {
			return nil, err
		}
		n := ways[0].b.Counters()
		e.out.printf("%s: %d of %d segments in %d runs", name, n.Coalesced, n.RxSegments, n.Runs)
		return []result{newResult(name, p, all[0]).counted()}, nil
	}
}
