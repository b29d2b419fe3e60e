package stack

import (
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

// tickNeighbours takes the neighbour cache's timed steps, and publishes what has changed.
func (s *Stack) tickNeighbours() {
	const every = 50e6
	if s.now >= s.neighAt {
		s.neighAt = s.now + every
		s.neigh.tick(s.now, &s.news)
		s.takeNews()
	}
	s.neigh.publish(s.now)
}

// takeNews acts on what the neighbour cache has to say.
func (s *Stack) takeNews() {
	n := &s.news
	for _, k := range n.known {
		if k.old == (wire.MAC{}) {
			s.reachable(k.ip, k.mac)
		} else if k.old != k.mac {
			s.moved(k.ip, k.mac)
		}
	}
	for i := range n.arp {
		f, ok := s.w.Take()
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
		s.w.Release(n.drop[i].Handle)
	}
	for _, ip := range n.failed {
		s.unreachableHop(ip)
	}
	n.reset()
}

// moved brings the header templates of all connections by this next hop up to date. It is rare, so all are looked at.
func (s *Stack) moved(ip uint32, mac MAC) {
	s.reachable(ip, mac)
	s.conns.each(func(c *tcp.Conn) {
		if c.NextHop == ip {
			setMAC(c, mac)
		}
	})
}

// hop is the neighbour by which an address is reached; 0: there is none.
func (s *Stack) hop(addr uint32) uint32 {
	hop, err := s.neigh.unicastHop(addr)
	if err != nil {
		return 0
	}
	return hop
}

// neighbour is the MAC of a next hop. It is asked for when it is not known; then ok is false.
func (s *Stack) neighbour(hop uint32) (mac MAC, ok, dead bool) {
	mac, _, st := s.neigh.resolve(hop, s.now, &s.news)
	s.takeNews()
	return mac, st == neighReady, st == neighUnreachable
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

// resolve sends a frame of the application's once its next hop is known, or drops it if that fails.
func (s *Stack) resolve(hop uint32, f dpdk.Frame) {
	mac, ok, dead := s.neighbour(hop)
	switch {
	case ok:
		copy(dpdk.Bytes(f.Addr, 6), mac[:])
		s.queue(f)
	case dead || !s.neigh.hold(hop, f):
		s.w.Release(f.Handle)
		s.count.Drop[DropNeighbour]++
	}
}
