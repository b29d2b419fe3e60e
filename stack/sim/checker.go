package sim

import (
	"ndpip/stack"
	"ndpip/stack/wire"
)

// checker watches every frame that a host sends or receives, and compares it with what RFC 9293 lets that host say. It
// knows the headers and what the applications have written; it knows nothing of the stacks' inside.
type checker struct {
	w     *world
	conns map[connKey]*pair
	isns  []uint32 // initial sequence numbers, in the order in which they were first sent
	again int      // segments with nothing in them that was not sent before
}

// connKey names a connection by both ports, A's first.
type connKey struct{ a, b uint16 }

// pair is one connection: a half for what each host sends.
type pair struct {
	a, b   half
	number int  // of the scenario's connection
	rst    bool // one side has reset it
}

// half is what one host sends on a connection. All positions are relative to its initial sequence number: the SYN is
// at 0, the first byte of the stream at 1.
type half struct {
	open  bool   // the SYN was sent
	isn   uint32 //
	scale int8   // that the SYN offers; -1: none
	mss   uint16 // that the SYN asks for
	sent  uint32 // behind the last unit that was sent
	got   uint32 // behind the last unit that the other host has received in order, or early and keeps
	early []gap  // what it has received beyond, if it keeps that
	fin   uint32 // where the FIN is; 0: none was sent
	acked uint32 // behind the last unit whose acknowledgement this host has received
	edge  uint32 // the right edge of the window that this host knows of, the rightmost so far
	told  uint32 // the same, as the other host has sent it
	shut  bool   // the other host closes the window for want of buffers
}

// gap is a piece of a stream that has arrived before what precedes it.
type gap struct{ start, end uint32 }

// arrived notes that the units from start up to end have come to the other host, which keeps what comes early or not.
func (h *half) arrived(start, end uint32, keeps bool) {
	if start > h.got && keeps && len(h.early) < 1<<16 {
		h.early = append(h.early, gap{start, end})
		return
	}
	if start > h.got {
		return
	}
	h.got = max(h.got, end)
	for again := true; again; {
		again = false
		rest := h.early[:0]
		for _, g := range h.early {
			switch {
			case g.start > h.got:
				rest = append(rest, g)
			case g.end > h.got:
				h.got, again = g.end, true
			}
		}
		h.early = rest
	}
}

func newChecker(w *world) *checker { return &checker{w: w, conns: map[connKey]*pair{}} }

// seen is a frame that was parsed.
type seen struct {
	from, to *host
	ip       *wire.IPv4
	tcp      *wire.TCP
	data     []byte
	opts     []byte
	pair     *pair
	own      *half // what the sender of this frame sends
	other    *half // what its receiver sends, which this frame acknowledges
}

// frame is one frame that passed host h.
func (k *checker) frame(h *host, sent bool, frame []byte) {
	from, to := h, k.w.a
	if h == to {
		to = k.w.b
	}
	if !sent {
		from, to = to, h
	}
	s, ok := k.parse(from, to, sent, frame)
	if !ok || s.tcp == nil {
		return
	}
	s.pair = k.find(&s)
	if s.pair == nil {
		return
	}
	s.own, s.other = &s.pair.a, &s.pair.b
	if from == k.w.b {
		s.own, s.other = s.other, s.own
	}
	if sent {
		k.sent(&s)
	} else {
		k.received(&s)
	}
}

// parse checks what is below TCP. A received frame may have been damaged on the way: ok is false then.
func (k *checker) parse(from, to *host, sent bool, b []byte) (s seen, ok bool) {
	bad := func(what string) (seen, bool) {
		if sent {
			k.w.fail("%s sent a malformed frame: %s: % x", from.name, what, b)
		}
		return s, false
	}
	typ, drop := wire.ParseEthernet(b)
	switch {
	case drop != wire.OK:
		return bad(drop.String())
	case sent && wire.EthSrc(b) != from.MAC():
		return bad("source MAC")
	case !sent && wire.EthDst(b) != to.MAC() && wire.EthDst(b) != wire.Broadcast:
		return s, false
	}
	if typ == wire.TypeARP {
		_, drop := wire.ParseARP(b[wire.EthLen:])
		if drop != wire.OK {
			return bad(drop.String())
		}
		return s, true
	}
	h, drop := wire.ParseIPv4(b[wire.EthLen:], true)
	if drop != wire.OK {
		return bad(drop.String())
	}
	switch {
	case h.Src() != from.Addr() || h.Dst() != to.Addr():
		return bad("addresses")
	case sent && h.Len() != len(b)-wire.EthLen:
		return bad("IP length")
	case sent && h.Len() > from.plan.Stack.MTU:
		return bad("longer than the MTU")
	case h.Proto() != wire.ProtoTCP:
		return bad("protocol")
	}
	l4 := b[wire.EthLen+wire.IPv4Len : wire.EthLen+h.Len()]
	t, drop := wire.ParseTCP(l4)
	if drop != wire.OK {
		return bad(drop.String())
	}
	if from.plan.Stack.Checksum != stack.ChecksumOff && !wire.TCPGood(l4, h.Src(), h.Dst()) {
		return bad("TCP checksum")
	}
	return seen{from: from, to: to, ip: h, tcp: t, opts: l4[wire.TCPLen:t.HdrLen()], data: l4[t.HdrLen():]}, true
}

