package stack

import (
	"runtime"
	"sync/atomic"
	"syscall"

	"ndpip/dpdk"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// appSide is what the application's threads use. Any thread may come; they take turns by the lock, which one thread
// alone gets for the price of one atomic exchange per burst.
type appSide struct {
	lock        spinlock
	lane        dpdk.Lane
	txSegments  uint64
	txPayload   uint64
	txDatagrams uint64
	tally       appTally
	tap         Tap // see SetTap
	tapped      uint32

	// backlog says that the lane holds frames that the port did not take. The worker sends them if the application
	// does not come back.
	backlog   atomic.Uint32
	taken     uint64        // empty buffers that applications have got, ever; less those that they gave back unsent
	returned  atomic.Uint64 // of these, those that the worker has given back, ever; see Stack.txBack
	consumed  atomic.Uint64 // payloads taken off receive rings, ever
	rxPayload atomic.Uint64 // bytes read, ever
}

func (a *appSide) init(l dpdk.Lane, fill bool) {
	a.lane = l
	if fill {
		a.lane.Fill = 1
	}
	a.lane.Want = 64
	a.lane.Exchange(dpdk.OpStock)
}

// spinlock is held for the length of one burst. Go's mutex costs the same when it is free, but parks the thread when
// it is not, which takes longer than the burst.
type spinlock struct{ v atomic.Uint32 }

func (l *spinlock) try() bool { return l.v.CompareAndSwap(0, 1) }

func (l *spinlock) lock() {
	for i := 0; !l.try(); i++ {
		if i > 100 {
			runtime.Gosched()
		}
	}
}

func (l *spinlock) unlock() { l.v.Store(0) }

// helpApp sends what the application's lane could not, if the application is not at it itself.
func (s *Stack) helpApp() {
	if s.app.backlog.Load() != 0 && s.app.lock.try() {
		s.drainApp()
		s.app.lock.unlock()
	}
}

// drainApp sends the lane's frames and returns whether all are gone. Under the lock.
func (s *Stack) drainApp() bool {
	a := &s.app
	if a.lane.NTx > 0 {
		if a.tap != nil {
			a.tapOut()
		}
		a.lane.Exchange(dpdk.OpTx | dpdk.OpFree | dpdk.OpStock)
		if a.tap != nil {
			a.tapped = a.lane.NTx
		}
	}
	if a.lane.NTx > 0 {
		a.backlog.Store(1)
		s.Kick()
		return false
	}
	if a.backlog.Load() != 0 {
		a.backlog.Store(0)
	}
	return true
}

// withdraw takes the frames of a connection that is to be released out of the application's lane, where they wait for
// the port: their buffers are about to go back. The application has let go of the connection, so none are added. It
// returns false when the lane is in use: it has to be tried again.
func (s *Stack) withdraw(c *tcp.Conn) bool {
	a := &s.app
	s.purgeOut(c)
	if a.backlog.Load() == 0 {
		return true // stored under the lock, before the application let go
	}
	if !a.lock.try() {
		return false
	}
	s.purge(c)
	a.lock.unlock()
	return true
}

// reclaim gives back what a closed connection has sent and nobody has acknowledged: it will not be sent again. The
// application may not know yet that the connection is closed. It returns false when it is at its lane: try again.
func (s *Stack) reclaim(c *tcp.Conn) bool {
	if !c.TxLeft() {
		return true
	}
	s.purgeOut(c)
	a := &s.app
	if !a.lock.try() {
		return false
	}
	s.purge(c)
	s.drainTx(c)
	a.lock.unlock()
	return true
}

func (s *Stack) drainTx(c *tcp.Conn) {
	for {
		h := c.DrainTx()
		if h == 0 {
			return
		}
		s.w.Release(dpdk.Handle(h))
		s.txBack++
	}
}

// purge takes a connection's frames out of the application's lane. Under the lock.
func (s *Stack) purge(c *tcp.Conn) {
	a := &s.app
	if a.lane.NTx == 0 {
		return
	}
	keep := a.lane.Tx[:0]
	for _, f := range a.lane.Tx[:a.lane.NTx] {
		if !sameFlow(wordsAt(f.Addr), (*words)(&c.Hdr)) {
			keep = append(keep, f)
		} else if f.Flags&dpdk.TxRetain == 0 {
			a.lane.Release(f.Handle)
		}
	}
	a.lane.NTx = uint32(len(keep))
	s.drainApp()
}

// mayTake is how many empty buffers the application may have now. Under the lock.
func (s *Stack) mayTake() uint32 {
	limit := s.cfg.TxBuffers
	if limit == 0 {
		return burstMax
	}
	a := &s.app
	held := a.taken - a.returned.Load()
	peak(&a.tally.held, held)
	return uint32(min(max(limit*3/4-int(held), 0), burstMax))
}

// Flush returns the buffers that reads have freed, and sends what waits for the port.
func (s *Stack) Flush() {
	a := &s.app
	a.lock.lock()
	if s.drainApp() && a.lane.NFree > 0 {
		a.lane.Exchange(dpdk.OpFree | dpdk.OpStock)
	}
	a.lock.unlock()
}

// attention tells the worker of a connection; once is enough until it has looked. Under the lock.
func (s *Stack) attention(c *tcp.Conn) {
	if c.Attn.Load() != 0 {
		return
	}
	c.Attn.Store(1)
	for !s.attn.Push(c.ID) {
		if !s.turns.running.Load() {
			s.here(func() { s.attend() }) // no worker empties the ring
			continue
		}
		runtime.Gosched()
	}
	s.Kick()
}

// errno of a connection that ended.
func errno(r tcp.Reason) syscall.Errno {
	switch r {
	case tcp.Refused:
		return syscall.ECONNREFUSED
	case tcp.ResetByPeer:
		return syscall.ECONNRESET
	case tcp.TimedOut:
		return syscall.ETIMEDOUT
	case tcp.Unreachable:
		return syscall.EHOSTUNREACH
	case tcp.Aborted:
		return syscall.ECONNABORTED
	case tcp.NoReason:
	}
	return 0
}

// Sendable says whether the connection takes data at all: 0, or the errno of the attempt.
func Sendable(c *tcp.Conn) syscall.Errno {
	st, why, _ := c.Status()
	switch st {
	case tcp.Established, tcp.CloseWait:
		if c.FinQueued() {
			return syscall.EPIPE
		}
		return 0
	case tcp.SynSent, tcp.SynReceived:
		return syscall.EAGAIN
	case tcp.Closed:
		if e := errno(why); e != 0 && !c.FinQueued() {
			return e
		}
	case tcp.FinWait1, tcp.FinWait2, tcp.Closing, tcp.LastAck, tcp.TimeWait:
	}
	return syscall.EPIPE
}

// Send copies p into segments and sends what the peer's window takes. It returns how many bytes that is, and EAGAIN if
// it is none. One thread at a time per connection.
func (s *Stack) Send(c *tcp.Conn, p []byte) (n int, e syscall.Errno) {
	if e = Sendable(c); e != 0 || len(p) == 0 {
		return 0, e
	}
	a := &s.app
	a.lock.lock()
	for len(p) > n {
		k := 0
		if s.cfg.WorkerSends {
			k = s.enterBurst(c, p[n:])
		} else {
			k = s.sendBurst(c, p[n:])
		}
		n += k
		if k == 0 || a.lane.NTx > 0 {
			break
		}
	}
	a.lock.unlock()
	if n == 0 {
		return 0, syscall.EAGAIN
	}
	return n, 0
}

// burstMax is the most segments that one call to the port carries.
const burstMax = 64

// sendBurst sends at most burstMax segments. Under the lock.
//
// The order: the frames are written, entered in the transmit ring, made known to the worker by Commit, and only then
// handed to the port, so that no acknowledgement can come for what the worker does not know.
func (s *Stack) sendBurst(c *tcp.Conn, p []byte) int {
	a := &s.app
	l := &a.lane
	if l.NTx > 0 && !s.drainApp() {
		return 0
	}
	room, nxt, idle := c.Room()
	mss := uint32(c.SndMSS)
	n := min(uint32(min(len(p), burstMax<<16)), room)
	if n == 0 {
		if !idle {
			a.tally.windowStalls++
			return 0
		}
		n = 1 // the window is closed and nothing is under way: one byte waits, for the persist timer to send
	}
	want := min((n+mss-1)/mss, burstMax)
	segs := s.txEntries(c, want)
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
	ack, wnd := c.AckWord()
	tail := c.TxTail()
	seq := nxt
	segs = (n + mss - 1) / mss
	stock := l.Stock[l.NStock-segs : l.NStock]
	tx := l.Tx[:segs] // the list is empty: what was left of the last burst has gone out
	flags := dpdk.TxRetain | s.txFlags(dpdk.TxTCPSum)
	// The headers of whole segments differ in the sequence number alone, unless the checksum is ours to compute.
	var whole words
	headers(&whole, &c.Hdr, 0, ack, 5, tcp.ACK, wnd, int(mss), s.txSum, 0)
	for i := range tx {
		f := &stock[len(stock)-1-i] // the last freed first: it is warm
		addr := f.Addr + lead
		k := min(mss, n)
		src, dst := p[:k], dpdk.Bytes(addr+hdrLen, int(k))
		w := wordsAt(addr)
		switch {
		case s.txSum == sumSoft || i == len(tx)-1:
			var sum uint64
			f := tcp.ACK
			if i == len(tx)-1 {
				f |= tcp.PSH
			}
			if s.txSum == sumSoft {
				sum = wire.CopySum(dst, src)
				headers(w, &c.Hdr, seq, ack, 5, f, wnd, int(k), s.txSum, sum)
				copy(dst[:min(k, 2)], src) // two bytes share a word with the headers
				break
			}
			headers(w, &c.Hdr, seq, ack, 5, f, wnd, int(k), s.txSum, 0)
			copy(dst, src)
		default:
			whole.stamp(w, seq)
			// After the headers, whose last word holds two bytes of it.
			if k < wire.AheadMin {
				copy(dst, src)
			} else {
				wire.CopyAhead(dst, src, stock[len(stock)-2-i].Addr+lead+hdrLen, wire.At(src)+uintptr(k))
			}
		}
		c.PutTx(tail+uint32(i), uintptr(f.Handle), addr+hdrLen, int(k))
		t := &tx[i]
		t.Handle, t.Addr, t.Len, t.Flags = f.Handle, addr, hdrLen+k, flags
		seq += tcp.Seq(k)
		p, n = p[k:], n-k
	}
	l.NStock -= segs
	a.taken += uint64(segs)
	tail += segs
	if !closed {
		l.NTx = segs
	}
	n = uint32(seq - nxt)
	if closed {
		c.Hold(nxt)
	}
	if c.Commit(nxt, seq, tail) || closed {
		s.attention(c)
	}
	count(&a.txPayload, uint64(n))
	if !closed {
		c.Tell(ack)
		count(&a.txSegments, uint64(l.NTx))
		s.drainApp()
	}
	return int(n)
}

// txEntries is how many segments the transmit ring takes, of want. The ring is made with the first.
func (s *Stack) txEntries(c *tcp.Conn, want uint32) uint32 {
	if base, _ := c.TxRing(); base == 0 {
		c.SetTxRing(s.tx.Get(c.TxWant), c.TxWant)
	}
	return min(want, c.TxRoom(want))
}

// Writable says whether Send would take something. Any thread may ask.
func (s *Stack) Writable(c *tcp.Conn) bool { return c.Writable() }

// Fin ends the stream to the peer (shutdown, close): the FIN goes through the application's own transmit queue, so
// that it cannot overtake the data. Then the worker is told.
func (s *Stack) Fin(c *tcp.Conn) {
	a := &s.app
	a.lock.lock()
	room, nxt, _ := c.Room()
	sent := false
	switch {
	case s.cfg.WorkerSends:
		sent = room > 0 // by the worker, behind what is entered
	case room > 0 && s.drainApp() && s.fill(1):
		f, _ := a.lane.Take()
		ack, wnd := c.AckWord()
		headers(wordsAt(f.Addr), &c.Hdr, nxt, ack, 5, tcp.FIN|tcp.ACK, wnd, 0, s.txSum, 0)
		f.Len, f.Flags = hdrLen, s.txFlags(dpdk.TxTCPSum)
		a.lane.Queue(f)
		c.Tell(ack)
		sent = true
	}
	if !sent {
		c.HoldFin(nxt)
	}
	c.CommitFin(nxt)
	a.tally.fins++
	s.drainApp()
	s.attention(c)
	a.lock.unlock()
}

// fill sees to n buffers in stock. Under the lock.
func (s *Stack) fill(n uint32) bool {
	if l := &s.app.lane; l.NStock < n {
		l.Exchange(dpdk.OpFree | dpdk.OpStock)
	}
	return s.app.lane.NStock >= n
}

// Recv copies what has been received to p. It returns 0 and no error at the end of the stream, EAGAIN when there is
// nothing yet. One thread at a time per connection.
func (s *Stack) Recv(c *tcp.Conn, p []byte) (n int, e syscall.Errno) {
	head, cnt := c.Unread()
	if cnt == 0 {
		if cnt, e = s.nothing(c); cnt == 0 {
			return 0, e
		}
	}
	if len(p) == 0 {
		return 0, 0
	}
	var done [burstMax]uintptr
	k := 0
	tell := false
	off := c.RxOff
	base := n
	for cnt > 0 && n < len(p) {
		e := c.RxAt(head)
		src := dpdk.Bytes(e.Addr()+uintptr(off), e.Len()-int(off))
		m := len(src)
		if m < wire.AheadMin || m > len(p)-n {
			m = copy(p[n:], src)
		} else {
			next := e.Addr()
			if cnt > 1 { // what lies behind that is the worker's still
				next = c.RxAt(head + 1).Addr()
			}
			wire.CopyAhead(p[n:n+m], src, wire.At(p)+uintptr(n+m), next)
		}
		n += m
		if m < len(src) {
			off += uint32(m)
			break
		}
		off = 0
		done[k] = e.Handle
		k++
		head++
		cnt--
		if k == len(done) {
			tell = s.giveBack(c, head, uint32(n-base), done[:k]) || tell
			k, base = 0, n
		}
	}
	c.RxOff = off
	tell = s.giveBack(c, head, uint32(n-base), done[:k]) || tell
	if tell {
		s.app.lock.lock()
		s.attention(c)
		s.app.lock.unlock()
	}
	return n, 0
}

// giveBack tells the worker what was read and puts the buffers on the free list.
func (s *Stack) giveBack(c *tcp.Conn, head, n uint32, done []uintptr) (tell bool) {
	tell = c.Consumed(head, n)
	a := &s.app
	a.countRead(uint64(n))
	if len(done) == 0 {
		return tell
	}
	a.lock.lock()
	for _, h := range done {
		a.lane.Release(dpdk.Handle(h))
	}
	if a.lane.NFree >= 32 {
		a.lane.Exchange(dpdk.OpFree)
	}
	a.consumed.Add(uint64(len(done)))
	a.lock.unlock()
	return tell
}

// nothing says why there is nothing to read. The state is looked at before the ring once more: data come before the
// end of the stream.
func (s *Stack) nothing(c *tcp.Conn) (n uint32, e syscall.Errno) {
	st, why, eof := c.Status()
	if _, n = c.Unread(); n > 0 {
		return n, 0
	}
	switch {
	case c.Staged():
		return 0, syscall.EAGAIN
	case eof:
		return 0, 0
	case st == tcp.Closed:
		return 0, errno(why)
	case st == tcp.SynSent || st == tcp.SynReceived:
		return 0, syscall.EAGAIN
	}
	return 0, syscall.EAGAIN
}

// Readable says whether Recv would return something: data, the end of the stream, or an error.
func (s *Stack) Readable(c *tcp.Conn) bool {
	if _, n := c.Unread(); n > 0 {
		return true
	}
	n, e := s.nothing(c)
	return n > 0 || e != syscall.EAGAIN
}
