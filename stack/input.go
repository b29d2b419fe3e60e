package stack

import (
	"encoding/binary"
	"math"

	"ndpip/dpdk"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// input takes a burst of frames from the wire. It owns each buffer until it has released it or given it to a receive ring.
func (s *Stack) input(rx []dpdk.Frame) {
	for ; len(rx) > 0; rx = rx[1:] {
		flows := s.last != nil && s.coalesce
		if flows {
			if rx = s.run(rx); len(rx) == 0 {
				return
			}
		}
		f := &rx[0]
		s.behind = len(rx) - 1
		var kept bool
		if flows && f.Len >= hdrLen && s.flow.is(f) {
			kept = s.next(f)
		} else {
			kept = s.frame(f)
		}
		if !kept {
			s.w.Release(f.Handle)
		}
	}
}

// sumsOK checks both checksums of a TCP segment of n bytes with its IPv4 header.
func (s *Stack) sumsOK(f *dpdk.Frame, n int) bool {
	b := f.Bytes()
	h := (*wire.IPv4)(b[ethLen:])
	return (f.Flags&dpdk.RxIPGood != 0 || h.Good()) && s.sumOK(f, h, b[ethLen+ipLen:ethLen+n])
}

// hold counts a payload that is given to an application, which gives it back by app.consumed. room is how many more
// there may be in this turn before the rest of the receive pool is left to the stack itself.
func (s *Stack) hold() {
	s.rxHeld++
	s.room--
}

// measureRoom begins a turn's count. When half of the room is used, no connection or socket may hold more than there is
// left: those whose applications are slow leave some for the others (Choudhury and Hahne, dynamic thresholds).
func (s *Stack) measureRoom() {
	s.room = math.MaxInt
	if s.cfg.RxBuffers > 0 {
		limit := s.cfg.RxBuffers * 3 / 4
		s.room, s.tight = limit-int(s.rxHeld-s.app.consumed.Load()), limit/2
	}
}

// frame looks at a frame's Ethernet and IPv4 headers and passes it on. It returns whether the buffer was kept.
func (s *Stack) frame(f *dpdk.Frame) (kept bool) {
	if f.Flags&dpdk.RxChained != 0 {
		s.count.Drop[DropChained]++
		return false
	}
	b := f.Bytes()
	s.count.RxBytes += uint64(len(b))
	typ, drop := wire.ParseEthernet(b)
	if drop != wire.OK {
		return s.drop(drop)
	}
	dst := wire.EthDst(b)
	if dst != s.mac && !dst.Group() {
		s.count.Drop[DropNotOurs]++
		return false
	}
	if typ == wire.TypeARP {
		s.inputARP(b)
		return false
	}
	if f.Flags&dpdk.RxIPBad != 0 {
		return s.drop(wire.IPChecksum)
	}
	h, drop := wire.ParseIPv4(b[ethLen:], f.Flags&dpdk.RxIPGood == 0)
	if drop != wire.OK {
		return s.drop(drop)
	}
	if h.Dst() != s.addr && !s.net.IsBroadcast(h.Dst()) {
		return s.drop(wire.IPDest)
	}
	if h.Dst() == s.addr && dst.Group() && !s.cfg.Broadcast {
		return s.drop(wire.IPDest) // to one host, but sent to all (RFC 1122 3.3.6)
	}
	l4 := b[ethLen+ipLen : ethLen+h.Len()]
	if h.Proto() == wire.ProtoTCP {
		if h.Dst() != s.addr {
			return s.drop(wire.IPDest) // TCP is unicast (RFC 1122 4.2.3.10)
		}
		return s.inputTCP(f, b, h, l4)
	}
	if s.net.BadSource(h.Src()) {
		return s.drop(wire.IPSource)
	}
	switch h.Proto() {
	case wire.ProtoUDP:
		return s.inputUDP(f, b, h, l4)
	case wire.ProtoICMP:
		s.inputICMP(b, h, l4)
		return false
	default:
		s.unreachable(b, h, wire.UnreachProtocol)
		return s.drop(wire.IPProtocol)
	}
}

// drop counts a frame that the parser did not accept.
func (s *Stack) drop(r wire.Drop) (kept bool) {
	s.count.Parse[r]++
	return false
}

// sumOK says whether the checksum of a TCP or UDP segment is right, by the port's word or by computing it.
func (s *Stack) sumOK(f *dpdk.Frame, h *wire.IPv4, l4 []byte) bool {
	if !s.rxSum || f.Flags&dpdk.RxL4Good != 0 {
		return true
	}
	if f.Flags&dpdk.RxL4Bad != 0 {
		return false
	}
	return wire.Fold(wire.Sum(l4, wire.PseudoHeader(h.Src(), h.Dst(), h.Proto(), len(l4)))) == wire.Good
}

// inputTCP finds the segment's connection and feeds it.
func (s *Stack) inputTCP(f *dpdk.Frame, b []byte, h *wire.IPv4, l4 []byte) (kept bool) {
	t, drop := wire.ParseTCP(l4)
	if drop != wire.OK {
		return s.drop(drop)
	}
	off := t.HdrLen()
	if !s.sumOK(f, h, l4) {
		return s.drop(wire.TCPChecksum)
	}
	k := key{h.Dst(), h.Src(), t.DstPort(), t.SrcPort()}
	s.read(f, t, len(l4), off)
	s.count.RxSegments++
	s.countKind(s.seg.Flags, s.seg.Len)
	c := s.last
	if c == nil || k != s.lastKey {
		s.lookAhead()
		id := s.table.get(k)
		if id == 0 {
			return s.inputStray(f, b, h, l4, k)
		}
		if id&waitMark != 0 {
			if s.seg.Flags&tcp.SYN == 0 || s.takeOptions(l4, off) {
				s.inputWait(b, id&^waitMark)
			}
			return false
		}
		c = s.conns.at(id)
		s.last, s.lastKey = c, k
		s.flow.set(f)
	}
	if s.seg.Flags&tcp.SYN|uint8(off-tcpLen) != 0 && !s.takeOptions(l4, off) {
		return false
	}
	return s.feed(f, b, h, l4, k, c)
}

// lookAhead has the next frame's place in the table fetched: where many connections take part, each is of another one. One
// that most likely is of the last one is not looked for.
func (s *Stack) lookAhead() {
	if n := int(s.w.NRx) - s.behind; s.behind > 0 {
		if f := &s.w.Rx[n&(dpdk.RxCap-1)]; f.Len >= hdrLen && (s.last == nil || !s.flow.ports(f)) {
			b := (*[hdrLen]byte)(dpdk.Pointer(f.Addr))
			be := binary.BigEndian
			s.table.expect(key{be.Uint32(b[30:]), be.Uint32(b[26:]), be.Uint16(b[36:]), be.Uint16(b[34:])})
		}
	}
}

// read writes the segment that is fed to the connection: n bytes at t, of which off are the header.
func (s *Stack) read(f *dpdk.Frame, t *wire.TCP, n, off int) {
	seg := &s.seg
	seg.Seq, seg.Ack = tcp.Seq(t.Seq()), tcp.Seq(t.Ack())
	seg.Flags = uint8(t.Flags()) &^ (tcp.ECE | tcp.CWR)
	seg.Wnd = t.Window()
	seg.Len = uint32(n - off)
	seg.Handle = uintptr(f.Handle)
	seg.Addr = f.Addr + uintptr(ethLen+ipLen+off)
	seg.Opts = nil
}

// feed gives the segment to its connection.
func (s *Stack) feed(f *dpdk.Frame, b []byte, h *wire.IPv4, l4 []byte, k key, c *tcp.Conn) (kept bool) {
	seg := &s.seg
	s.sure = false
	if seg.Len > 0 {
		if s.room <= s.tight && int(c.RxHeld()) >= s.room && !s.displace(c, seg) {
			s.count.Drop[DropNoBuffer]++
			seg.Len = 0 // the rest of the segment still counts; the peer sends the text again
			seg.Flags &^= tcp.FIN
			c.Squeeze()
		} else {
			c.Ease()
		}
	}
	if c.KeepIdle != 0 {
		c.Heard(s.now)
	}
	v := c.Input(&s.cfg.TCP, s.now, seg)
	for v == tcp.NoRing || v == tcp.NoStage || v == tcp.NoQueue {
		if !s.provide(c, v) {
			v = tcp.Bad
			break
		}
		v = c.Input(&s.cfg.TCP, s.now, seg)
	}
	s.touch(c)
	switch v {
	case tcp.Kept:
		s.hold()
		s.count.RxData++
		return true
	case tcp.Kept | tcp.More:
		s.hold()
		s.count.RxData++
		s.follow(c)
		return true
	case tcp.Gathered:
		s.count.RxData++
		s.count.Gathered++
	case tcp.Gathered | tcp.More:
		s.count.RxData++
		s.count.Gathered++
		s.follow(c)
	case tcp.Refuse:
		if c.State() == tcp.Closed { // earlier in this burst
			s.unlink(c)
			return s.inputStray(f, b, h, l4, k)
		}
		s.refuse(b, h, k, seg)
	case tcp.Reopen:
		s.reopen(c, k, b)
	case tcp.Bad:
		s.count.Drop[DropUnacceptable]++
	case tcp.More:
		s.follow(c)
	case tcp.Done, tcp.NoRing, tcp.NoStage, tcp.NoQueue:
	}
	return false
}

// follow gives a connection of the lossy profile what came early and is next now.
func (s *Stack) follow(c *tcp.Conn) {
	for {
		h, v := c.Follow(&s.cfg.TCP, s.now)
		switch v {
		case tcp.Kept: // it was counted when it came
		case tcp.NoStage:
			if !s.provide(c, v) {
				return
			}
		case tcp.Gathered, tcp.Bad:
			s.w.Release(dpdk.Handle(h))
			s.rxHeld--
		default:
			return
		}
	}
}

// displace makes room for the very next segment of a connection's stream by dropping what has come early.
func (s *Stack) displace(c *tcp.Conn, seg *tcp.Segment) bool {
	if _, nxt := c.SynNumbers(); seg.Seq != nxt {
		return false
	}
	h := c.DropQueued()
	if h == 0 {
		return false
	}
	s.w.Release(dpdk.Handle(h))
	s.rxHeld--
	s.room++
	return true
}

// provide gives a connection what it lacks to take a payload.
func (s *Stack) provide(c *tcp.Conn, lack tcp.Verdict) bool {
	switch lack {
	case tcp.NoRing:
		c.SetRxRing(s.rx.Get(c.RxWant), c.RxWant)
		return true
	case tcp.NoQueue:
		c.SetQueue(s.rx.Get(c.QueueWant()))
		return true
	}
	f, ok := s.w.Take()
	if !ok || f.Len < tcp.GatherMax {
		if ok {
			s.w.Release(f.Handle)
		}
		s.count.NoBuffer++
		return false
	}
	c.SetStage(uintptr(f.Handle), f.Addr, f.Len)
	s.hold() // it ends up in the receive ring, from which the application takes it
	return true
}

// takeOptions reads the segment's options: all of a SYN's, where malformed ones make the segment be dropped, and selective
// acknowledgements elsewhere.
func (s *Stack) takeOptions(l4 []byte, off int) bool {
	s.seg.Opts = &s.opts
	if s.seg.Flags&tcp.SYN == 0 {
		blocks, n := wire.ParseSack(l4[tcpLen:off])
		s.opts.Sacks = n
		for i, b := range blocks[:n] {
			s.opts.Sack[i] = [2]tcp.Seq{tcp.Seq(b[0]), tcp.Seq(b[1])}
		}
		return true
	}
	w, drop := wire.ParseOptions(l4[tcpLen:off])
	if drop != wire.OK {
		s.drop(drop)
		return false
	}
	s.opts = tcp.Options{MSS: w.MSS, WndScale: w.Scale, SackOK: w.SackOK}
	return true
}

// inputStray is a segment without a connection: a SYN for a listener, an ACK with a cookie, or one to be refused
// (RFC 9293 3.10.7.1, .2).
func (s *Stack) inputStray(f *dpdk.Frame, b []byte, h *wire.IPv4, l4 []byte, k key) (kept bool) {
	seg := &s.seg
	if s.net.BadSource(h.Src()) {
		return s.drop(wire.IPSource)
	}
	if seg.Flags&tcp.RST != 0 {
		s.count.Drop[DropStray]++
		return false
	}
	l := s.listener(k.laddr, k.lport)
	if l != nil && seg.Flags&tcp.ACK != 0 {
		if c, good := s.admit(l, k, wire.EthSrc(b), seg); c != nil {
			return s.feed(f, b, h, l4, k, c)
		} else if good {
			return false
		}
	}
	if l == nil || seg.Flags&tcp.ACK != 0 {
		s.count.Drop[DropStray]++
		s.refuse(b, h, k, seg)
		return false
	}
	if seg.Flags&tcp.SYN == 0 {
		s.count.Drop[DropStray]++ // to be dropped without an answer
		return false
	}
	// Text or a FIN that comes with the SYN is not taken: the peer sends it again.
	if s.takeOptions(l4, int(l4[12]>>4)*4) {
		s.passiveOpen(l, k, wire.EthSrc(b), seg, 0)
	}
	return false
}

// reopen is a SYN for a connection in TIME-WAIT, with a sequence number above all of it: the connection gives way, if
// somebody listens (RFC 9293 3.10.7.4). The new one's numbers lie above the old one's, too.
func (s *Stack) reopen(c *tcp.Conn, k key, b []byte) {
	l := s.listener(k.laddr, k.lport)
	if l == nil {
		c.Challenge(s.now)
		return
	}
	if l.full() {
		s.count.Drop[DropBacklog]++
		return
	}
	least := c.AckSeq() + 1<<16
	s.unlink(c)
	c.Die(tcp.NoReason)
	s.passiveOpen(l, k, wire.EthSrc(b), &s.seg, least)
}
