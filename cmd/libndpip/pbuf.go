package main

// #include <stdint.h>
// #include "../../dpdk/shim.h"
import "C"

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"ndpip/dpdk"
)

// frames is C's array of frames as Go's; package dpdk sees to it that the two are laid out alike.
func frames(f *C.struct_ndpip_frame, n C.int) []dpdk.Frame {
	return unsafe.Slice((*dpdk.Frame)(unsafe.Pointer(f)), n)
}

//export ndpip_go_alloc
func ndpip_go_alloc(fd C.int, f *C.struct_ndpip_frame, n C.int) C.int64_t {
	h, d := find(fd)
	if h == nil {
		return badFd
	}
	return count(h.AllocFrames(d, frames(f, n)))
}

//export ndpip_go_send
func ndpip_go_send(fd C.int, f *C.struct_ndpip_frame, n, dontWait C.int) C.int64_t {
	h, d := find(fd)
	if h == nil {
		return badFd
	}
	k, err := h.SendFrames(d, frames(f, n), dontWait != 0)
	switch {
	case err == unix.EAGAIN && dontWait != 0:
		return 0
	case err == unix.EAGAIN:
		return notNow(h, d)
	}
	return count(k, err)
}

//export ndpip_go_recv
func ndpip_go_recv(fd C.int, f *C.struct_ndpip_frame, n C.int) C.int64_t {
	h, d := find(fd)
	if h == nil {
		return badFd
	}
	return count(h.RecvFrames(d, frames(f, n)))
}

//export ndpip_go_free
func ndpip_go_free(slot C.uint32_t, f *C.struct_ndpip_frame, n C.int, received C.uint32_t) C.int64_t {
	h := current(slot)
	if h == nil {
		return badFd
	}
	h.FreeFrames(frames(f, n), received != 0)
	return 0
}
