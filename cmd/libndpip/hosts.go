package main

// #cgo !static pkg-config: libdpdk
// #cgo static pkg-config: --static libdpdk
// #cgo CFLAGS: -I${SRCDIR}/include
// #include "glue.h"
import "C"

import (
	"errors"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"ndpip/api"
)

const (
	slots   = C.NDPIP_SLOTS
	slotBit = C.NDPIP_SLOT_BITS
	firstFd = C.NDPIP_FIRST_FD
)

// hosts are the interfaces that are started, by slot. A descriptor of C's is a slot and a host's descriptor in one.
var hosts [slots]atomic.Pointer[api.Host]

// find gives the host of a descriptor, and its number there. nil: there is none.
func find(fd C.int) (*api.Host, int) {
	if uint32(fd)>>slotBit >= slots {
		return nil, -1
	}
	return hosts[uint32(fd)>>slotBit].Load(), int(fd)&(1<<slotBit-1) - firstFd
}

// number is the descriptor of C's for a host's.
func number(slot, fd int) C.int64_t { return C.int64_t(slot<<slotBit + fd + firstFd) }

// slotOf is the slot of a host's sibling descriptors.
func slotOf(fd C.int) int { return int(uint32(fd) >> slotBit) }

// host is the one that a thread's new sockets belong to: that of the slot, or with -1 the first that is started.
func host(slot C.int) (*api.Host, int) {
	if slot >= 0 {
		return hosts[slot].Load(), int(slot)
	}
	for i := range hosts {
		if h := hosts[i].Load(); h != nil {
			return h, i
		}
	}
	return nil, 0
}

// Results for C: a negated errno.
const (
	badFd  = -C.int64_t(unix.EBADF)
	noAddr = -C.int64_t(unix.EFAULT)
	inval  = -C.int64_t(unix.EINVAL)
)

// done is the result of a call that returns nothing but an error.
func done(err error) C.int64_t {
	if err == nil {
		return 0
	}
	return code(err)
}

// count is the result of a call that returns a number, or an error.
func count(n int, err error) C.int64_t {
	if err != nil {
		return code(err)
	}
	return C.int64_t(n)
}

// code is the negated errno of an error.
func code(err error) C.int64_t {
	if e, ok := err.(unix.Errno); ok { //nolint:errorlint // the common case, without a search
		return -C.int64_t(e)
	}
	return otherCode(err)
}

func otherCode(err error) C.int64_t {
	var e unix.Errno
	var config *api.ConfigError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return -C.int64_t(unix.EAGAIN)
	case errors.As(err, &config):
		return -C.int64_t(unix.EINVAL)
	case errors.As(err, &e) && e > 0 && e < 1000:
		return -C.int64_t(e)
	}
	return -C.int64_t(unix.EIO)
}
