package stack

import (
	"syscall"

	"ndpip/dpdk"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// The third placement (Config.WorkerSends): the application's threads fill frames and enter them in the connection's
// transmit ring; the worker makes the headers and hands the frames to the port, in its own lane. It is told of each burst
// by attention. Where checksums are software's, their payload's part is left in the room for the headers, in its first
// word: who copies adds up as well.

// enterBurst is sendBurst without sending. Under the lock.
func (s *Stack) enterBurst(c *tcp.Conn, p []byte) int {
	a := &s.app
	l := &a.lane
	room, nxt, idle := c.Room()
	mss := uint32(c.SndMSS)
	n := min(uint32(min(len(p), burstMax<<16)), room)
	if n == 0 {
		if !idle {
			a.tally.windowStalls++
			return 0
		}
		n = 1 // as in sendBurst
	}
	segs := s.txEntries(c, min((n+mss-1)/mss, burstMax))
	if l.NStock < segs {
		l.Exchange(dpdk.OpFree | dpdk.OpStock)
	}
	if segs = min(segs, l.NStock, s.mayTake()); segs == 0 {
		a.tally.ringStalls++
		return 0
	}
	if n > segs*mss {
		n = segs * mss
	} else if n == room && n < uint32(len(p)) && !idle {
		if cut := n % mss; cut != 0 && !c.Worth(cut) {
			if n -= cut; n == 0 {
				return 0
			}
		}
	}
	closed := room == 0
	tail, seq := c.TxTail(), nxt
	segs = (n + mss - 1) / mss
	stock := l.Stock[l.NStock-segs : l.NStock]
	for i := range segs {
		f := &stock[segs-1-i]
		addr := f.Addr + lead
		k := min(mss, n)
		src, dst := p[:k], dpdk.Bytes(addr+hdrLen, int(k))
		switch {
		case s.txSum == sumSoft:
			wordsAt(addr)[0] = wire.CopySum(dst, src)
		case k < wire.AheadMin || i == segs-1:
			copy(dst, src)
		default:
			wire.CopyAhead(dst, src, stock[segs-2-i].Addr+lead+hdrLen, wire.At(src)+uintptr(k))
		}
		c.PutTx(tail+i, uintptr(f.Handle), addr+hdrLen, int(k))
		seq += tcp.Seq(k)
		p, n = p[k:], n-k
	}
	l.NStock -= segs
	a.taken += uint64(segs)
	if closed {
		c.Hold(nxt)
	} else {
		count(&a.txSegments, uint64(segs))
	}
	c.Commit(nxt, seq, tail+segs)
	count(&a.txPayload, uint64(seq-nxt))
	s.attention(c)
	return int(seq - nxt)
}

// enterBufs is sendBufs without sending. Under the lock.
func (s *Stack) enterBufs(c *tcp.Conn, f []dpdk.Frame) (n int, e syscall.Errno) {
	room, nxt, idle := c.Room()
	given := len(f)
	f = f[:s.txEntries(c, uint32(len(f)))]
	tail, seq := c.TxTail(), nxt
	mss := uint32(c.SndMSS)
	for n < len(f) {
		b := &f[n]
		if b.Len > mss {
			e = syscall.EMSGSIZE
			break
		}
		if b.Len > room-uint32(seq-nxt) {
			break
		}
		n++
		if b.Len == 0 {
			s.app.lane.Release(b.Handle)
			s.app.taken--
			continue
		}
		if s.txSum == sumSoft {
			wordsAt(b.Addr - hdrLen)[0] = wire.Sum(b.Bytes(), 0)
		}
		c.PutTx(tail, uintptr(b.Handle), b.Addr, int(b.Len))
		tail++
		seq += tcp.Seq(b.Len)
	}
	if seq == nxt {
		s.countStall(room, given, len(f))
		if n == 0 && e == 0 && len(f) > 0 && (idle || room > 0 && c.Worth(room)) {
			s.holdBuf(c, &f[0])
			n = 1
		}
		return n, e
	}
	count(&s.app.txSegments, uint64(tail-c.TxTail()))
	c.Commit(nxt, seq, tail)
	count(&s.app.txPayload, uint64(seq-nxt))
	s.attention(c)
	return n, e
}

// sendOut sends what the application has entered. any says whether that was anything; through is false when room or
// buffers ran out before.
func (s *Stack) sendOut(c *tcp.Conn) (any, through bool) {
	ack, wnd := c.AckWord()
	mss := int(c.SndMSS)
	flags := dpdk.TxRetain | s.txFlags(dpdk.TxTCPSum)
	var whole words
	made := false
	for {
		e, seq, ahead, fin, ok := c.NextOut()
		if !ok {
			if any {
				c.Linked &^= inLate // told
			}
			return any, true
		}
		if s.w.TxRoom() <= dpdk.TxCap/2 {
			if s.flush(); s.w.TxRoom() <= dpdk.TxCap/2 {
				s.stuck = true
				return any, false
			}
		}
		if fin {
			if !s.segment(c, seq, ack, tcp.ACK|tcp.FIN, wnd, nil) {
				return any, false
			}
			c.Out(seq + 1)
			c.Linked &^= inLate
			return true, true
		}
		n, addr := e.Len(), e.Addr()-hdrLen
		w := wordsAt(addr)
		first := w[6] &^ (1<<48 - 1) // two bytes of the payload share a word with the headers
		if ahead > outAhead {
			x := c.OutAt(outAhead)
			wire.FetchToWrite(x.Addr()-hdrLen, x.Handle)
		}
		if n == mss && s.txSum != sumSoft && ahead > 0 {
			if !made {
				headers(&whole, &c.Hdr, 0, ack, 5, tcp.ACK, wnd, mss, s.txSum, 0)
				made = true
			}
			whole.stamp(w, seq)
		} else {
			f := tcp.ACK
			if ahead == 0 {
				f |= tcp.PSH
			}
			headers(w, &c.Hdr, seq, ack, 5, f, wnd, n, s.txSum, w[0])
		}
		w[6] |= first
		s.w.Queue(dpdk.Frame{Handle: dpdk.Handle(e.Handle), Addr: addr, Len: uint32(hdrLen + n), Flags: flags})
		c.Out(seq + tcp.Seq(n))
		any = true
	}
}

// outAhead is how many entries ahead sendOut fetches the headers' line and the driver's of a frame. It takes longer to get them from
// the application's CPU, or from memory, than to make one frame's headers.
const outAhead = 4

// purgeOut takes a connection's frames that the port has not taken out of the worker's lane: their buffers are about to go
// back.
func (s *Stack) purgeOut(c *tcp.Conn) {
	if !s.cfg.WorkerSends || s.w.NTx == 0 {
		return
	}
	if s.flush(); s.w.NTx == 0 {
		return
	}
	keep := s.w.Tx[:0]
	for _, f := range s.w.Tx[:s.w.NTx] {
		if f.Flags&dpdk.TxRetain == 0 || !sameFlow(wordsAt(f.Addr), (*words)(&c.Hdr)) {
			keep = append(keep, f)
		}
	}
	s.w.NTx = uint32(len(keep))
}
