package dpdk

/*
#include <rte_config.h>
#include "eal.h"
#include "gate.h"
*/
import "C"

import "sync"

// guards lets one goroutine at a time start or stop the guard.
var guards sync.Mutex

// guard keeps this port's bursts apart from DPDK's interrupt thread, for the driver that needs it (gate.h).
func (p *Port) guard() error {
	if p.driver != "net_memif" {
		return nil
	}
	guards.Lock()
	defer guards.Unlock()
	mark := C.ndpip_log_mark()
	if ret := C.ndpip_guard_start(C.uint16_t(p.id)); ret != 0 {
		return p.errorf("rte_intr_callback_register", int(ret), mark, "")
	}
	return nil
}

func unguard(id uint16) {
	guards.Lock()
	defer guards.Unlock()
	C.ndpip_guard_stop(C.uint16_t(id))
}

// holdInterrupts keeps DPDK's interrupt thread from working, where it is guarded, until the function that it returns is called.
func holdInterrupts(id uint16) (release func()) {
	if C.ndpip_guard_hold(C.uint16_t(id)) == 0 {
		return func() {}
	}
	return func() { C.ndpip_guard_release() }
}

// unguardAll gives DPDK its interrupt thread back.
func unguardAll() {
	for id := range uint16(C.RTE_MAX_ETHPORTS) {
		unguard(id)
	}
}

// guardTurns is how often DPDK's interrupt thread was let work since a guarded port was opened, and whether the guard
// sees when that is due (else it lets it work at intervals).
func guardTurns() (turns uint64, sees bool) {
	return uint64(C.ndpip_guard_turns()), C.ndpip_guard_sees() != 0
}
