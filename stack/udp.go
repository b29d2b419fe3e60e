package stack

import (
	"encoding/binary"
	"syscall"

	"ndpip/dpdk"
	"ndpip/ring"
	"ndpip/stack/wire"
	"ndpip/tcp"
	"ndpip/udp"
)

// udpTable finds a UDP socket by its local address and port. Owned by the worker.
type udpTable map[uint64][]*udp.Sock

// find is the socket for a datagram: a connected one before one that takes all, one bound to the address before one
// bound to any.
func (t udpTable) find(laddr uint32, lport uint16, raddr uint32, rport uint16) (best *udp.Sock) {
	for _, a := range [2]uint32{laddr, 0} {
		for _, u := range t[listenKey(a, lport)] {
			if !u.From(raddr, rport) {
				continue
			}
			if r, _ := u.Remote(); r != 0 {
				return u
			}
			if best == nil {
				best = u
			}
		}
	}
	return best
}

// udpHdr is how far a datagram's payload lies behind the start of its frame.
const udpHdr = ethLen + ipLen + udpLen

// inputUDP gives a datagram to its socket, or says that there is none.
func (s *Stack) inputUDP(f *dpdk.Frame, b []byte, h *wire.IPv4, l4 []byte) (kept bool) {
	u, drop := wire.ParseUDP(l4)
	if drop != wire.OK {
		return s.drop(drop)
	}
	l4 = l4[:u.Len()]
	if binary.BigEndian.Uint16(l4[6:]) != 0 && !s.sumOK(f, h, l4) {
		return s.drop(wire.UDPChecksum)
	}
	so := s.udps.find(h.Dst(), u.DstPort(), h.Src(), u.SrcPort())
	if so == nil {
		s.count.Drop[DropStray]++
		s.unreachable(b, h, wire.UnreachPort)
		return false
	}
	if s.room <= s.tight && so.Len() >= s.room { // as for connections, see measureRoom
		s.count.Drop[DropNoBuffer]++
		return false
	}
	if !so.Deliver(ring.Make(uintptr(f.Handle), f.Addr+udpHdr, len(l4)-udpLen)) {
		s.count.Drop[DropQueueFull]++
		return false
	}
	s.hold()
	s.count.RxDatagrams++
	if w := so.Watch.Load(); w != 0 {
		s.tell(&so.Ready, so.Stream, w, tcp.PendRead)
	}
	return true
}

// OpenUDP binds a new UDP socket to an address (0: any) and port (0: a free one).
func (s *Stack) OpenUDP(addr uint32, port uint16, o Options) (u *udp.Sock, e syscall.Errno) {
	s.do(func() {
		var ok bool
		if port, ok = s.udpPorts.bind(port, o.ReuseAddr); !ok {
			e = syscall.EADDRINUSE
			return
		}
		limit := o.RcvBuf
		if limit <= 0 {
			limit = s.cfg.RcvBuf
		}
		u = udp.New(limit, int(pow2(uint32(limit/tcp.RingPerBytes), 64, uint32(s.cfg.MaxRing))))
		u.Laddr, u.Lport, u.Reuse = addr, port, o.ReuseAddr
		s.SetUDPService(u, o.Service)
		k := listenKey(addr, port)
		s.udps[k] = append(s.udps[k], u)
	})
	return u, e
}

// ConnectUDP sets the peer of a socket; address 0 takes it away.
func (s *Stack) ConnectUDP(u *udp.Sock, addr uint32, port uint16) {
	s.do(func() { u.SetRemote(addr, port) })
}

// CloseUDP closes a socket; what it has not read is dropped.
func (s *Stack) CloseUDP(u *udp.Sock) {
	s.do(func() {
		s.udpPorts.release(u.Lport, u.Reuse)
		k := listenKey(u.Laddr, u.Lport)
		l := s.udps[k]
		for i := range l {
			if l[i] == u {
				l = append(l[:i:i], l[i+1:]...)
				break
			}
		}
		if len(l) == 0 {
			delete(s.udps, k)
		} else {
			s.udps[k] = l
		}
		for {
			e, ok := u.Take()
			if !ok {
				return
			}
			s.w.Release(dpdk.Handle(e.Handle))
			s.rxHeld--
		}
	})
}

