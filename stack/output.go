package stack

import (
	"encoding/binary"

	"ndpip/dpdk"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// What the worker sends for connections. Each function returns false when there was no buffer.

// segment sends a segment without payload; opts are its options, a multiple of 4 bytes.
func (s *Stack) segment(c *tcp.Conn, seq, ack tcp.Seq, flags uint8, wnd uint16, opts []byte) bool {
	f, ok := s.takeFor()
	if !ok {
		return false
	}
	w := wordsAt(f.Addr)
	var sum uint64
	if s.txSum == sumSoft {
		sum = wire.Sum(opts, 0)
	}
	headers(w, &c.Hdr, seq, ack, uint8(5+len(opts)/4), flags, wnd, len(opts), s.txSum, sum)
	if len(opts) > 0 {
		copy(dpdk.Bytes(f.Addr+hdrLen, len(opts)), opts)
	}
	f.Len, f.Flags = uint32(hdrLen+len(opts)), s.txFlags(dpdk.TxTCPSum)
	s.queue(f)
	return true
}

// txFlags asks the port for the checksums that it offers.
func (s *Stack) txFlags(l4 dpdk.Flags) dpdk.Flags {
	if s.txSum == sumPort {
		return l4
	}
	return 0
}

// take gives an empty buffer. When the stock is used up it sends what is waiting and stocks up anew.
func (s *Stack) take() (f dpdk.Frame, ok bool) {
	if f, ok = s.w.Take(); !ok {
		s.flush()
		f, ok = s.w.Take()
	}
	return f, ok
}

// takeFor is take for a connection's frame. Connections wait for room in the port, as they are tried again; half of the
// list is left for frames that nobody remembers.
func (s *Stack) takeFor() (f dpdk.Frame, ok bool) {
	if s.w.TxRoom() <= dpdk.TxCap/2 {
		if s.stuck {
			return f, false
		}
		s.flush()
		if s.w.TxRoom() <= dpdk.TxCap/2 {
			s.stuck = true // for the rest of this turn
			return f, false
		}
	}
	return s.take()
}

// queue puts a frame on the worker's transmit list, sending what is there when it is full. A frame for which there is
// no room is dropped, as a full queue of the port's would do.
func (s *Stack) queue(f dpdk.Frame) {
	if s.w.TxRoom() == 0 {
		s.flush()
		if s.w.TxRoom() == 0 {
			s.w.Release(f.Handle)
			s.count.TxDropped++
			return
		}
	}
	s.w.Queue(f)
}

func (s *Stack) sendAck(c *tcp.Conn) bool {
	c.Linked &^= inLate
	ack, wnd := c.AckWord()
	for n := max(c.Gaps(), 1); n > 0; n-- {
		var sack []byte
		if c.Queued() > 0 {
			sack = s.sack(c, n-1)
		}
		if !s.segment(c, c.AckSeq(), ack, tcp.ACK, wnd, sack) {
			return false
		}
		count(&s.count.Acks, 1)
		if wnd == 0 {
			s.count.ZeroWindows++
		}
	}
	return true
}

// sack writes the options of an ACK that tells what has come early: of several, the k-th from the last.
func (s *Stack) sack(c *tcp.Conn, k int) []byte {
	blocks, n := c.Sack(k)
	var b [wire.MaxSacks][2]uint32
	for i := range blocks[:n] {
		b[i] = [2]uint32{uint32(blocks[i][0]), uint32(blocks[i][1])}
	}
	return s.sackBuf[:wire.PutSack(s.sackBuf[:], b[:n])]
}

// sendSyn sends the SYN, or the SYN and ACK, with its options.
func (s *Stack) sendSyn(c *tcp.Conn) bool {
	mss, shift, sack := c.SynOptions()
	var buf [wire.MaxOptions]byte
	opts := buf[:wire.PutOptions(buf[:], wire.Options{MSS: mss, Scale: shift, SackOK: sack})]
	iss, rcvNxt := c.SynNumbers()
	s.count.TxSyns++
	if c.State() == tcp.SynReceived {
		return s.segment(c, iss, rcvNxt, tcp.SYN|tcp.ACK, c.SynWindow(), opts)
	}
	return s.segment(c, iss, 0, tcp.SYN, c.SynWindow(), opts)
}

func (s *Stack) sendRst(c *tcp.Conn) bool {
	if c.NextHop == 0 {
		return true // the peer's MAC was never learnt, so nothing of ours has reached it
	}
	s.count.Resets++
	seq, ack := c.RstNumbers()
	return s.segment(c, seq, ack, tcp.RST|tcp.ACK, 0, nil)
}

// sendProbe probes a closed window with one byte of what waits behind it, or keeps an idle connection alive with the
// byte before SND.UNA, which the peer has long acknowledged (RFC 9293 3.8.4, 3.8.6.1).
func (s *Stack) sendProbe(c *tcp.Conn) bool {
	s.count.Probes++
	ack, wnd := c.AckWord()
	addr, seq, fin, ok := c.Probe()
	switch {
	case !ok:
		return s.segment(c, seq, ack, tcp.ACK, wnd, nil)
	case fin:
		return s.segment(c, seq, ack, tcp.ACK|tcp.FIN, wnd, nil)
	default:
		return s.copySegment(c, seq, tcp.ACK|tcp.PSH, addr, 1)
	}
}

// resend goes back to rtxNxt and sends what the window and the buffers allow. any says whether that was anything;
// through is false when buffers or room ran out before the window did.
//
// Each segment is copied: the buffer of the first transmission may still lie in the port, or with a receiver that got
// that very buffer over a net_ring, so its headers must not be touched.
func (s *Stack) resend(c *tcp.Conn) (any, through bool) {
	for {
		addr, n, seq, fin, ok := c.NextResend()
		if !ok {
			c.PublishEdge()
			return any, true
		}
		if s.w.NStock == 0 {
			return any, false
		}
		if fin {
			ack, wnd := c.AckWord()
			if !s.segment(c, seq, ack, tcp.ACK|tcp.FIN, wnd, nil) {
				return any, false
			}
		} else if !s.copySegment(c, seq, tcp.ACK|tcp.PSH, addr, n) {
			return any, false
		}
		any = true
		if !c.First(seq) {
			s.count.Retransmits++
		}
		c.Resent()
	}
}

// copySegment sends n bytes of payload in a buffer of its own.
func (s *Stack) copySegment(c *tcp.Conn, seq tcp.Seq, flags uint8, addr uintptr, n int) bool {
	f, ok := s.takeFor()
	if !ok {
		return false
	}
	ack, wnd := c.AckWord()
	src, dst := dpdk.Bytes(addr, n), dpdk.Bytes(f.Addr+hdrLen, n)
	var sum uint64
	w := wordsAt(f.Addr)
	if s.txSum == sumSoft {
		sum = wire.Sum(src, 0)
	}
	headers(w, &c.Hdr, seq, ack, 5, flags, wnd, n, s.txSum, sum)
	copy(dst, src)
	f.Len, f.Flags = uint32(hdrLen+n), s.txFlags(dpdk.TxTCPSum)
	s.queue(f)
	return true
}

// refuse answers a segment with the RST of RFC 9293 3.10.7.1, out of nothing but the segment itself.
func (s *Stack) refuse(b []byte, h *wire.IPv4, k key, seg *tcp.Segment) {
	if seg.Flags&tcp.RST != 0 {
		return
	}
	f, ok := s.take()
	if !ok {
		s.count.NoBuffer++
		return
	}
	out := dpdk.Bytes(f.Addr, hdrLen)
	wire.PutEthernet(out, wire.EthSrc(b), s.mac, wire.TypeIPv4)
	wire.PutIPv4(out[ethLen:], k.laddr, k.raddr, wire.ProtoTCP, ipLen+tcpLen, 0)
	t := out[ethLen+ipLen:]
	clear(t)
	binary.BigEndian.PutUint16(t[0:], k.lport)
	binary.BigEndian.PutUint16(t[2:], k.rport)
	t[12] = 5 << 4
	if seg.Flags&tcp.ACK != 0 {
		binary.BigEndian.PutUint32(t[4:], uint32(seg.Ack))
		t[13] = tcp.RST
	} else {
		n := uint32(seg.Seq) + seg.Len
		if seg.Flags&tcp.SYN != 0 {
			n++
		}
		if seg.Flags&tcp.FIN != 0 {
			n++
		}
		binary.BigEndian.PutUint32(t[8:], n)
		t[13] = tcp.RST | tcp.ACK
	}
	f.Len = hdrLen
	if s.txSum != sumOff {
		binary.BigEndian.PutUint16(t[16:], ^wire.Fold(wire.Sum(t, wire.PseudoHeader(k.laddr, k.raddr, wire.ProtoTCP, tcpLen))))
	}
	s.count.Resets++
	s.queue(f)
}
