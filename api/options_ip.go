package api

import (
	"golang.org/x/sys/unix"

	"ndpip/stack"
	"ndpip/stack/wire"
)

// ecnBits of the type of service are the protocol's: an application cannot set them for a connection.
const ecnBits = 3

// setIPOpt is setsockopt at level IPPROTO_IP: IP_TOS and IP_TTL, of all that the socket sends from then on. Under s.mu.
func (h *Host) setIPOpt(s *sock, name, value int) error {
	v := s.opts.Service
	switch name {
	case unix.IP_TOS:
		v.TOS = uint8(value)
		if !s.is(kindUDP) {
			v.TOS &^= ecnBits
		}
	case unix.IP_TTL:
		if value != -1 && (value < 1 || value > 255) {
			return unix.EINVAL
		}
		v.TTL = uint8(max(value, 0)) // -1: the default
	default:
		return unix.ENOPROTOOPT
	}
	s.opts.Service = v
	if c := s.conn.Load(); c != nil {
		h.st.SetService(c, v)
	}
	if u := s.udp.Load(); u != nil {
		h.st.SetUDPService(u, v)
	}
	return nil
}

// ipOpt is getsockopt at level IPPROTO_IP. Under s.mu.
func ipOpt(v stack.Service, name int) (int, error) {
	switch name {
	case unix.IP_TOS:
		return int(v.TOS), nil
	case unix.IP_TTL:
		return or(int(v.TTL), wire.TTL), nil
	}
	return 0, unix.ENOPROTOOPT
}
