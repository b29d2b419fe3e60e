package stack

import (
	"syscall"

	"ndpip/dpdk"
	"ndpip/udp"
)

// SendUDPBufs sends each buffer as one datagram to addr and port, and takes it over; see SendBufs. Errors: EMSGSIZE if
// the first would not fit one frame, EAGAIN if none was taken, ENETUNREACH.
func (s *Stack) SendUDPBufs(u *udp.Sock, f []dpdk.Frame, addr uint32, port uint16) (n int, e syscall.Errno) {
	hop := s.hop(addr)
	if hop == 0 {
		return 0, syscall.ENETUNREACH
	}
	a := &s.app
	a.lock.lock()
	mac, known := s.snapshotMAC(hop)
	var waiting []dpdk.Frame // for the next hop's address
	for n < len(f) {
		if int(f[n].Len) > s.MaxDatagram() {
			e = syscall.EMSGSIZE
			break
		}
		if a.lane.TxRoom() < burstMax && !s.drainApp() {
			e = syscall.EAGAIN
			break
		}
		d := f[n]
		d.Addr -= udpHdr
		s.datagramHeaders(&d, u, int(f[n].Len), addr, port)
		if known {
			copy(dpdk.Bytes(d.Addr, 6), mac[:])
			a.lane.Queue(d)
		} else {
			waiting = append(waiting, d)
		}
		count(&a.txDatagrams, 1)
		n++
	}
	a.taken -= uint64(n) // they are the port's
	s.drainApp()
	a.lock.unlock()
	if len(waiting) > 0 {
		s.do(func() {
			for _, d := range waiting {
				s.resolve(hop, d)
			}
		})
	}
	if n > 0 {
		e = 0
	}
	return n, e
}
