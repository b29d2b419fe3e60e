package stack_test

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"ndpip/dpdk"
	"ndpip/stack"
	"ndpip/stack/link"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// pair is two stacks, one at each end of a link, and applications that are called whenever something may have changed.
// Time jumps from one event to the next.
type pair struct {
	testing.TB
	link *link.Link
	a, b *side
	apps []func() (busy bool)
}

// side is one of the two stacks.
type side struct {
	*stack.Stack
	end   *link.End
	lanes [2]*dpdk.Lane
	since time.Duration // the link's time when the stack's began
}

// newPair makes two stacks, 10.0.0.1 and 10.0.0.2, that know each other's MAC address.
func newPair(t testing.TB, lc link.Config, change ...func(a, b *stack.Config)) *pair {
	t.Helper()
	cfg := func(mac wire.MAC, ip, other string, otherMAC wire.MAC) stack.Config {
		return stack.Config{MAC: mac, Addr: netip.MustParsePrefix(ip + "/24"), Seed: uint64(mac[5]), RxBuffers: 4096,
			Neighbours: map[netip.Addr]wire.MAC{netip.MustParseAddr(other): otherMAC}}
	}
	ca, cb := cfg(ourMAC, "10.0.0.1", "10.0.0.2", peerMAC), cfg(peerMAC, "10.0.0.2", "10.0.0.1", ourMAC)
	for _, f := range change {
		f(&ca, &cb)
	}
	for _, p := range []*link.Port{&lc.A, &lc.B} {
		if p.Buffers == 0 {
			p.Buffers, p.TxBuffers = 4096, 4096
		}
	}
	p := &pair{TB: t, link: link.New(lc)}
	p.a, p.b = newSide(p.link, p.link.A, ca), newSide(p.link, p.link.B, cb)
	t.Cleanup(p.finish)
	return p
}

func newSide(l *link.Link, e *link.End, cfg stack.Config) *side {
	s := &side{end: e, lanes: [2]*dpdk.Lane{e.NewLane(true), e.NewLane(false)}, since: l.Now()}
	s.Stack = stack.New(cfg, *s.lanes[0], *s.lanes[1])
	return s
}

func (p *pair) finish() {
	if p.Failed() {
		return
	}
	for _, s := range []*side{p.a, p.b} {
		s.AbortAll()
	}
	p.apps = nil
	p.run(time.Second, func() bool { return false })
	for _, s := range []*side{p.a, p.b} {
		for _, l := range s.lanes {
			s.end.FreeLane(l)
		}
		if n := s.end.InUse(); n != 0 {
			p.Errorf("%v: %d buffers were not given back", s.end, n)
		}
		if u := s.Usage(); u.Connections != 0 || u.RingBytes != 0 || u.Unread != 0 {
			p.Errorf("%v: left: %+v", s.end, u)
		}
	}
}

// run lets the two work until done says so, or for d of the link's time. It returns whether done did.
func (p *pair) run(d time.Duration, done func() bool) bool {
	end := p.link.Now() + d
	for {
		busy := p.a.Turn()
		busy = p.b.Turn() || busy
		for _, f := range p.apps {
			busy = f() || busy
		}
		if done() {
			return true
		}
		if busy {
			continue
		}
		next := end
		if at, ok := p.link.NextArrival(); ok {
			next = min(next, at)
		}
		for _, s := range []*side{p.a, p.b} {
			if at, ok := s.Deadline(); ok {
				next = min(next, s.since+at)
			}
		}
		if p.link.Now() >= end {
			return false
		}
		p.link.AdvanceTo(max(next, p.link.Now()+time.Microsecond/10))
	}
}

// must is run for what has to come about within d.
func (p *pair) must(what string, d time.Duration, done func() bool) {
	p.Helper()
	if !p.run(d, done) {
		p.Fatalf("%s: not within %v\nA %+v\nB %+v\n%+v\n%+v", what, d, p.a.Counters(), p.b.Counters(), p.link.A.Stats(), p.link.B.Stats())
	}
}

// open connects A to a listener on port of B.
func (p *pair) open(port uint16) (ca, cb *tcp.Conn) {
	p.Helper()
	l, e := p.b.Listen(0, port, 16, stack.Options{}, 0)
	if e != 0 {
		p.Fatal(e)
	}
	ca, e = p.a.Connect(0, peerIP, port, stack.Options{}, 1)
	if e != 0 {
		p.Fatal(e)
	}
	p.must("handshake", 200*time.Second, func() bool {
		cb = p.b.Accept(l)
		return cb != nil
	})
	p.b.Unlisten(l)
	return ca, cb
}

// flood is one direction of a connection under load: an application that writes, and one that reads and compares.
type flood struct {
	p         *pair
	from, to  *side
	src, dst  *tcp.Conn
	total     int // bytes to be sent
	sent, got int
	shut, eof bool
	paused    bool // the reader does not read
	chunk     int  // bytes of a write, at most
	buf       []byte
}

// blockLen is the length of the pattern: no multiple of any segment.
const blockLen = 65521

var block = func() []byte {
	b := pattern(0, blockLen)
	return append(b, b...)
}()

func (p *pair) flood(from, to *side, src, dst *tcp.Conn, total int) *flood {
	f := &flood{p: p, from: from, to: to, src: src, dst: dst, total: total, chunk: 32768, buf: make([]byte, 65536)}
	p.apps = append(p.apps, f.pump)
	return f
}

func (f *flood) done() bool { return f.eof }

func (f *flood) pump() (busy bool) {
	if f.sent < f.total {
		at := f.sent % blockLen
		n, _ := f.from.Send(f.src, block[at:at+min(f.chunk, blockLen, f.total-f.sent)])
		f.sent += n
		busy = n > 0
	} else if !f.shut {
		f.from.Shutdown(f.src)
		f.shut, busy = true, true
	}
	if f.eof || f.paused {
		return busy
	}
	n, e := f.to.Recv(f.dst, f.buf)
	if n > 0 {
		for at := 0; at < n; {
			k := min(n-at, blockLen)
			if !bytes.Equal(f.buf[at:at+k], block[f.got%blockLen:f.got%blockLen+k]) {
				f.p.Fatalf("bytes %d to %d are not those that were sent", f.got, f.got+k)
			}
			at += k
			f.got += k
		}
		return true
	}
	if e == 0 {
		f.eof = true
		if f.got != f.total {
			f.p.Fatalf("the stream ended after %d bytes of %d", f.got, f.total)
		}
		return true
	}
	return busy
}

// linkOfMillisecond is a wire with a delay of one.
var linkOfMillisecond = link.Config{AB: link.Path{Delay: time.Millisecond}, BA: link.Path{Delay: time.Millisecond}}

// netip16 is the stack's address in a larger network.
var netip16 = netip.MustParsePrefix("10.0.0.1/16")