// SendTo sends one datagram. Errors: EMSGSIZE (it would not fit one frame), EAGAIN (the port is full), ENOBUFS,
// ENETUNREACH (no route), EHOSTUNREACH (the next hop does not answer).
func (s *Stack) SendTo(u *udp.Sock, p []byte, addr uint32, port uint16) syscall.Errno {
	if len(p) > s.cfg.MTU-ipLen-udpLen {
		return syscall.EMSGSIZE
	}
	hop := s.hop(addr)
	if hop == 0 {
		return syscall.ENETUNREACH
	}
	a := &s.app
	a.lock.lock()
	if !s.drainApp() {
		a.lock.unlock()
		return syscall.EAGAIN
	}
	if !s.fill(1) {
		a.lock.unlock()
		return syscall.ENOBUFS
	}
	f, _ := a.lane.Take()
	s.datagram(&f, u, p, addr, port)
	mac, ok := s.snapshotMAC(hop)
	if ok {
		copy(dpdk.Bytes(f.Addr, 6), mac[:])
		a.lane.Queue(f)
		s.drainApp()
	}
	count(&a.txDatagrams, 1)
	a.lock.unlock()
	var e syscall.Errno
	if !ok {
		s.do(func() { e = s.resolve(hop, f) })
	}
	return e
}

// datagram writes the headers and the payload of one datagram, all but the destination's MAC.
func (s *Stack) datagram(f *dpdk.Frame, u *udp.Sock, p []byte, addr uint32, port uint16) {
	copy(dpdk.Bytes(f.Addr+udpHdr, len(p)), p)
	s.datagramHeaders(f, u, len(p), addr, port)
}

// datagramHeaders writes the headers in front of a payload of size bytes.
func (s *Stack) datagramHeaders(f *dpdk.Frame, u *udp.Sock, size int, addr uint32, port uint16) {
	b := dpdk.Bytes(f.Addr, udpHdr+size)
	n := udpLen + size
	wire.PutEthernet(b, MAC{}, s.mac, wire.TypeIPv4)
	wire.PutIPv4(b[ethLen:], s.addr, addr, wire.ProtoUDP, ipLen+n, 0)
	if v := service(u); v != (Service{}) {
		wire.SetService(b[ethLen:], v.TOS, v.ttl())
	}
	t := b[ethLen+ipLen:]
	f.Len, f.Flags = uint32(len(b)), 0
	pseudo := wire.PseudoHeader(s.addr, addr, wire.ProtoUDP, n)
	switch {
	case s.txSum == sumOff:
		wire.PutUDP(t, u.Lport, port, n, 0)
	case s.txSum == sumPort && s.cfg.Offload&dpdk.TxUDPSum != 0:
		wire.PutUDP(t, u.Lport, port, n, wire.Fold(pseudo))
		f.Flags = dpdk.TxUDPSum
	default:
		wire.PutUDP(t, u.Lport, port, n, 0)
		binary.BigEndian.PutUint16(t[6:], wire.UDPCheck(wire.Sum(t, pseudo)))
	}
}

// RecvFrom takes one datagram: its first len(p) bytes, its full length, and where it came from. EAGAIN: there is none.
func (s *Stack) RecvFrom(u *udp.Sock, p []byte) (n, full int, addr uint32, port uint16, e syscall.Errno) {
	d, ok := u.Take()
	if !ok {
		return 0, 0, 0, 0, syscall.EAGAIN
	}
	b := dpdk.Bytes(d.Addr()-ipLen-udpLen, ipLen+udpLen+d.Len())
	addr, port = binary.BigEndian.Uint32(b[12:]), binary.BigEndian.Uint16(b[ipLen:])
	n = copy(p, b[ipLen+udpLen:])
	a := &s.app
	a.countRead(uint64(n))
	a.lock.lock()
	a.lane.Release(dpdk.Handle(d.Handle))
	if a.lane.NFree >= 32 {
		a.lane.Exchange(dpdk.OpFree)
	}
	a.consumed.Add(1)
	a.lock.unlock()
	return n, d.Len(), addr, port, 0
}
