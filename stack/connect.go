package stack

import (
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"

	"ndpip/tcp"
)

// Connect opens a connection from lport (0: chosen, RFC 6056) to a peer. It returns at once, with the connection in
// SYN-SENT; stream is the application's name for it. Errors: ENETUNREACH (no route), EADDRNOTAVAIL (no port is free
// for this peer), EADDRINUSE (the addresses and ports are those of another connection).
func (s *Stack) Connect(lport uint16, raddr uint32, rport uint16, o Options, stream uint32) (c *tcp.Conn, e syscall.Errno) {
	if !s.turns.running.Load() {
		s.ctl.turn.Lock()
		s.readClock()
		c, e = s.connect(lport, raddr, rport, &o, stream)
		s.settle()
		s.ctl.turn.Unlock()
		s.Kick()
		return c, e
	}
	w := openings.Get().(*opening)
	w.lport, w.raddr, w.rport, w.opts, w.stream = lport, raddr, rport, o, stream
	w.done.Store(0)
	s.send(command{op: opOpen, open: w})
	s.await(&w.done)
	c, e = w.c, w.e
	openings.Put(w)
	return c, e
}

// opening is a Connect on its way to the worker and back. They are used again: connecting allocates nothing.
type opening struct {
	lport, rport uint16
	raddr        uint32
	opts         Options
	stream       uint32
	c            *tcp.Conn
	e            syscall.Errno
	done         atomic.Uint32 // stored by the worker after c and e
}

var openings = sync.Pool{New: func() any { return new(opening) }}

func (s *Stack) connect(lport uint16, raddr uint32, rport uint16, o *Options, stream uint32) (*tcp.Conn, syscall.Errno) {
	pk := pairKey{s.addr, raddr, rport, false}
	known := s.find(pk, o)
	hop := uint32(0)
	if known == nil {
		if hop = s.hop(raddr); hop == 0 || s.net.BadSource(raddr) {
			return nil, syscall.ENETUNREACH
		}
	}
	k := key{s.addr, raddr, lport, rport}
	least := tcp.Seq(0)
	ref := uint32(0)
	if lport == 0 {
		var ok bool
		if k.lport, ref, ok = s.ports.choose(raddr, rport, o.ReuseAddr); !ok {
			return nil, syscall.EADDRNOTAVAIL
		}
	}
	if id := s.table.get(k); id != 0 {
		// A connection in TIME-WAIT gives way to a new one whose numbers lie above (RFC 9293 3.10.7.4).
		if id&waitMark != 0 {
			least, _, _ = s.waits.at(id &^ waitMark).Numbers()
			s.endWait(id&^waitMark, true)
		} else {
			old := s.conns.at(id)
			if old.State() != tcp.TimeWait {
				return nil, syscall.EADDRINUSE
			}
			least = old.AckSeq()
			s.unlink(old)
			old.Die(tcp.NoReason)
			s.touch(old)
		}
		least += 1 << 16
	}
	c := s.block(known)
	c.Stream = stream
	u := s.setupFor(known, o, k)
	u.ISS = s.isn(k)
	if least != 0 && u.ISS.Less(least) {
		u.ISS = least
	}
	s.profile(&u, o)
	c.Open(&s.cfg.TCP, &u)
	if c.PortRef = ref; ref == 0 {
		s.holdPort(c, o.ReuseAddr)
	}
	ok, dead := true, false
	if known != nil {
		s.joinAs(c, o, known)
	} else {
		var mac MAC
		mac, c.NeighRef, ok, dead = s.neighbour(hop)
		s.join(c, o, mac)
		if ok {
			s.note(pk, c, o, &u, mac)
		}
	}
	if ref != 0 {
		s.table.expect(key{k.laddr, k.raddr, s.ports.next, k.rport}) // the next connection is often to the same peer
		if s.waits.first != 0 {
			prefetch(unsafe.Pointer(s.waits.at(s.waits.first)))
		}
	}
	switch {
	case ok:
		c.Go(s.now)
	case dead:
		c.Die(tcp.Unreachable)
	default:
		s.awaiting[hop] = append(s.awaiting[hop], c.ID)
	}
	s.touch(c)
	c.Publish(&s.cfg.TCP, s.now) // the application looks at the state as soon as it has the connection, and that may be before the turn ends
	return c, 0
}

// reachable sends the SYNs that waited for a neighbour; unreachable ends their connections.
func (s *Stack) reachable(hop uint32, mac MAC) {
	for _, id := range s.awaiting[hop] {
		if c := s.conns.at(id); c.ID == id && c.State() == tcp.SynSent && c.NextHop == hop {
			setMAC(c, mac)
			c.Go(s.now)
			s.touch(c)
		}
	}
	delete(s.awaiting, hop)
}

func (s *Stack) unreachableHop(hop uint32) {
	for _, id := range s.awaiting[hop] {
		if c := s.conns.at(id); c.ID == id && c.State() == tcp.SynSent && c.NextHop == hop {
			c.Die(tcp.Unreachable)
			s.touch(c)
		}
	}
	delete(s.awaiting, hop)
}

// holdPort keeps a local port that was bound in use as long as the connection has it.
func (s *Stack) holdPort(c *tcp.Conn, reuse bool) {
	s.ports.hold(c.Lport, reuse)
	c.Linked |= heldPort
	if reuse {
		c.Linked |= reusePort
	}
}

// freePort ends the connection's use of its local port.
func (s *Stack) freePort(c *tcp.Conn) {
	s.giveUpPort(c.PortRef, c.Lport, c.Linked)
	c.PortRef = 0
	c.Linked &^= heldPort
}

// giveUpPort is freePort by the connection's fields.
func (s *Stack) giveUpPort(ref uint32, port uint16, marks uint8) {
	s.ports.drop(ref)
	if marks&heldPort != 0 {
		s.ports.release(port, marks&reusePort != 0)
	}
}

// Bind reserves a local TCP port, 0 for a free one, and returns it. EADDRINUSE: it is in use, or all are.
func (s *Stack) Bind(port uint16, reuse bool) (got uint16, e syscall.Errno) {
	s.do(func() {
		var ok bool
		if got, ok = s.ports.bind(port, reuse); !ok {
			e = syscall.EADDRINUSE
		}
	})
	return got, e
}

// Unbind ends Bind; reuse is as it was then.
func (s *Stack) Unbind(port uint16, reuse bool) { s.do(func() { s.ports.release(port, reuse) }) }
