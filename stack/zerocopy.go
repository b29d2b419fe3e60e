package stack

import (
	"syscall"

	"ndpip/dpdk"
	"ndpip/stack/wire"
	"ndpip/tcp"
	"ndpip/udp"
)

// Zero copy: the application fills buffers of the port, and reads from them. A frame here describes the payload alone;
// the room for the headers lies in front of it.

// AllocBufs takes empty buffers from the transmit pool. Each frame's Addr is where the payload starts, Len the room.
func (s *Stack) AllocBufs(f []dpdk.Frame) (n int) {
	a := &s.app
	a.lock.lock()
	l := &a.lane
	for n < len(f) {
		k := min(len(f)-n, burstMax)
		if int(l.NStock) < k {
			l.Exchange(dpdk.OpFree | dpdk.OpStock)
		}
		if k = min(k, int(l.NStock), int(s.mayTake())); k == 0 {
			break
		}
		a.taken += uint64(k)
		stock := l.Stock[int(l.NStock)-k : l.NStock]
		for i := range stock {
			b, to := &stock[k-1-i], &f[n+i]
			to.Handle, to.Addr, to.Len, to.Flags = b.Handle, b.Addr+lead+hdrLen, b.Len-lead-hdrLen, 0
		}
		l.NStock -= uint32(k)
		n += k
	}
	a.lock.unlock()
	return n
}

// FreeBufs gives buffers back: allocated and not sent, or received.
func (s *Stack) FreeBufs(f []dpdk.Frame, received bool) {
	a := &s.app
	a.lock.lock()
	for i := range f {
		a.lane.Release(f[i].Handle)
	}
	if a.lane.NFree >= 32 {
		a.lane.Exchange(dpdk.OpFree)
	}
	if received {
		a.consumed.Add(uint64(len(f)))
	} else {
		a.taken -= uint64(len(f))
	}
	a.lock.unlock()
}

// SendBufs sends each buffer as one segment and takes it over, as many as the peer's window takes whole. The others
// stay the caller's, unaltered. If none fits but Writable says that there is room, as when the window is closed and
// nothing is under way, the first one is taken all the same, see holdBuf. Errors: EMSGSIZE if the first is longer than a segment may be, EAGAIN if none was taken.
func (s *Stack) SendBufs(c *tcp.Conn, f []dpdk.Frame) (n int, e syscall.Errno) {
	if e = Sendable(c); e != 0 || len(f) == 0 {
		return 0, e
	}
	a := &s.app
	enter := s.cfg.WorkerSends
	a.lock.lock()
	for n < len(f) {
		var k int
		var err syscall.Errno
		if burst := f[n:min(len(f), n+burstMax)]; enter {
			k, err = s.enterBufs(c, burst)
		} else {
			k, err = s.sendBufs(c, burst)
		}
		n += k
		if k == 0 || err != 0 || a.lane.NTx > 0 {
			e = err
			break
		}
	}
	a.lock.unlock()
	switch {
	case n > 0:
		return n, 0
	case e == 0:
		e = syscall.EAGAIN
	}
	return 0, e
}

