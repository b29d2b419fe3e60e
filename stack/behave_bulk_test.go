package stack_test

import (
	"encoding/binary"
	"testing"
	"time"

	"ndpip/stack"
	"ndpip/stack/link"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// W5: the application stops reading in the middle of a bulk transfer for 10 s, then reads on.
func TestW5(t *testing.T) {
	path := link.Path{Rate: 1e9, Delay: 100 * time.Microsecond}
	p := newPair(t, link.Config{AB: path, BA: path})
	a, b := p.open(80)
	f := p.flood(p.a, p.b, a, b, 16<<20)
	p.must("half of it", time.Minute, func() bool { return f.got > 8<<20 })
	f.paused = true
	p.run(10*time.Second, func() bool { return false })
	stalled := f.sent
	p.run(time.Second, func() bool { return false })
	if f.sent != stalled || f.sent-f.got > 1<<20+1 {
		t.Errorf("%d bytes were taken although nobody reads, %d a second before", f.sent-f.got, stalled-f.got)
	}
	c := p.b.Counters()
	if c.Drop[stack.DropNoBuffer] != 0 || p.b.end.Stats().NoBuffer != 0 {
		t.Errorf("the pool was exhausted: %+v", c)
	}
	f.paused = false
	p.must("the rest", time.Minute, f.done)
	if r := p.a.Counters().Retransmits; r > 1 { // the byte that probed
		t.Errorf("%d segments were sent again", r)
	}
}

// W7: initial sequence numbers 0xFFFFFF00 on both sides, and 64 MiB each way.
//
// A stack's initial number is a hash of the addresses and ports plus a clock that starts with the stack. So a first
// connection shows the hashes, and the stacks of the second are made so long before it that both clocks fit.
func TestW7(t *testing.T) {
	const want, turn = 0xFFFFFF00, 4 * time.Microsecond
	iss := func(da, db time.Duration) (p *pair, a, b *tcp.Conn, ia, ib uint32) {
		lc := link.Config{A: link.Port{Buffers: 4096, TxBuffers: 4096}, B: link.Port{Buffers: 4096, TxBuffers: 4096}}
		p = newPair(t, lc)
		// The stacks start anew, at the given times before the connection.
		remake := func(s *side) *side {
			cfg := *s.Config()
			for _, l := range s.lanes {
				s.end.FreeLane(l)
			}
			return newSide(p.link, s.end, cfg)
		}
		if da > db {
			p.a = remake(p.a)
			p.link.Advance(da - db)
			p.b = remake(p.b)
			p.link.Advance(db)
		} else {
			p.b = remake(p.b)
			p.link.Advance(db - da)
			p.a = remake(p.a)
			p.link.Advance(da)
		}
		p.a.Turn()
		p.b.Turn()
		p.link.A.Watch(func(_ time.Duration, sent bool, frame []byte) {
			seq := binary.BigEndian.Uint32(frame[wire.EthLen+wire.IPv4Len+4:])
			if frame[wire.EthLen+wire.IPv4Len+13]&byte(wire.SYN) == 0 {
				return
			}
			if sent {
				ia = seq
			} else {
				ib = seq
			}
		})
		l, e := p.b.Listen(0, 80, 1, stack.Options{}, 0)
		if e != 0 {
			t.Fatal(e)
		}
		if a, e = p.a.Connect(5000, peerIP, 80, stack.Options{}, 0); e != 0 {
			t.Fatal(e)
		}
		for range 10 {
			p.a.Turn()
			p.b.Turn()
			if b = p.b.Accept(l); b != nil {
				break
			}
		}
		p.b.Unlisten(l)
		return p, a, b, ia, ib
	}
	_, _, _, ia, ib := iss(0, 0)
	p, a, b, ia, ib := iss(time.Duration(want-ia)*turn, time.Duration(want-ib)*turn)
	if ia != want || ib != want {
		t.Fatalf("the initial sequence numbers are %#x and %#x", ia, ib)
	}
	total := many(64 << 20)
	ab, ba := p.flood(p.a, p.b, a, b, total), p.flood(p.b, p.a, b, a, total)
	p.must("both streams end", time.Minute, func() bool { return ab.done() && ba.done() })
	for _, s := range []*side{p.a, p.b} {
		if c := s.Counters(); c.Retransmits != 0 || c.Drop[stack.DropUnacceptable] != 0 {
			t.Errorf("%v: %d segments sent again, %d unacceptable", s.end, c.Retransmits, c.Drop[stack.DropUnacceptable])
		}
	}
}
