package dpdk

/*
#include "gate.h"
*/
import "C"

// guardTurns is how often DPDK's interrupt thread was let work since a guarded port was opened, and whether the guard
// sees when that is due (else it lets it work at intervals).
func guardTurns() (turns uint64, sees bool) {
	return uint64(C.ndpip_guard_turns()), C.ndpip_guard_sees() != 0
}
