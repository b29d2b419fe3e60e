package main

// #include <stdint.h>
// #include <sys/socket.h>
// #include <sys/uio.h>
import "C"

import (
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"

	"ndpip/api"
)

// mostBytes is the most that one call moves, as on Linux.
const mostBytes = 0x7ffff000

// memory is the n bytes at p, which C owns.
func memory(p unsafe.Pointer, n C.size_t) []byte {
	return unsafe.Slice((*byte)(p), min(n, mostBytes))
}

// fault is the result of a call with a nil buffer.
func fault(h *api.Host, d int) C.int64_t {
	if _, err := h.Nonblock(d); err != nil {
		return code(err)
	}
	return noAddr
}

//export ndpip_go_read
func ndpip_go_read(fd C.int, p unsafe.Pointer, n C.size_t) C.int64_t {
	h, d := find(fd)
	switch {
	case h == nil:
		return badFd
	case p == nil && n > 0:
		return fault(h, d)
	}
	return count(h.Read(d, memory(p, n)))
}

//export ndpip_go_write
func ndpip_go_write(fd C.int, p unsafe.Pointer, n C.size_t) C.int64_t {
	h, d := find(fd)
	switch {
	case h == nil:
		return badFd
	case p == nil && n > 0:
		return fault(h, d)
	}
	k, err := h.Write(d, memory(p, n))
	if err == unix.EAGAIN {
		return notNow(h, d)
	}
	return count(k, err)
}

// notNow is what the calls of the original return when the window is full: 0, where POSIX has EAGAIN. A blocking socket's
// timeout (SO_SNDTIMEO) is no such case.
func notNow(h *api.Host, d int) C.int64_t {
	if on, err := h.Nonblock(d); err == nil && !on {
		return -C.int64_t(unix.EAGAIN)
	}
	return 0
}

// mostVectors is IOV_MAX.
const mostVectors = 1024

//export ndpip_go_vector
func ndpip_go_vector(fd, write C.int, iov *C.struct_iovec, n C.int) C.int64_t {
	h, d := find(fd)
	switch {
	case h == nil:
		return badFd
	case n < 0 || n > mostVectors:
		return inval
	case iov == nil && n > 0:
		return fault(h, d)
	}
	var few [16][]byte
	bufs := few[:0]
	total := C.size_t(0)
	for _, v := range unsafe.Slice(iov, n) {
		if v.iov_base == nil && v.iov_len > 0 {
			return fault(h, d)
		}
		if v.iov_len > 1<<63-1 || total+v.iov_len > 1<<63-1 {
			return inval
		}
		b := memory(v.iov_base, min(v.iov_len, mostBytes-min(total, mostBytes)))
		total += v.iov_len
		bufs = append(bufs, b)
	}
	if write != 0 {
		return count(h.Writev(d, bufs))
	}
	return count(h.Readv(d, bufs))
}

// flagsOf says whether a call may be made with these flags: MSG_NOSIGNAL, as there is never a signal; MSG_DONTWAIT on sockets
// that do not wait anyway.
func flagsOf(h *api.Host, d int, flags C.int) error {
	if flags&^(unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT) != 0 {
		return unix.EOPNOTSUPP
	}
	if on, err := h.Nonblock(d); err != nil {
		return err
	} else if !on && flags&unix.MSG_DONTWAIT != 0 {
		return unix.EOPNOTSUPP
	}
	return nil
}

//export ndpip_go_sendto
func ndpip_go_sendto(fd C.int, p unsafe.Pointer, n C.size_t, flags, named C.int, ip C.uint32_t, port C.uint16_t) C.int64_t {
	h, d := find(fd)
	switch {
	case h == nil:
		return badFd
	case p == nil && n > 0:
		return fault(h, d)
	}
	if err := flagsOf(h, d, flags); err != nil {
		return code(err)
	}
	to := netip.AddrPort{}
	if named != 0 {
		to = addrPort(ip, port)
	}
	return count(h.SendTo(d, memory(p, n), to))
}

//export ndpip_go_recvfrom
func ndpip_go_recvfrom(fd C.int, p unsafe.Pointer, n C.size_t, flags C.int, from *C.uint64_t) C.int64_t {
	h, d := find(fd)
	switch {
	case h == nil:
		return badFd
	case p == nil && n > 0:
		return fault(h, d)
	}
	if err := flagsOf(h, d, flags); err != nil {
		return code(err)
	}
	k, peer, err := h.RecvFrom(d, memory(p, n))
	*from = packed(peer)
	return count(k, err)
}
