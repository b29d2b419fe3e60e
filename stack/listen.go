package stack

import (
	"math/bits"
	"sync/atomic"
	"syscall"

	"ndpip/dpdk"
	"ndpip/ring"
	"ndpip/tcp"
)

// Options are a socket's, as far as the protocol needs them. The zero value takes the stack's defaults.
type Options struct {
	RcvBuf, SndBuf int
	MaxRxSeg       int // largest segment asked for (SO_NDPIP_TCP_MAX_RX_SEG)
	MaxTxSeg       int // largest segment sent (SO_NDPIP_MAX_TX_SEG)
	WinScale       int // 1 + the scale to offer; 0: from RcvBuf
	ReuseAddr      bool
	Service
	KeepIdle    int64 // ns; 0: off
	KeepGap     int64 // ns between probes; 0: from KeepIdle
	KeepMax     uint8 // probes before giving up; 0: 9
	UserTimeout int64 // ns; 0: off
	// Congestion is the congestion control (tcp.ControlNamed), and with it the lossy profile; 0: the lossless profile.
	Congestion uint8
}

// Listener is a socket in LISTEN. Accept ring, Watch, Ready and Stream are shared with the application as a
// connection's are; all else is the worker's.
type Listener struct {
	Laddr      uint32 // 0: any
	Lport      uint16
	Watch      atomic.Uint32
	Ready      atomic.Uint32
	Stream     uint32
	opts       Options
	backlog    int
	id         uint32
	half       int                               // connections in SYN-RECEIVED
	waiting    []halfOpen                        // these, the oldest first, and some that are so no more
	cookies    int64                             // until when SYNs that find no room are answered by cookies, ns
	nextCookie int64                             // when there is one again
	queue      atomic.Pointer[ring.SPSC[uint32]] // replaced by SetBacklog
}

func listenKey(addr uint32, port uint16) uint64 { return uint64(addr)<<16 | uint64(port) }

// listener finds who listens on an address and port: the one bound to the address, else the one bound to any.
func (s *Stack) listener(addr uint32, port uint16) *Listener {
	if l := s.listeners[listenKey(addr, port)]; l != nil {
		return l
	}
	return s.listeners[listenKey(0, port)]
}

// Listen makes a listener on a port that Bind has reserved.
func (s *Stack) Listen(addr uint32, port uint16, backlog int, o Options, stream uint32) (l *Listener, e syscall.Errno) {
	s.do(func() {
		k := listenKey(addr, port)
		if !s.ports.listen(port) {
			e = syscall.EADDRINUSE
			return
		}
		backlog = min(max(backlog, 1), 1<<16)
		l = &Listener{Laddr: addr, Lport: port, opts: o, Stream: stream, backlog: backlog}
		l.queue.Store(ring.New[uint32](backlog))
		s.nextList++
		l.id = s.nextList
		s.listeners[k], s.byID[l.id] = l, l
	})
	return l, e
}

// SetBacklog changes a listener's backlog, as a second listen() does. Nobody may accept meanwhile.
func (s *Stack) SetBacklog(l *Listener, backlog int) {
	s.do(func() {
		l.backlog = min(max(backlog, 1), 1<<16)
		old := l.queue.Load()
		if l.backlog <= old.Cap() {
			return
		}
		grown := ring.New[uint32](l.backlog)
		for id, ok := old.Pop(); ok; id, ok = old.Pop() {
			grown.Push(id)
		}
		l.queue.Store(grown)
	})
}

// SetOptions changes what a listener's connections are opened with from now on.
func (s *Stack) SetOptions(l *Listener, o Options) { s.do(func() { l.opts = o }) }

// Unlisten closes a listener. Connections that nobody has accepted are reset.
func (s *Stack) Unlisten(l *Listener) {
	s.do(func() {
		delete(s.listeners, listenKey(l.Laddr, l.Lport))
		delete(s.byID, l.id)
		s.ports.unlisten(l.Lport)
		for {
			id, ok := l.queue.Load().Pop()
			if !ok {
				break
			}
			c := s.conns.at(id)
			c.Abort()
			s.close(c)
		}
		s.conns.each(func(c *tcp.Conn) {
			if c.Parent == l.id && c.State() == tcp.SynReceived {
				c.Abort()
				s.touch(c)
			}
		})
	})
}

// Accept takes a connection that is open, or nil. stream is the application's name for it.
func (s *Stack) Accept(l *Listener) *tcp.Conn {
	id, ok := l.queue.Load().Pop()
	if !ok {
		return nil
	}
	return s.conns.of(id)
}

