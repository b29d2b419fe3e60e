package stack

import (
	"ndpip/stack/wire"
	"ndpip/tcp"
	"ndpip/udp"
)

// Service is what a socket's packets ask of the network (RFC 9293 3.9.2, RFC 1122 4.1.4).
type Service struct {
	TOS uint8 // type of service: the Diffserv field, and the two bits of ECN
	TTL uint8 // time to live; 0: wire.TTL
}

func (v Service) ttl() uint8 {
	if v.TTL == 0 {
		return wire.TTL
	}
	return v.TTL
}

// SetService changes a connection's service from the next segment on.
func (s *Stack) SetService(c *tcp.Conn, v Service) {
	// Under the lock no thread of the application's writes headers; the worker, which never waits for it, does the rest.
	s.app.lock.lock()
	s.do(func() { setService(c, v) })
	s.app.lock.unlock()
}

// setService changes the header template: bytes 15 and 22 of the frame, and the sum of the IPv4 header in word 3.
func setService(c *tcp.Conn, v Service) {
	h := &c.Hdr
	h[1] = h[1]&^(0xff<<56) | uint64(v.TOS)<<56
	h[2] = h[2]&^(0xff<<48) | uint64(v.ttl())<<48
	sum := h[1]>>48 + h[2]>>32 + h[2]&0xffff_ffff + h[3]>>48 + h[3]>>16&0xffff_ffff + h[4]&0xffff // bytes 14 to 33
	h[3] = h[3]&^0xffff | fold16(sum)
}

// serviceOf reads the service out of the header template, with the TTL as it is sent.
func serviceOf(c *tcp.Conn) Service {
	return Service{TOS: uint8(c.Hdr[1] >> 56), TTL: uint8(c.Hdr[2] >> 48)}
}

// SetUDPService changes the service of a socket's datagrams.
func (s *Stack) SetUDPService(u *udp.Sock, v Service) {
	u.Service.Store(uint32(v.TOS)<<8 | uint32(v.TTL))
}

// service is that of a socket's datagrams.
func service(u *udp.Sock) Service {
	v := u.Service.Load()
	return Service{TOS: uint8(v >> 8), TTL: uint8(v)}
}
