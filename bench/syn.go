package main

import (
	"encoding/binary"
	"fmt"
	"time"

	"ndpip/dpdk"
	"ndpip/stack"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// flood stands between the receiver's worker lane and its driver, and lets SYNs arrive from addresses and ports that
// nobody has.
type flood struct {
	port *dpdk.Lane // the worker's lane as it is
	bufs *dpdk.Lane // buffers for the SYNs
	mode floodMode
	syn  []byte
	n    uint32
}

type floodMode int

const (
	floodOff     floodMode = iota
	floodBetween           // a SYN behind each frame that arrives
	floodAlone             // a burst of SYNs and nothing else
	floodMade              // a burst of SYNs that is made, and thrown away before the stack sees it
)

// Exchange is the lane's, with the SYNs.
func (k *flood) Exchange(b *dpdk.Block, op dpdk.Op) {
	k.port.Exchange(op)
	if op&dpdk.OpRx == 0 || b.RxMax == 0 {
		return
	}
	switch k.mode {
	case floodOff:
	case floodBetween:
		for i := int(b.NRx) - 1; i >= 0; i-- {
			b.Rx[2*i] = b.Rx[i]
			b.Rx[2*i+1] = k.frame()
		}
		b.NRx *= 2
	case floodAlone, floodMade:
		for i := range burst {
			b.Rx[i] = k.frame()
		}
		b.NRx = burst
		if k.mode == floodMade {
			for i := range burst {
				b.Free[b.NFree] = b.Rx[i].Handle
				b.NFree++
			}
			b.NRx = 0
		}
	}
}

// Hz is the lane's.
func (k *flood) Hz() uint64 { return k.port.Hz() }

// frame is the next SYN.
func (k *flood) frame() dpdk.Frame {
	if k.bufs.NStock == 0 {
		k.bufs.Want = 2 * burst
		k.bufs.Exchange(dpdk.OpStock)
	}
	f, _ := k.bufs.Take()
	f.Len = uint32(len(k.syn))
	b := f.Bytes()
	copy(b, k.syn)
	k.n++
	b[29] = byte(3 + k.n%250)                             // 10.0.0.3 to .252
	binary.BigEndian.PutUint16(b[34:], uint16(k.n))       // the port
	sum := ^uint16(0) - binary.BigEndian.Uint16(b[24:26]) // brought up to date, RFC 1624
	total := uint32(sum) + uint32(b[29]) - uint32(k.syn[29])
	binary.BigEndian.PutUint16(b[24:], ^uint16(total+total>>16))
	return f
}

func newFlood(w *side, port uint16) (*flood, error) {
	bufs, err := w.port.NewLane(-1, 0, w.pools[0])
	if err != nil {
		return nil, err
	}
	k := &flood{port: w.worker, bufs: bufs, syn: make([]byte, headLen+4)}
	way := path{stack.MAC{2, 0, 0, 0, 0, 1}, stack.MAC{2, 0, 0, 0, 0, 2}, 0x0a000003, 0x0a000002, 1, port}
	wire.PutOptions(k.syn[headLen:], wire.Options{MSS: 1460, Scale: wire.NoScale})
	way.segment(k.syn, wire.TCPFields{Seq: 12345, Window: 65535, Flags: wire.SYN}, 4, 0)
	return k, nil
}

// The parts of a sample.
const (
	synBulk    = iota // a burst of the bulk connection
	synBetween        // the same with as many SYNs between
	synAlone          // a turn with a burst of SYNs
	synMade           // a turn with nothing, and the making of a burst of SYNs
	synEmpty          // a turn with nothing
	synParts
)

// runSyn measures what a SYN of a flood costs, and what it does to a bulk connection.
func runSyn(e *env, p point) ([]result, error) {
	w, k, err := e.flooded(p.Checksum)
	if err != nil {
		return nil, err
	}
	defer w.close()
	defer dpdk.FreeLane(k.bufs)
	f, err := w.connect(1, p.MSS)
	if err != nil {
		return nil, err
	}
	l := newLockstep(w, f, p.MSS)
	turn := func(_, _ *tcp.Conn) error { w.b.Turn(); return nil }
	all, err := measure(e.ctx, e.each, e.floorAt(p.MSS), sampler{parts: synParts, warm: 3, take: func(out []float64) (int, error) {
		for i, part := range []struct {
			mode  floodMode
			round func(x, y *tcp.Conn) error
		}{{floodOff, l.copyRound}, {floodBetween, l.copyRound}, {floodAlone, turn}, {floodMade, turn}, {floodOff, turn}} {
			k.mode = part.mode
			if out[i], err = l.sample(part.round); err != nil {
				return 0, err
			}
		}
		k.mode = floodOff
		return synParts * rounds * burst, w.quiet()
	}})
	if err != nil {
		return nil, err
	}
	syn, own := make([]block, nblocks), make([]block, nblocks)
	for i := range nblocks {
		at := func(part int) float64 { return all[part][i].ns }
		syn[i] = block{ns: at(synAlone) - at(synMade), floor: all[0][i].floor, allocs: all[0][i].allocs}
		own[i] = block{ns: at(synBetween) - (at(synAlone) - at(synEmpty)), floor: at(synBulk), allocs: all[0][i].allocs}
	}
	n := w.b.Counters()
	e.out.printf("%d SYNs, of which %d were answered by a cookie; %d connections", k.n, n.CookiesSent, n.Connections)
	return []result{newResult("syn", p, syn).counted(), newResult("syn-bulk", p, own).counted()}, nil
}

// quiet takes what the receiver has sent for the flood off the wire.
func (p *pair) quiet() error {
	for p.a.Turn() {
	}
	return nil
}

// flooded is a pair of stacks of which B has a listener whose backlog is full of connections that will not come up, long
// enough for it to take that for a flood.
func (e *env) flooded(checksum string) (*pair, *flood, error) {
	w, err := e.stackPair(checksum, 0)
	if err != nil {
		return nil, nil, err
	}
	flowPort++
	k, err := newFlood(w.b, flowPort)
	if err != nil {
		w.close()
		return nil, nil, err
	}
	b := w.b.Config()
	w.b.Stack = stack.New(stack.Config{MAC: b.MAC, Addr: b.Addr, Checksum: b.Checksum}, dpdk.NewLane(w.b.worker.Block, k), *w.b.app)
	if _, errno := w.b.Listen(0, flowPort, 128, stack.Options{}, 0); errno != 0 {
		w.close()
		return nil, nil, fmt.Errorf("listen: %w", errno)
	}
	for start := time.Now(); time.Since(start) < 1500*time.Millisecond; time.Sleep(time.Millisecond) {
		k.mode = floodAlone
		w.b.Turn()
		k.mode = floodOff
		_ = w.quiet()
	}
	if n := w.b.Counters(); n.CookiesSent == 0 || n.Connections != 128 {
		w.close()
		return nil, nil, fmt.Errorf("the flood is not seen as one%s", w.both())
	}
	return w, k, nil
}
