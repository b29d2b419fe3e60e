package stack

import (
	"ndpip/dpdk"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// SYN cookies (RFC 4987 3.6). A listener whose backlog is held by peers that do not answer is being flooded, or waits for
// peers that are gone. For the next minute it answers SYNs without remembering them: what it needs to know again stands in
// the sequence number of the SYN and ACK, under a keyed hash. A peer that brings it back has shown that it is where it
// says, and takes the place of one that has not.
//
//	31         8 7   5 4      1 0
//	| hash 24   | MSS | scale  | epoch |
//
// Without a flood no cookie is sent and none is accepted: guessing one of 2^24 would open a connection.

// halfOpen names a connection in SYN-RECEIVED, for as long as its initial sequence number is iss.
type halfOpen struct {
	at  int64
	id  uint32
	iss tcp.Seq
}

const (
	cookieTime  = 60e9 // ns for which a listener goes on after the last sign of a flood
	cookieGap   = 50e3 // ns between two cookies: those who ask get no more of the link than 14 Mb/s
	cookieBurst = 5e6  // ns for which cookies may be saved up
	epochBits   = 36   // an epoch is 2^36 ns, 69 s; a cookie is good in its own and in the next one
	noScaleCode = 15
)

// cookieMSS are the sizes that a cookie can tell: of IPv4's least, of tunnels, of Ethernet, of its jumbo frames.
var cookieMSS = [8]uint16{tcp.MinMSS, 536, 1220, 1360, 1440, 1460, 4016, 8960}

// entered notes a connection in SYN-RECEIVED, the youngest of its listener's.
func (l *Listener) entered(s *Stack, c *tcp.Conn) {
	l.half++
	if len(l.waiting) >= 2*l.backlog+64 { // at most backlog of them still wait
		kept := l.waiting[:0]
		for _, h := range l.waiting {
			if s.stillHalf(l, h) {
				kept = append(kept, h)
			}
		}
		l.waiting = kept
	}
	iss, _ := c.SynNumbers()
	l.waiting = append(l.waiting, halfOpen{s.now, c.ID, iss})
}

func (s *Stack) stillHalf(l *Listener, h halfOpen) bool {
	c := s.conns.at(h.id)
	return c.Parent == l.id && c.State() == tcp.SynReceived && c.SynSeq(h.iss)
}

// stale is the listener's oldest connection in SYN-RECEIVED, if its peer should have answered long ago, or nil.
func (s *Stack) stale(l *Listener) *tcp.Conn {
	for len(l.waiting) > 0 {
		h := l.waiting[0]
		if s.stillHalf(l, h) {
			if s.now-h.at < s.cfg.TCP.InitRTO {
				return nil
			}
			return s.conns.at(h.id)
		}
		l.waiting = l.waiting[1:]
	}
	return nil
}

// flooded says whether a listener without room answers a SYN by a cookie.
func (s *Stack) flooded(l *Listener) bool {
	if s.stale(l) != nil {
		l.cookies = s.now + cookieTime
	}
	if s.now >= l.cookies || s.now < l.nextCookie {
		return false
	}
	l.nextCookie = max(l.nextCookie, s.now-cookieBurst) + cookieGap
	return true
}

// cookie is the initial sequence number that stands for a SYN with the number irs; data are its 8 low bits.
func (s *Stack) cookie(k key, irs tcp.Seq, data uint8, epoch int64) tcp.Seq {
	h := siphash(s.sec[0]^uint64(epoch), s.sec[1]^(uint64(irs)<<8|uint64(data)),
		uint64(k.laddr)<<32|uint64(k.raddr), uint64(k.lport)<<16|uint64(k.rport))
	return tcp.Seq(uint32(h)&^0xff | uint32(data))
}

// sendCookie answers a SYN for a listener without room.
func (s *Stack) sendCookie(l *Listener, k key, from MAC, seg *tcp.Segment) {
	f, ok := s.take()
	if !ok {
		s.count.NoBuffer++
		return
	}
	epoch := s.now >> epochBits
	data := uint8(epoch & 1)
	peer := uint16(536) // RFC 9293 3.7.1, MUST-15
	if seg.Opts.MSS != 0 {
		peer = seg.Opts.MSS
	}
	for i := len(cookieMSS) - 1; i > 0; i-- {
		if cookieMSS[i] <= peer {
			data |= uint8(i) << 5
			break
		}
	}
	scale := uint8(noScaleCode)
	if seg.Opts.WndScale >= 0 {
		scale = uint8(min(seg.Opts.WndScale, 14))
	}
	data |= scale << 1

	u := s.setup(&l.opts, k)
	own := wire.Options{MSS: u.MSS, Scale: -1}
	wnd := min(u.RcvBuf, 65535)
	if scale != noScaleCode {
		own.Scale = int8(u.Shift)
	}
	out := dpdk.Bytes(f.Addr, hdrLen+8)
	n := wire.PutOptions(out[hdrLen:], own)
	wire.PutEthernet(out, s.station(k, from), s.mac, wire.TypeIPv4)
	wire.PutIPv4(out[ethLen:], k.laddr, k.raddr, wire.ProtoTCP, ipLen+tcpLen+n, 0)
	t := out[ethLen+ipLen : hdrLen+n]
	wire.PutTCP(t, k.lport, k.rport, wire.TCPFields{Seq: uint32(s.cookie(k, seg.Seq, data, epoch)), Ack: uint32(seg.Seq + 1),
		Window: uint16(wnd), Flags: wire.SYN | wire.ACK}, n)
	if s.txSum != sumOff {
		wire.SetTCPCheck(t, k.laddr, k.raddr)
	}
	f.Len = uint32(hdrLen + n)
	s.count.CookiesSent++
	s.queue(f)
}

// admit opens the connection that an ACK with a cookie of ours asks for, in SYN-RECEIVED: the segment is to be fed to
// it. It returns false if the segment carries no cookie that is good; c is nil if there is no room, and the peer will come
// again.
func (s *Stack) admit(l *Listener, k key, from MAC, seg *tcp.Segment) (c *tcp.Conn, good bool) {
	if seg.Flags&(tcp.SYN|tcp.ACK) != tcp.ACK || s.now >= l.cookies+1<<epochBits {
		return nil, false
	}
	iss, irs := seg.Ack-1, seg.Seq-1
	data := uint8(iss)
	epoch := s.now >> epochBits
	if uint8(epoch&1) != data&1 {
		epoch--
	}
	if s.cookie(k, irs, data, epoch) != iss {
		return nil, false
	}
	if l.full() {
		old := s.stale(l)
		if old == nil {
			s.count.Drop[DropBacklog]++
			return nil, true
		}
		s.unlink(old)
		old.Die(tcp.NoReason)
		s.touch(old)
	}
	s.count.CookiesTaken++
	opts := tcp.Options{MSS: cookieMSS[data>>5], WndScale: int8(data >> 1 & 15)}
	if opts.WndScale == noScaleCode {
		opts.WndScale = -1
	}
	syn := tcp.Segment{Seq: irs, Wnd: seg.Wnd, Flags: tcp.SYN, Opts: &opts}
	c = s.openPassive(l, k, from, &syn, iss)
	c.Untimed()
	return c, true
}
