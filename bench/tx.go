package main

import (
	"fmt"
	"net/netip"
	"time"

	"ndpip/dpdk"
	"ndpip/stack"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// sink is the peer behind a port that swallows everything: it answers each SYN, and acknowledges what it is told to.
// It stands between the worker's lane and its driver.
type sink struct {
	port  *dpdk.Lane // the worker's lane as it is
	bufs  *dpdk.Lane // buffers for what the peer sends
	due   []dpdk.Frame
	acks  map[uint16]header // by the connection's own port
	scale int8              // of its window; 0: none
}

// Exchange is the lane's, with a look at what is sent and something to be received.
func (k *sink) Exchange(b *dpdk.Block, op dpdk.Op) {
	if op&dpdk.OpTx != 0 {
		for _, f := range b.Tx[:b.NTx] {
			k.look(f.Bytes())
		}
	}
	k.port.Exchange(op)
	if op&dpdk.OpRx != 0 {
		n := copy(b.Rx[:b.RxMax], k.due)
		b.NRx = uint32(n)
		k.due = k.due[:copy(k.due, k.due[n:])]
	}
}

// Hz is the lane's.
func (k *sink) Hz() uint64 { return k.port.Hz() }

const sinkISS = 1000

// look answers a SYN.
func (k *sink) look(b []byte) {
	h, _ := wire.ParseIPv4(b[wire.EthLen:], false)
	if h == nil || h.Proto() != wire.ProtoTCP {
		return
	}
	t, _ := wire.ParseTCP(b[wire.EthLen+wire.IPv4Len : wire.EthLen+h.Len()])
	if t == nil || t.Flags()&wire.SYN == 0 {
		return
	}
	way := path{wire.EthDst(b), wire.EthSrc(b), h.Dst(), h.Src(), t.DstPort(), t.SrcPort()}
	var syn [80]byte
	scale := int8(wire.NoScale)
	if k.scale != 0 {
		scale = k.scale
	}
	options := wire.PutOptions(syn[headLen:], wire.Options{MSS: 1460, Scale: scale})
	way.segment(syn[:], wire.TCPFields{Seq: sinkISS, Ack: t.Seq() + 1, Window: 65535, Flags: wire.SYN | wire.ACK}, options, 0)
	k.receive(syn[:headLen+options])
	var ack header
	way.segment(ack[:], wire.TCPFields{Seq: sinkISS + 1, Ack: t.Seq() + 1, Window: 65535, Flags: wire.ACK}, 0, 0)
	k.acks[t.SrcPort()] = ack
}

// receive lets a frame arrive.
func (k *sink) receive(b []byte) {
	if k.bufs.NStock == 0 {
		k.bufs.Want = 64
		k.bufs.Exchange(dpdk.OpStock)
	}
	f, ok := k.bufs.Take()
	if !ok {
		return
	}
	f.Len = uint32(len(b))
	copy(f.Bytes(), b)
	k.due = append(k.due, f)
}

// sending is the sending end alone: a write, and the turn that takes its acknowledgement.
type sending struct {
	*side
	peer  *sink
	conns []*tcp.Conn
	acks  []header
	out   []byte
	next  int
}

func newSending(e *env, p point) (*sending, error) {
	pairs++
	device := fmt.Sprintf("net_null%d", pairs)
	if err := dpdk.VdevInit(device, "no-rx=1"); err != nil {
		return nil, err
	}
	id, err := dpdk.PortByName(device)
	if err != nil {
		return nil, err
	}
	s := &sending{out: make([]byte, burst*p.MSS)}
	if s.side, err = newSide(id); err != nil {
		return nil, err
	}
	bufs, err := s.port.NewLane(-1, 0, s.pools[0])
	if err != nil {
		return nil, err
	}
	s.peer = &sink{port: s.worker, bufs: bufs, acks: map[uint16]header{}}
	own, far := netip.MustParsePrefix("10.0.2.1/24"), netip.MustParseAddr("10.0.2.2")
	s.Stack = stack.New(stack.Config{
		MAC: stack.MAC{2, 0, 0, 0, 2, 1}, Addr: own, Checksum: sums(p.Checksum),
		Neighbours: map[netip.Addr]stack.MAC{far: {2, 0, 0, 0, 2, 2}},
	}, dpdk.NewLane(s.worker.Block, s.peer), *s.app)
	e.watch("counters", func() string { return fmt.Sprintf("%+v", s.Counters()) })
	return s, s.connect(p, far)
}

func (s *sending) connect(p point, to netip.Addr) error {
	for range p.Connections {
		c, e := s.Connect(0, wire.FromAddr(to), 7, stack.Options{MaxTxSeg: p.MSS}, 1)
		if e != 0 {
			return fmt.Errorf("connect: %w", e)
		}
		s.conns = append(s.conns, c)
		s.Turn()
		s.Turn()
		if c.State() != tcp.Established {
			return fmt.Errorf("connection %d is in %v after a SYN-ACK: %+v", len(s.conns), c.State(), s.Counters())
		}
		s.acks = append(s.acks, s.peer.acks[c.Lport])
	}
	return nil
}

func (s *sending) sample() (float64, error) {
	start := time.Now()
	for range rounds {
		c, ack := s.conns[s.next], &s.acks[s.next]
		if n, e := s.Send(c, s.out); n != len(s.out) {
			return 0, fmt.Errorf("write moved %d of %d bytes (%v): %+v", n, len(s.out), e, s.Counters())
		}
		_, nxt, _ := c.Room()
		ack.setAck(nxt)
		s.peer.receive(ack[:headLen])
		s.Turn()
		if s.next++; s.next == len(s.conns) {
			s.next = 0
		}
	}
	return float64(time.Since(start).Nanoseconds()) / (rounds * burst), nil
}

func (s *sending) close() {
	s.AbortAll()
	s.Turn()
	dpdk.FreeLane(s.peer.bufs)
	device := s.port.Name()
	s.side.close()
	_ = dpdk.VdevUninit(device)
}

func runTx(e *env, p point) ([]result, error) {
	s, err := newSending(e, p)
	if err != nil {
		return nil, err
	}
	defer s.close()
	all, err := measure(e.ctx, e.each, e.floorAt(p.MSS), one(s.sample).over(p.Connections))
	if err != nil {
		return nil, err
	}
	return []result{newResult("tx", p, all[0]).counted()}, nil
}
