package dpdk

/*
#cgo noescape ndpip_rx_burst
#cgo nocallback ndpip_rx_burst
#cgo noescape ndpip_tx_burst
#cgo nocallback ndpip_tx_burst
#include "port.h"
*/
import "C"

import "unsafe"

// For programs that move buffers themselves, as rte_eth_rx_burst and rte_eth_tx_burst do. A Handle is the address of a
// struct rte_mbuf. A queue is for one thread at a time; the port is started.

// RxBurst receives at most len(bufs) frames, which are the caller's then.
func (p *Port) RxBurst(queue int, bufs []Handle) int {
	if len(bufs) == 0 {
		return 0
	}
	return int(C.ndpip_rx_burst(C.uint16_t(p.id), C.uint16_t(queue), (*C.uintptr_t)(unsafe.Pointer(&bufs[0])), C.uint16_t(min(len(bufs), 65535))))
}

// TxBurst sends frames, and gives those that the port took to it. The others stay the caller's.
func (p *Port) TxBurst(queue int, bufs []Handle) int {
	if len(bufs) == 0 {
		return 0
	}
	return int(C.ndpip_tx_burst(C.uint16_t(p.id), C.uint16_t(queue), (*C.uintptr_t)(unsafe.Pointer(&bufs[0])), C.uint16_t(min(len(bufs), 65535))))
}

// FreeBufs gives buffers back to their pools, chained ones as a whole.
func FreeBufs(bufs []Handle) {
	for _, b := range bufs {
		C.ndpip_free_buf(C.uintptr_t(b))
	}
}

// RxPool is the pool that a receive queue fills its buffers from; nil if the driver keeps no record of it.
func (p *Port) RxPool(queue int) *Mempool {
	mp := C.ndpip_rx_pool(C.uint16_t(p.id), C.uint16_t(queue))
	if mp == nil {
		return nil
	}
	return AttachMempool(unsafe.Pointer(mp))
}
