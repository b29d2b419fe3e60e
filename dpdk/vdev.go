package dpdk

/*
#cgo !static LDFLAGS: -lrte_net_ring
#include <stdlib.h>
#include <rte_dev.h>
#include "eal.h"
#include "port.h"
*/
import "C"

// The linker must see librte_net_ring by name, because rte_eth_from_rings is called directly. The other drivers are
// plugins, which the EAL loads when it starts.

import (
	"fmt"
	"sync"
	"syscall"
	"unsafe"
)

// rings are the pairs that RingPair made and that are still open. A pair's rings outlive the first port that closes.
var rings struct {
	mu    sync.Mutex
	pairs []*ringPair
}

type ringPair struct {
	c    C.struct_ndpip_ring_pair
	open int // ports not closed yet
}

// RingPair makes two ports in this process, joined crosswise by rings of size frames each way: what one sends, the other
// receives, the very same buffers. Each has one queue.
func RingPair(name string, size int) (a, b uint16, err error) { return RingPairQueues(name, size, 1) }

// RingPairQueues is RingPair with several queues: what is sent on queue i arrives on queue i.
func RingPairQueues(name string, size, queues int) (a, b uint16, err error) {
	what := fmt.Sprintf("net_ring pair %q, %d queues of %d", name, queues, size)
	mark := C.ndpip_log_mark()
	if !EalInitialized() {
		return 0, 0, dpdkError("RingPair", what, int(syscall.EINVAL), mark, "call EalInit first")
	}
	if len(name) == 0 || len(name) > 12 || size < 1 || size > 1<<20 || queues < 1 || queues > C.NDPIP_RING_QUEUES {
		return 0, 0, dpdkError("RingPair", what, int(syscall.EINVAL), mark,
			fmt.Sprintf("a name has 1 to 12 bytes, a ring 1 to %d entries, a port 1 to %d queues", 1<<20, C.NDPIP_RING_QUEUES))
	}
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	p := &ringPair{open: 2}
	var step *C.char
	if ret := C.ndpip_ring_pair(cname, C.uint32_t(size), C.uint32_t(queues), &p.c, &step); ret != 0 {
		return 0, 0, dpdkError(C.GoString(step), what, int(ret), mark, "each pair needs a name of its own")
	}
	rings.mu.Lock()
	rings.pairs = append(rings.pairs, p)
	rings.mu.Unlock()
	return uint16(p.c.a), uint16(p.c.b), nil
}

// ringPortClosed removes the device of a ring port that was closed, so that its name is free again, and after the second
// port of a pair the rings, with the frames that are still in them.
func ringPortClosed(id uint16, device string) {
	rings.mu.Lock()
	defer rings.mu.Unlock()
	for i, p := range rings.pairs {
		if uint16(p.c.a) == id || uint16(p.c.b) == id {
			_ = VdevUninit(device) // its port is gone, there is nothing left to fail
			if p.open--; p.open == 0 {
				C.ndpip_ring_pair_free(&p.c)
				rings.pairs = append(rings.pairs[:i], rings.pairs[i+1:]...)
			}
			return
		}
	}
}

// vdevBus is the name that DPDK gives the bus of virtual devices. (The functions of that bus itself would need its
// library linked by name as well.)
var vdevBus = C.CString("vdev")

// VdevInit adds a virtual device while DPDK runs, as --vdev NAME,ARGS does at the start.
func VdevInit(name, args string) error {
	cname, cargs := C.CString(name), C.CString(args)
	defer C.free(unsafe.Pointer(cname))
	defer C.free(unsafe.Pointer(cargs))
	mark := C.ndpip_log_mark()
	if ret := C.rte_eal_hotplug_add(vdevBus, cname, cargs); ret != 0 {
		return dpdkError("rte_eal_hotplug_add", name+","+args, int(ret), mark, "")
	}
	return nil
}

// VdevUninit removes a virtual device. Its port must be closed.
func VdevUninit(name string) error {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	mark := C.ndpip_log_mark()
	if ret := C.rte_eal_hotplug_remove(vdevBus, cname); ret != 0 {
		return dpdkError("rte_eal_hotplug_remove", name, int(ret), mark, "")
	}
	return nil
}