// AcceptBurst takes as many connections that are open as there are, and as cs has room for, and says how many.
func (s *Stack) AcceptBurst(l *Listener, cs []*tcp.Conn) (n int) {
	var ids [64]uint32
	for n < len(cs) {
		k := l.queue.Load().PopBulk(ids[:min(len(ids), len(cs)-n)])
		if k == 0 {
			break
		}
		for _, id := range ids[:k] {
			cs[n] = s.conns.of(id)
			n++
		}
	}
	return n
}

// Acceptable says whether Accept has a connection.
func (l *Listener) Acceptable() bool { return l.queue.Load().Len() > 0 }

// full says whether a listener's backlog is full. Then a SYN is dropped without a word, unless there is a flood
// (cookie.go): the peer comes again, and never has a connection that is then reset.
func (l *Listener) full() bool { return l.half+l.queue.Load().Len() >= l.backlog }

// passiveOpen is a SYN for a listener (RFC 9293 3.10.7.2). The initial sequence number is at least least, if not 0.
func (s *Stack) passiveOpen(l *Listener, k key, from MAC, seg *tcp.Segment, least tcp.Seq) {
	if l.full() {
		if s.flooded(l) && least == 0 {
			s.sendCookie(l, k, from, seg)
		} else {
			s.count.Drop[DropBacklog]++
		}
		return
	}
	iss := s.isn(k)
	if least != 0 && iss.Less(least) {
		iss = least
	}
	s.touch(s.openPassive(l, k, from, seg, iss))
}

// openPassive makes the connection that a SYN from a station asks for.
func (s *Stack) openPassive(l *Listener, k key, from MAC, seg *tcp.Segment, iss tcp.Seq) *tcp.Conn {
	known := s.find(pairKey{k.laddr, k.raddr, k.lport, true}, &l.opts)
	if known != nil && known.mac != from && known.mac != s.station(k, from) {
		known = nil
	}
	c := s.block(known)
	u := s.setupFor(known, &l.opts, k)
	u.ISS = iss
	s.profile(&u, &l.opts)
	c.Parent = l.id
	c.Accept(&s.cfg.TCP, &u, s.now, seg)
	l.entered(s, c)
	s.holdPort(c, l.opts.ReuseAddr)
	if known != nil {
		s.joinAs(c, &l.opts, known)
	} else {
		s.join(c, &l.opts, s.station(k, from))
	}
	return c
}

// setupFor is setup, or what it gave for the pair.
func (s *Stack) setupFor(p *pair, o *Options, k key) tcp.Setup {
	if p == nil {
		return s.setup(o, k)
	}
	u := p.setup
	u.Lport, u.Rport = k.lport, k.rport
	return u
}

// joinAs is join with what is known of the pair.
func (s *Stack) joinAs(c *tcp.Conn, o *Options, p *pair) {
	s.enter(c, o)
	c.NextHop, c.NeighRef = p.hop, p.nref
	c.Hdr = p.hdr
	c.Hdr[4] |= uint64(bits.ReverseBytes16(c.Lport))<<16 | uint64(bits.ReverseBytes16(c.Rport))<<32
}

// station is the MAC for what goes back to a peer whose frame came from one.
func (s *Stack) station(k key, from MAC) MAC {
	if mac, ok := s.staticMAC(s.hop(k.raddr)); ok {
		return mac
	}
	return from
}

// setup is what a connection with these options is opened with.
func (s *Stack) setup(o *Options, k key) tcp.Setup {
	or := func(v, d int) int {
		if v > 0 {
			return v
		}
		return d
	}
	rcv, snd := or(o.RcvBuf, s.cfg.RcvBuf), or(o.SndBuf, s.cfg.SndBuf)
	mss := min(or(o.MaxRxSeg, s.cfg.MSS), s.cfg.MTU-ipLen-tcpLen)
	u := tcp.Setup{
		MSS:    uint16(mss),
		SndMSS: uint16(min(or(o.MaxTxSeg, s.cfg.MSS), s.cfg.MTU-ipLen-tcpLen)),
		Laddr:  k.laddr, Raddr: k.raddr, Lport: k.lport, Rport: k.rport,
		Out: s.cfg.WorkerSends,
	}
	shift := uint8(0)
	if scale := max(o.WinScale-1, s.cfg.WinScale); o.WinScale > 0 || scale > 0 {
		shift = uint8(min(scale, 14))
		rcv = min(max(rcv, 2<<shift), 65535<<shift) // less than a unit could not be told, and of one alone each byte leaves none
	} else {
		for shift < 14 && rcv>>shift > 65535 {
			shift++
		}
	}
	u.Shift = shift
	u.RcvBuf = uint32(min(rcv, 1<<30))
	u.RxEntries = pow2(u.RcvBuf/tcp.RingPerBytes, 64, max(uint32(s.cfg.MaxRing), u.RcvBuf/tcp.RingPerBytes))
	u.TxEntries = pow2(uint32(snd/tcp.RingPerBytes), 64, max(uint32(s.cfg.MaxRing), uint32(snd)/uint32(mss)))
	return u
}

