package stack

import (
	"syscall"

	"ndpip/dpdk"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// inputICMP answers pings and passes errors on to who caused them (RFC 792, RFC 1122 3.2.2).
func (s *Stack) inputICMP(b []byte, h *wire.IPv4, msg []byte) {
	m, drop := wire.ParseICMP(msg)
	if drop != wire.OK {
		s.drop(drop)
		return
	}
	switch m.Type {
	case wire.ICMPEcho:
		if h.Dst() == s.addr { // not to broadcasts: that would amplify (RFC 1122 3.2.2.6, MAY)
			s.echo(b, h, msg)
		}
	case wire.ICMPUnreachable:
		q, drop := wire.ParseQuote(msg)
		if drop != wire.OK {
			s.drop(drop)
			return
		}
		s.inputUnreachable(m.Code, &q)
	default:
		s.drop(wire.ICMPType)
	}
}

func (s *Stack) echo(b []byte, h *wire.IPv4, msg []byte) {
	f, ok := s.take()
	n := ethLen + ipLen + len(msg)
	if !ok || n > int(f.Len) {
		if ok {
			s.w.Release(f.Handle)
		}
		s.count.NoBuffer++
		return
	}
	out := dpdk.Bytes(f.Addr, n)
	wire.PutEthernet(out, wire.EthSrc(b), s.mac, wire.TypeIPv4)
	wire.PutIPv4(out[ethLen:], s.addr, h.Src(), wire.ProtoICMP, ipLen+len(msg), 0)
	wire.PutEchoReply(out[ethLen+ipLen:], msg)
	f.Len, f.Flags = uint32(n), 0
	s.count.EchoReplies++
	s.queue(f)
}

// inputUnreachable tells a connecting socket, or a connected UDP socket, that the other end cannot be reached. An
// established connection goes on: it is not proof (RFC 1122 4.2.3.9, RFC 5927 4). The quoted sequence number must be
// one that is under way.
func (s *Stack) inputUnreachable(code uint8, q *wire.Quote) {
	if q.Src != s.addr {
		s.drop(wire.ICMPQuote)
		return
	}
	why, e := tcp.Unreachable, syscall.EHOSTUNREACH
	switch code {
	case wire.UnreachPort, wire.UnreachProtocol:
		why, e = tcp.Refused, syscall.ECONNREFUSED
	case wire.UnreachFragment:
		why, e = tcp.NoReason, syscall.EMSGSIZE // says nothing against the host
	}
	if q.Proto == wire.ProtoUDP {
		if !s.udpError(q.Src, q.SrcPort, q.Dst, q.DstPort, e) {
			s.drop(wire.ICMPQuote)
		}
		return
	}
	id := s.table.get(key{q.Src, q.Dst, q.SrcPort, q.DstPort})
	if id == 0 || id&waitMark != 0 {
		s.drop(wire.ICMPQuote)
		return
	}
	c, seq := s.conns.at(id), tcp.Seq(q.Seq)
	switch {
	case why == tcp.NoReason:
	case c.State() == tcp.SynSent && c.SynSeq(seq):
		c.Die(why)
		s.touch(c)
	case !c.SoftError(seq, why):
		s.drop(wire.ICMPQuote)
	}
}

// udpError tells the socket of a datagram that was sent, if it is connected to where that went: else it could not know
// which one is meant (RFC 1122 4.1.3.3). It returns whether there is a socket.
func (s *Stack) udpError(laddr uint32, lport uint16, raddr uint32, rport uint16, e syscall.Errno) bool {
	u := s.udps.find(laddr, lport, raddr, rport)
	if u == nil {
		return false
	}
	if r, _ := u.Remote(); r != 0 {
		u.Err.Store(uint32(e))
		if w := u.Watch.Load(); w != 0 {
			s.tell(&u.Ready, u.Stream, w, tcp.PendOpen)
		}
	}
	return true
}

// unreachable says that a datagram found nobody (RFC 1122 3.2.2.1): not about broadcasts, and not for ever to one who
// asks for it, since each answer is longer than the question could be.
func (s *Stack) unreachable(b []byte, h *wire.IPv4, code uint8) {
	if b[0]&1 != 0 || h.Dst() != s.addr || !s.icmpBudget() {
		return
	}
	f, ok := s.take()
	if !ok {
		s.count.NoBuffer++
		return
	}
	out := dpdk.Bytes(f.Addr, ethLen+ipLen+wire.MaxUnreachable)
	n := wire.PutUnreachable(out[ethLen+ipLen:], code, b[ethLen:ethLen+h.Len()])
	wire.PutEthernet(out, wire.EthSrc(b), s.mac, wire.TypeIPv4)
	wire.PutIPv4(out[ethLen:], s.addr, h.Src(), wire.ProtoICMP, ipLen+n, 0)
	f.Len, f.Flags = uint32(ethLen+ipLen+n), 0
	s.count.UnreachSent++
	s.queue(f)
}

// icmpBudget allows so many ICMP errors a second as the Config says.
func (s *Stack) icmpBudget() bool {
	if s.now-s.icmpAt >= 1e9 {
		s.icmpAt, s.icmpSent = s.now, 0
	}
	if s.icmpSent >= s.cfg.ICMPErrors {
		return false
	}
	s.icmpSent++
	return true
}