// find gives the connection that a segment belongs to, and makes a new one of a SYN. Segments of a connection whose
// place another has taken, and resets of what was never there, belong to none.
func (k *checker) find(s *seen) *pair {
	key := connKey{s.tcp.SrcPort(), s.tcp.DstPort()}
	if s.from == k.w.b {
		key = connKey{key.b, key.a}
	}
	p := k.conns[key]
	if s.tcp.Flags()&(wire.SYN|wire.ACK|wire.RST) == wire.SYN {
		if p == nil || s.half(p, k.w).isn != s.tcp.Seq() {
			number := int(s.tcp.DstPort()) - firstPort
			if number < 0 || number >= len(k.w.Conns) {
				k.w.fail("%s sent a SYN to port %d", s.from.name, s.tcp.DstPort())
				return nil
			}
			p = &pair{number: number}
			k.conns[key] = p
		}
	}
	return p
}

func (s *seen) half(p *pair, w *world) *half {
	if s.from == w.a {
		return &p.a
	}
	return &p.b
}

// scales are the shifts that hold for the windows which the two hosts advertise: of s.from, and of s.to.
func (s *seen) shift() uint {
	if s.own.scale < 0 || s.other.scale < 0 || !s.other.open {
		return 0
	}
	return uint(s.own.scale)
}

// sent checks a segment that a host has put on the wire.
func (k *checker) sent(s *seen) {
	f := s.tcp.Flags()
	fail := func(format string, args ...any) {
		k.w.fail("connection %d, %s, seq %d ack %d len %d flags %#x: "+format, append([]any{s.pair.number, s.from.name,
			s.tcp.Seq() - s.own.isn, s.tcp.Ack() - s.other.isn, len(s.data), uint8(f)}, args...)...)
	}
	switch {
	case f&wire.SYN != 0 && f&(wire.FIN|wire.RST) != 0, f&wire.FIN != 0 && f&wire.RST != 0:
		fail("flags that exclude each other")
		return
	case f&(wire.SYN|wire.RST|wire.ACK) == 0:
		fail("no ACK")
		return
	case f&^(wire.SYN|wire.FIN|wire.RST|wire.PSH|wire.ACK) != 0:
		fail("flags that the stack has no use for")
	case f&wire.RST != 0:
		s.pair.rst = true
		if len(s.data) > 0 {
			fail("an RST with text")
		}
		return
	case f&wire.SYN != 0:
		k.sentSyn(s, fail)
		return
	}
	if !s.own.open || !s.other.open {
		fail("a segment without a SYN")
		return
	}
	k.sentAck(s, fail)
	k.sentText(s, fail)
}

func (k *checker) sentSyn(s *seen, fail func(string, ...any)) {
	o, drop := wire.ParseOptions(s.opts)
	cfg := &s.from.plan.Stack
	switch {
	case drop != wire.OK:
		fail("options % x: %v", s.opts, drop)
	case len(s.data) > 0:
		fail("a SYN with text")
	case s.own.open && s.own.isn != s.tcp.Seq():
		if !s.pair.rst && s.own.acked > 0 { // else it may have given up in SYN-RECEIVED, and begun anew
			fail("another initial sequence number")
		}
		*s.own = half{}
	case o.MSS == 0 || int(o.MSS) > cfg.MTU-40:
		fail("an MSS of %d on an MTU of %d", o.MSS, cfg.MTU)
	}
	if s.tcp.Flags()&wire.ACK != 0 {
		if !s.other.open || s.tcp.Ack() != s.other.isn+1 {
			fail("a SYN and ACK for another SYN")
		}
		if s.other.scale < 0 && o.Scale >= 0 {
			fail("a window scale, though none was offered")
		}
	}
	if !s.own.open {
		k.isns = append(k.isns, s.tcp.Seq())
		*s.own = half{open: true, isn: s.tcp.Seq(), scale: o.Scale, mss: o.MSS, sent: 1}
	}
	s.other.told = max(s.other.told, 1+uint32(s.tcp.Window()))
}

