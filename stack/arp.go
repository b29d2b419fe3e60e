package stack

import (
	"encoding/binary"
	"syscall"

	"ndpip/dpdk"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// What joins the neighbour cache to the stack.

func (s *Stack) initNeighbours() {
	static := make(map[uint32]wire.MAC, len(s.cfg.Neighbours))
	for ip, mac := range s.cfg.Neighbours {
		static[wire.FromAddr(ip)] = mac
	}
	s.neigh = newNeighbours(neighConfig{mac: s.mac, net: s.net, gateway: wire.FromAddr(s.cfg.Gateway), static: static,
		secret: s.sec})
}

// inputARP is a received frame of type ARP.
func (s *Stack) inputARP(b []byte) {
	a, drop := wire.ParseARP(b[ethLen:])
	if drop != wire.OK {
		s.drop(drop)
		return
	}
	s.neigh.input(a, s.now, &s.news)
	s.takeNews()
}

// tickNeighbours takes the neighbour cache's timed steps.
func (s *Stack) tickNeighbours() {
	const every = 50e6
	if s.now >= s.neighAt {
		s.neighAt = s.now + every
		s.neigh.tick(s.now, &s.news)
		s.takeNews() // and what moved too soon after others
	}
}

// takeNews acts on what the neighbour cache has to say.
func (s *Stack) takeNews() {
	n := &s.news
	for _, k := range n.known {
		s.reachable(k.ip, k.mac)
		if k.old != k.mac && k.old != (wire.MAC{}) {
			s.moved.any = true
		}
	}
	s.followMoves()
	for i := range n.arp {
		f, ok := s.take()
		if !ok {
			s.count.NoBuffer++
			continue
		}
		f.Len, f.Flags = uint32(n.arp[i].put(dpdk.Bytes(f.Addr, ethLen+wire.ARPLen))), 0
		s.queue(f)
	}
	for i := range n.send {
		f := n.send[i].frame
		copy(dpdk.Bytes(f.Addr, 6), n.send[i].to[:])
		s.queue(f)
	}
	for i := range n.drop {
		b := n.drop[i].Bytes()
		h := (*wire.IPv4)(b[ethLen:]) // a datagram: segments do not wait for a neighbour, their connection does
		s.udpError(h.Src(), binary.BigEndian.Uint16(b[ethLen+ipLen:]), h.Dst(), binary.BigEndian.Uint16(b[ethLen+ipLen+2:]),
			syscall.EHOSTUNREACH)
		s.count.Drop[DropNeighbour]++
		s.w.Release(n.drop[i].Handle)
	}
	for _, ip := range n.failed {
		s.unreachableHop(ip)
	}
	n.reset()
}

// moves says whether neighbours' MACs have changed since the connections' header templates were last brought up to date.
type moves struct {
	any bool
	at  int64 // not before then
}

// moveCost is the least time between two looks at all connections, per connection, in ns: a hundred times what one takes.
const moveCost = 1000

// followMoves brings the header templates of all connections up to date with the neighbours. It is rare that one moves,
// so all are looked at; and lest somebody who claims another MAC with each packet keep the worker busy with it, that
// takes a hundredth of its time at the most.
func (s *Stack) followMoves() {
	if !s.moved.any || s.now < s.moved.at {
		return
	}
	var hop uint32 // the last one looked up: many connections have it in common
	var mac MAC
	var ok bool
	s.forget()
	s.conns.each(func(c *tcp.Conn) {
		if c.NextHop != hop {
			hop = c.NextHop
			mac, ok = s.neigh.known(hop)
		}
		if ok {
			setMAC(c, mac)
		}
	})
	s.moved = moves{at: s.now + moveCost*int64(s.conns.used)}
}

// hop is the neighbour by which an address is reached; 0: there is none.
func (s *Stack) hop(addr uint32) uint32 {
	hop, err := s.neigh.unicastHop(addr)
	if err != nil {
		return 0
	}
	return hop
}

// neighbour is the MAC of a next hop. It is asked for when it is not known; then ok is false. ref is for touch.
func (s *Stack) neighbour(hop uint32) (mac MAC, ref uint32, ok, dead bool) {
	mac, ref, st := s.neigh.resolve(hop, s.now, &s.news)
	s.takeNews()
	return mac, ref, st == neighReady, st == neighUnreachable
}

// renew looks a connection's next hop up anew: when it has come up, and when its segments find no answer.
func (s *Stack) renew(c *tcp.Conn) {
	mac, ref, ok, _ := s.neighbour(c.NextHop)
	c.NeighRef = ref
	if ok {
		setMAC(c, mac)
	}
}

// staticMAC is the configured MAC of a next hop.
func (s *Stack) staticMAC(hop uint32) (mac MAC, ok bool) {
	if !s.neigh.static[hop] {
		return mac, false
	}
	mac, _, _ = s.neigh.resolve(hop, s.now, &s.news)
	return mac, true
}

// snapshotMAC is neighbour for the application's threads, which asks for nothing.
func (s *Stack) snapshotMAC(hop uint32) (mac MAC, ok bool) { return s.neigh.snapshot().lookup(hop) }

// resolve sends a datagram of the application's once its next hop is known. EHOSTUNREACH: it did not answer a moment
// ago; ENOBUFS: too many wait for it. The datagram is dropped then.
func (s *Stack) resolve(hop uint32, f dpdk.Frame) syscall.Errno {
	mac, _, ok, dead := s.neighbour(hop)
	switch {
	case ok:
		copy(dpdk.Bytes(f.Addr, 6), mac[:])
		s.queue(f)
		return 0
	case !dead && s.neigh.hold(hop, f):
		return 0
	}
	s.w.Release(f.Handle)
	s.count.Drop[DropNeighbour]++
	if dead {
		return syscall.EHOSTUNREACH
	}
	return syscall.ENOBUFS
}
