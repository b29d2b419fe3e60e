package dpdk

/*
#include <stdlib.h>
#include "eal.h"
#include "mempool.h"
*/
import "C"

import (
	"fmt"
	"runtime"
	"syscall"
	"unsafe"
)

// Sizes of a pool's buffers, in bytes.
const (
	// DataRoom is the usual room of one buffer: a frame of MTU 1500 with DPDK's headroom before it. (Some drivers
	// want a multiple of 1024 after the headroom.)
	DataRoom = 2048 + 128
	// PrivSize keeps the frames on the cache-line boundary that the buffers begin on.
	PrivSize = 64

	poolCache = 256 // buffers that each lcore keeps for itself; DPDK's limit is 512
)

// Mempool is a set of packet buffers of one size.
type Mempool struct {
	mp    *C.struct_rte_mempool
	n     int
	owned bool // made here
}

// NewMempool makes a pool of n buffers with dataRoom bytes each (0: DataRoom), privSize bytes of private area (-1:
// PrivSize), on a NUMA socket (-1: any). n should be a power of two less one to waste nothing; it need not be.
// The name is the process's: unique, at most 25 bytes.
func NewMempool(name string, n, dataRoom, privSize, socket int) (*Mempool, error) {
	if dataRoom <= 0 {
		dataRoom = DataRoom
	}
	if privSize < 0 {
		privSize = PrivSize
	}
	what := fmt.Sprintf("pool %q, %d buffers of %d bytes, about %d MiB", name, n, dataRoom, mempoolBytes(n, dataRoom, privSize)>>20)
	bad := func(hint string) error {
		return &Error{Call: "rte_pktmbuf_pool_create", What: what, Errno: syscall.EINVAL, Text: "cannot be", Hint: hint}
	}
	switch {
	case n < 1 || n > 1<<26:
		return nil, bad("a pool holds 1 to 67108864 buffers")
	case dataRoom > 65535:
		return nil, bad("the data room of a buffer is at most 65535 bytes")
	case privSize%8 != 0 || privSize > 1024:
		return nil, bad("the private area is a multiple of 8 bytes, at most 1024")
	case len(name) == 0 || len(name) > 25:
		return nil, bad("a pool's name has 1 to 25 bytes")
	case !EalInitialized():
		return nil, bad("call EalInit first")
	}
	// A cache may hold half as much again as its size, and a pool must be larger than that.
	cache := min(poolCache, n/4)
	if cache*3/2 >= n {
		cache = 0
	}
	runtime.LockOSThread() // rte_errno belongs to the thread
	defer runtime.UnlockOSThread()
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	mark := C.ndpip_log_mark()
	mp := C.ndpip_pool_create(cname, C.uint(n), C.uint(cache), C.uint16_t(privSize), C.uint16_t(dataRoom), C.int(socket))
	if mp == nil {
		errno := rteErrno()
		hint := ""
		switch syscall.Errno(errno) {
		case syscall.ENOMEM:
			hint = "give DPDK more memory (-m N with --no-huge, more hugepages otherwise: echo N > /proc/sys/vm/nr_hugepages), or ask for fewer buffers"
		case syscall.EEXIST:
			hint = "a pool of this name exists: choose another name"
		}
		return nil, dpdkError("rte_pktmbuf_pool_create", what, errno, mark, hint)
	}
	return &Mempool{mp: mp, n: n, owned: true}, nil
}

// mempoolBytes is about what a pool takes: mbuf, header and trailer, private area, data.
func mempoolBytes(n, dataRoom, privSize int) int { return n * (128 + 64 + privSize + dataRoom) }

// AttachMempool wraps a packet pool (struct rte_mempool *) that the program made. Free does not free it.
func AttachMempool(ptr unsafe.Pointer) *Mempool {
	mp := (*C.struct_rte_mempool)(ptr)
	return &Mempool{mp: mp, n: int(C.ndpip_pool_size(mp))}
}

// Free gives the pool's memory back. Every buffer must be in the pool, and no port may use it.
func (p *Mempool) Free() {
	if p.mp != nil && p.owned {
		C.rte_mempool_free(p.mp)
	}
	p.mp = nil
}

// InUse is how many buffers are out of the pool, those in the caches of lcores not counted. It walks all caches, and is
// exact when no thread uses the pool meanwhile.
func (p *Mempool) InUse() int { return int(C.rte_mempool_in_use_count(p.mp)) }

// Avail is how many buffers are in the pool, caches included.
func (p *Mempool) Avail() int { return int(C.rte_mempool_avail_count(p.mp)) }

// Name is what DPDK knows the pool by.
func (p *Mempool) Name() string { return C.GoString(C.ndpip_pool_name(p.mp)) }

// Size is how many buffers the pool has.
func (p *Mempool) Size() int { return p.n }

// DataRoom is the room of one buffer in bytes, DPDK's headroom included.
func (p *Mempool) DataRoom() int { return int(C.ndpip_pool_room(p.mp)) }

// Ptr is the struct rte_mempool *, for programs that also talk to DPDK themselves.
func (p *Mempool) Ptr() unsafe.Pointer { return unsafe.Pointer(p.mp) }