// sentAck checks acknowledgement and window.
func (k *checker) sentAck(s *seen, fail func(string, ...any)) {
	ack := s.tcp.Ack() - s.other.isn
	if ack == 0 || ack > s.other.got {
		fail("acknowledges up to %d; only %d arrived in order", ack, s.other.got)
		return
	}
	shift := s.shift()
	wnd := uint32(s.tcp.Window()) << shift
	slack := uint32(1)<<shift - 1 // windows are rounded (RFC 7323 2.4)
	edge := ack + wnd
	x := k.side(s)
	buf := uint32(x.rcvBuf(&s.from.plan.Stack))
	if s.own.scale > 0 {
		buf = max(buf, 2<<s.own.scale) // the stack needs so much, or a scaled window would always be 0
	}
	if wnd > buf+slack {
		fail("a window of %d with a buffer of %d", wnd, buf)
	}
	if read := uint32(x.read + x.reading); edge > 1+read+buf+slack+1 {
		fail("a right edge of %d: read %d, a buffer of %d", edge, read, buf)
	}
	// A host that is short of buffers closes its windows, whatever they were.
	s.other.shut = wnd == 0 && (s.other.shut || s.from.Usage().Unread > 0)
	if edge+slack < s.other.told && k.ordered(s.from) && !s.other.shut {
		fail("the right edge moves left from %d to %d (window %d)", s.other.told, edge, wnd)
	}
	s.other.told = max(s.other.told, edge)
}

// ordered says whether a host's frames reach the wire in the order in which they are made.
func (k *checker) ordered(h *host) bool {
	return k.w.Preempt == 0 && h.plan.Port.TxRing == 0
}

// sentText checks the place and the content of what is sent.
func (k *checker) sentText(s *seen, fail func(string, ...any)) {
	h := s.own
	start := s.tcp.Seq() - h.isn
	end := start + uint32(len(s.data))
	if len(s.data) > 0 {
		x := k.side(s)
		if start == 0 {
			fail("text at the SYN's place")
		} else if x.do.Blank {
		} else if d := differs(s.data, x.outKey, uint64(start-1)); d >= 0 {
			fail("a wrong byte at %d", start-1+uint32(d))
		}
		if n := len(s.data); n > max(int(s.other.mss), minMSS) {
			fail("%d bytes; the peer takes %d", n, s.other.mss)
		}
	}
	if s.tcp.Flags()&wire.FIN != 0 {
		if h.fin != 0 && h.fin != end {
			fail("a FIN at %d, and another at %d", h.fin, end)
		}
		h.fin = end
		end++
	}
	probe := start == h.acked && end == start+1
	switch {
	case end == start:
		// A pure ACK. One that probes for life comes from before the first unit that is not acknowledged.
		if start > h.sent && k.ordered(s.from) || start+1 < h.acked && k.ordered(s.from) {
			fail("an ACK from %d; sent is up to %d", start, h.sent)
		}
		return
	case start > h.sent && s.from.plan.Port.TxRing == 0:
		fail("a gap: only up to %d was sent", h.sent)
	case h.fin != 0 && end > h.fin+1:
		fail("text behind the FIN at %d", h.fin)
	case end > h.edge && !probe:
		fail("text up to %d, beyond the window, which ends at %d", end, h.edge)
	}
	if end <= h.sent && !probe {
		k.again++
	}
	h.sent = max(h.sent, end)
}

// minMSS is the least that a stack may take a peer's MSS for.
const minMSS = 48

// side is the application behind a segment's sender.
func (k *checker) side(s *seen) *side {
	x := k.w.sides[2*s.pair.number]
	if s.from == k.w.b {
		x = x.peer
	}
	return x
}

// received takes note of a segment that has come to a host.
func (k *checker) received(s *seen) {
	f := s.tcp.Flags()
	if f&wire.RST != 0 || !s.own.open {
		return
	}
	if f&wire.SYN != 0 {
		if s.tcp.Seq() != s.own.isn {
			return
		}
		s.own.got = max(s.own.got, 1)
	}
	start := s.tcp.Seq() - s.own.isn
	end := start + uint32(len(s.data))
	if f&wire.FIN != 0 {
		end++
	}
	if end < 1<<31 && (start < end || start <= s.own.got) {
		to := k.w.sides[2*s.pair.number]
		if s.to == k.w.b {
			to = to.peer
		}
		s.own.arrived(start, end, to.do.Opts.Congestion != 0)
	}
	if f&wire.ACK == 0 || !s.other.open {
		return
	}
	ack := s.tcp.Ack() - s.other.isn
	if ack > s.other.sent {
		return // of a former connection
	}
	s.other.acked = max(s.other.acked, ack)
	shift := s.shift()
	if f&wire.SYN != 0 {
		shift = 0
	}
	s.other.edge = max(s.other.edge, ack+uint32(s.tcp.Window())<<shift)
}

// finish checks what can only be said in the end.
func (k *checker) finish() {
	for _, p := range k.conns {
		x := k.w.sides[2*p.number]
		for _, h := range [...]struct {
			*half
			*side
		}{{&p.a, x}, {&p.b, x.peer}} {
			if h.fin != 0 && uint64(h.fin-1) != h.wrote {
				k.w.fail("connection %d: the FIN of %s came after %d bytes of %d", p.number, h.name, h.fin-1, h.wrote)
			}
			if h.open && uint64(h.sent) > 2+h.wrote {
				k.w.fail("connection %d: %s sent up to %d, having written %d", p.number, h.name, h.sent, h.wrote)
			}
		}
	}
}
