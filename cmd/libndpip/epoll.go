package main

// #include <stdint.h>
// #include <sys/epoll.h>
import "C"

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"ndpip/api"
)

//export ndpip_go_epoll_create
func ndpip_go_epoll_create(slot, flags C.int) C.int64_t {
	if flags&^unix.EPOLL_CLOEXEC != 0 {
		return inval
	}
	h, at := host(slot)
	if h == nil {
		return -C.int64_t(unix.ENETDOWN)
	}
	fd, err := h.EpollCreate()
	if err != nil {
		return code(err)
	}
	return number(at, fd)
}

//export ndpip_go_epoll_ctl
func ndpip_go_epoll_ctl(epfd, op, fd C.int, event *C.struct_epoll_event) C.int64_t {
	h, e := find(epfd)
	g, d := find(fd)
	switch {
	case h == nil || g == nil:
		return badFd
	case h != g:
		return inval // an instance is for the sockets of one interface
	}
	if event == nil {
		return done(h.EpollCtl(e, int(op), d, nil))
	}
	return done(h.EpollCtl(e, int(op), d, &api.EpollEvent{Events: uint32(event.events), Data: *data(event)}))
}

// data is the union of struct epoll_event, which is packed on some machines.
func data(e *C.struct_epoll_event) *uint64 { return (*uint64)(unsafe.Pointer(&e.data)) }

// An instance reports to Go's memory first, a wait's worth at most.
const (
	fewEvents  = 64
	mostEvents = 4096
)

var eventPool = sync.Pool{New: func() any { return new([mostEvents]api.EpollEvent) }}

//export ndpip_go_epoll_wait
func ndpip_go_epoll_wait(epfd C.int, events *C.struct_epoll_event, n, msec C.int) C.int64_t {
	h, d := find(epfd)
	switch {
	case h == nil:
		return badFd
	case n <= 0:
		return inval
	case events == nil:
		return fault(h, d)
	case n <= fewEvents:
		var few [fewEvents]api.EpollEvent
		return wait(h, d, few[:n], events, int(msec))
	}
	many := eventPool.Get().(*[mostEvents]api.EpollEvent)
	defer eventPool.Put(many)
	return wait(h, d, many[:min(n, mostEvents)], events, int(msec))
}

func wait(h *api.Host, d int, got []api.EpollEvent, events *C.struct_epoll_event, msec int) C.int64_t {
	n, err := h.EpollWait(d, got, msec)
	to := unsafe.Slice(events, len(got))
	for i := range got[:n] {
		to[i].events = C.uint32_t(got[i].Events)
		*data(&to[i]) = got[i].Data
	}
	return count(n, err)
}