// profile gives a connection that is about to be opened what its profile needs.
func (s *Stack) profile(u *tcp.Setup, o *Options) {
	if o.Congestion != 0 {
		u.Lossy, u.Control = s.rx.Get(tcp.LossyEntries), o.Congestion
	}
}

// pow2 is n rounded up to a power of two, and kept between lo and hi, of which lo is one.
func pow2(n, lo, hi uint32) uint32 {
	p := lo
	for p < n && p < hi {
		p *= 2
	}
	return p
}

// join enters a connection in the table and writes its header template.
func (s *Stack) join(c *tcp.Conn, o *Options, mac MAC) {
	s.enter(c, o)
	c.NextHop = s.hop(c.Raddr)
	s.template(c, o.Service, mac)
}

func (s *Stack) enter(c *tcp.Conn, o *Options) {
	c.KeepIdle, c.KeepGap, c.KeepMax, c.UserTimeout = o.KeepIdle, o.KeepGap, o.KeepMax, o.UserTimeout
	s.table.put(key{c.Laddr, c.Raddr, c.Lport, c.Rport}, c.ID)
	c.Linked |= inTable
}

// opened hands a connection that has come up, or failed to, to who waits for it.
func (s *Stack) opened(c *tcp.Conn) {
	up := c.State() != tcp.Closed
	if p := s.pairOf(c); up && p != nil {
		p.used = s.now
	}
	if c.Parent == 0 {
		if up {
			s.count.Opened++
		}
		return
	}
	if up && c.Pair == 0 {
		s.renew(c) // its frames went to where the SYN came from
	}
	l := s.byID[c.Parent]
	c.Parent = 0
	if l == nil || !up {
		if l != nil {
			l.half--
		}
		c.Abort()
		c.Close(&s.cfg.TCP, s.now)
		s.touch(c)
		return
	}
	l.half--
	s.count.Accepted++
	if c.Pair == 0 && s.archive.blocks != nil && serviceOf(c) == (Service{l.opts.TOS, l.opts.ttl()}) { // or SetOptions has come between
		u := s.setup(&l.opts, key{c.Laddr, c.Raddr, c.Lport, c.Rport})
		s.note(pairKey{c.Laddr, c.Raddr, c.Lport, true}, c, &l.opts, &u, macOf(c))
	}
	l.queue.Load().Push(c.ID) // there is room: half and queue together stay within the backlog
	if w := l.Watch.Load(); w != 0 {
		s.tell(&l.Ready, l.Stream, w, tcp.PendRead)
	}
}

// unlink takes a connection out of the table, so that its addresses and ports are free.
func (s *Stack) unlink(c *tcp.Conn) {
	if c.Linked&inTable != 0 {
		c.Linked &^= inTable
		k := key{c.Laddr, c.Raddr, c.Lport, c.Rport}
		s.table.del(k)
		if s.last == c {
			s.last = nil
		}
		s.freePort(c)
	}
}

// release gives back everything that a closed connection holds.
func (s *Stack) release(c *tcp.Conn) {
	s.unlink(c)
	s.wheel.cancel(c.ID)
	s.count.Closed++
	s.vacate(c)
}

// vacate gives back the block of a connection that is done with, and what it holds.
func (s *Stack) vacate(c *tcp.Conn) {
	s.drain(c)
	if !s.keep(c) {
		s.putRings(c)
		s.conns.put(c)
	}
}

// shed gives back the buffers and rings of a connection that needs them no more.
func (s *Stack) shed(c *tcp.Conn) {
	s.drain(c)
	s.putRings(c)
}

// drain gives back the buffers.
func (s *Stack) drain(c *tcp.Conn) {
	if h := c.TakeStage(); h != 0 {
		s.w.Release(dpdk.Handle(h))
		s.rxHeld--
	}
	for {
		h := c.DrainRx()
		if h == 0 {
			break
		}
		s.w.Release(dpdk.Handle(h))
		s.rxHeld--
	}
	for h := c.DropQueued(); h != 0; h = c.DropQueued() {
		s.w.Release(dpdk.Handle(h))
		s.rxHeld--
	}
	if state, queue, n := c.DropLossy(); state != 0 {
		s.rx.Put(state, tcp.LossyEntries)
		if queue != 0 {
			s.rx.Put(queue, n)
		}
	}
	s.drainTx(c)
}

// putRings gives back the rings.
func (s *Stack) putRings(c *tcp.Conn) {
	if base, n := c.RxRing(); base != 0 {
		s.rx.Put(base, n)
		c.SetRxRing(0, 1)
	}
	if base, n := c.TxRing(); base != 0 {
		s.tx.Put(base, n)
		c.SetTxRing(0, 1)
	}
}