func (s *Stack) sendBufs(c *tcp.Conn, f []dpdk.Frame) (n int, e syscall.Errno) {
	l := &s.app.lane
	if l.NTx > 0 && !s.drainApp() {
		return 0, 0
	}
	room, nxt, idle := c.Room()
	given := len(f)
	f = f[:s.txEntries(c, uint32(len(f)))]
	ack, wnd := c.AckWord()
	tail, seq := c.TxTail(), nxt
	mss := uint32(c.SndMSS)
	tx := dpdk.TxRetain | s.txFlags(dpdk.TxTCPSum)
	var whole words // as in sendBurst
	headers(&whole, &c.Hdr, 0, ack, 5, tcp.ACK, wnd, int(mss), s.txSum, 0)
	for n < len(f) {
		b := &f[n]
		if b.Len > mss {
			e = syscall.EMSGSIZE
			break
		}
		if b.Len > room-uint32(seq-nxt) {
			break
		}
		if b.Len == 0 { // nothing to send, but the buffer was handed over
			l.Release(b.Handle)
			s.app.taken--
			n++
			continue
		}
		w := wordsAt(b.Addr - hdrLen)
		first := w[6] &^ (1<<48 - 1) // two bytes of the payload share a word with the headers
		switch {
		case b.Len == mss && s.txSum != sumSoft && n < len(f)-1:
			whole.stamp(w, seq)
		default:
			flags, sum := tcp.ACK, uint64(0)
			if n == len(f)-1 {
				flags |= tcp.PSH
			}
			if s.txSum == sumSoft {
				sum = wire.Sum(b.Bytes(), 0)
			}
			headers(w, &c.Hdr, seq, ack, 5, flags, wnd, int(b.Len), s.txSum, sum)
		}
		w[6] |= first
		c.PutTx(tail, uintptr(b.Handle), b.Addr, int(b.Len))
		tail++
		t := &l.Tx[l.NTx]
		t.Handle, t.Addr, t.Len, t.Flags = b.Handle, b.Addr-hdrLen, hdrLen+b.Len, tx
		l.NTx++
		seq += tcp.Seq(b.Len)
		n++
	}
	if seq == nxt {
		s.countStall(room, given, len(f))
		if n == 0 && e == 0 && len(f) > 0 && (idle || room > 0 && c.Worth(room)) {
			s.holdBuf(c, &f[0])
			n = 1
		}
		return n, e
	}
	if c.Commit(nxt, seq, tail) {
		s.attention(c)
	}
	c.Tell(ack)
	count(&s.app.txPayload, uint64(seq-nxt))
	count(&s.app.txSegments, uint64(l.NTx))
	s.drainApp()
	return n, e
}

// holdBuf takes over a buffer that the window is too small for, while Writable says that there is room. The worker sends
// it in pieces, as the window lets it, or probes a closed window with its first byte: a connection where nothing is
// under way could wait for ever for a window update that was lost.
func (s *Stack) holdBuf(c *tcp.Conn, b *dpdk.Frame) {
	_, nxt, _ := c.Room()
	tail := c.TxTail()
	c.PutTx(tail, uintptr(b.Handle), b.Addr, int(b.Len))
	c.Hold(nxt)
	c.Commit(nxt, nxt+tcp.Seq(b.Len), tail+1)
	count(&s.app.txPayload, uint64(b.Len))
	s.attention(c)
}

// RecvBufs takes received buffers off the ring: at the end of the stream 0 and no error, EAGAIN if there is nothing.
// The window opens as they are taken. The first may be the rest of a buffer that Recv has begun.
func (s *Stack) RecvBufs(c *tcp.Conn, f []dpdk.Frame) (n int, e syscall.Errno) {
	head, cnt := c.Unread()
	if cnt == 0 {
		if cnt, e = s.nothing(c); cnt == 0 {
			return 0, e
		}
	}
	var bytes uint32
	for n < len(f) && cnt > 0 {
		e := c.RxAt(head)
		f[n] = dpdk.Frame{Handle: dpdk.Handle(e.Handle), Addr: e.Addr() + uintptr(c.RxOff), Len: uint32(e.Len()) - c.RxOff}
		c.RxOff = 0
		bytes += f[n].Len
		n++
		head++
		cnt--
	}
	s.app.countRead(uint64(bytes))
	if c.Consumed(head, bytes) {
		s.app.lock.lock()
		s.attention(c)
		s.app.lock.unlock()
	}
	return n, 0
}

// RecvUDPBufs is RecvBufs for datagrams.
func (s *Stack) RecvUDPBufs(u *udp.Sock, f []dpdk.Frame) (n int, e syscall.Errno) {
	for n < len(f) {
		d, ok := u.Take()
		if !ok {
			break
		}
		f[n] = dpdk.Frame{Handle: dpdk.Handle(d.Handle), Addr: d.Addr(), Len: uint32(d.Len())}
		n++
	}
	if n == 0 {
		return 0, syscall.EAGAIN
	}
	return n, 0
}
