package main

// #include <stdint.h>
// #include <sys/socket.h>
import "C"

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

//export ndpip_go_check
func ndpip_go_check(fd C.int) C.int64_t {
	h, d := find(fd)
	if h == nil {
		return badFd
	}
	_, err := h.Nonblock(d)
	return done(err)
}

//export ndpip_go_socket
func ndpip_go_socket(slot, domain, typ, protocol C.int) C.int64_t {
	h, at := host(slot)
	if h == nil {
		return -C.int64_t(unix.ENETDOWN)
	}
	fd, err := h.Socket(int(domain), int(typ), int(protocol))
	if err != nil {
		return code(err)
	}
	return number(at, fd)
}

func addrPort(ip C.uint32_t, port C.uint16_t) netip.AddrPort {
	return netip.AddrPortFrom(addr(ip), uint16(port))
}

func addr(ip C.uint32_t) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(ip >> 24), byte(ip >> 16), byte(ip >> 8), byte(ip)})
}

// packed is an address as C gets it: ip << 16 | port.
func packed(a netip.AddrPort) C.uint64_t {
	if !a.IsValid() {
		return 0
	}
	b := a.Addr().As4()
	return C.uint64_t(b[0])<<40 | C.uint64_t(b[1])<<32 | C.uint64_t(b[2])<<24 | C.uint64_t(b[3])<<16 | C.uint64_t(a.Port())
}

//export ndpip_go_bind
func ndpip_go_bind(fd C.int, ip C.uint32_t, port C.uint16_t) C.int64_t {
	h, d := find(fd)
	if h == nil {
		return badFd
	}
	return done(h.Bind(d, addrPort(ip, port)))
}

//export ndpip_go_connect
func ndpip_go_connect(fd C.int, ip C.uint32_t, port C.uint16_t) C.int64_t {
	h, d := find(fd)
	if h == nil {
		return badFd
	}
	return done(h.Connect(d, addrPort(ip, port)))
}

//export ndpip_go_listen
func ndpip_go_listen(fd, backlog C.int) C.int64_t {
	h, d := find(fd)
	if h == nil {
		return badFd
	}
	return done(h.Listen(d, int(backlog)))
}

//export ndpip_go_accept
func ndpip_go_accept(fd C.int, peer *C.uint64_t) C.int64_t {
	h, d := find(fd)
	if h == nil {
		return badFd
	}
	c, from, err := h.Accept(d)
	if err != nil {
		return code(err)
	}
	*peer = packed(from)
	return number(slotOf(fd), c)
}

//export ndpip_go_shutdown
func ndpip_go_shutdown(fd, how C.int) C.int64_t {
	h, d := find(fd)
	if h == nil {
		return badFd
	}
	return done(h.Shutdown(d, int(how)))
}

//export ndpip_go_close
func ndpip_go_close(fd C.int) C.int64_t {
	h, d := find(fd)
	if h == nil {
		return badFd
	}
	return done(h.Close(d))
}

//export ndpip_go_getfl
func ndpip_go_getfl(fd C.int) C.int64_t {
	h, d := find(fd)
	if h == nil {
		return badFd
	}
	on, err := h.Nonblock(d)
	flags := unix.O_RDWR
	if on {
		flags |= unix.O_NONBLOCK
	}
	return count(flags, err)
}

//export ndpip_go_setfl
func ndpip_go_setfl(fd, nonblock C.int) C.int64_t {
	h, d := find(fd)
	if h == nil {
		return badFd
	}
	return done(h.SetNonblock(d, nonblock != 0))
}

//export ndpip_go_name
func ndpip_go_name(fd, peer C.int, name *C.uint64_t) C.int64_t {
	h, d := find(fd)
	if h == nil {
		return badFd
	}
	get := h.Getsockname
	if peer != 0 {
		get = h.Getpeername
	}
	a, err := get(d)
	*name = packed(a)
	return done(err)
}

// optionMax is more than any option has.
const optionMax = 1 << 10

//export ndpip_go_setsockopt
func ndpip_go_setsockopt(fd, level, name C.int, value unsafe.Pointer, n C.socklen_t) C.int64_t {
	h, d := find(fd)
	if h == nil {
		return badFd
	}
	return done(h.SetSockOpt(d, int(level), int(name), unsafe.Slice((*byte)(value), min(n, optionMax))))
}

//export ndpip_go_getsockopt
func ndpip_go_getsockopt(fd, level, name C.int, value unsafe.Pointer, n C.socklen_t) C.int64_t {
	h, d := find(fd)
	if h == nil {
		return badFd
	}
	_, err := h.GetSockOpt(d, int(level), int(name), unsafe.Slice((*byte)(value), min(n, optionMax)))
	return done(err)
}
