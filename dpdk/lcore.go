package dpdk

/*
#include "eal.h"
*/
import "C"

import (
	"fmt"
	"syscall"
)

// RegisterLcore makes the calling OS thread an lcore, so that it gets its own cache in every pool; cpu pins it (-1: it
// stays where it may run). The goroutine must be locked to the thread (runtime.LockOSThread) and stay so until
// UnregisterLcore. A thread that is an lcore already keeps its number. It returns the lcore's number.
//
// Go ends a thread whose goroutine exits while locked, so a pinned thread never comes back for other goroutines: leave
// the goroutine without UnlockOSThread after UnregisterLcore if it was pinned.
func RegisterLcore(cpu int) (uint, error) {
	if !EalInitialized() {
		return 0, &Error{Call: "rte_thread_register", Errno: syscall.EINVAL, Text: "no EAL", Hint: "call EalInit first"}
	}
	mark := C.ndpip_log_mark()
	id := int(C.ndpip_lcore_register(C.int(cpu)))
	if id < 0 {
		hint := "at most 128 threads can be lcores, and none when secondary processes are attached"
		what := "no CPU"
		if cpu >= 0 {
			what = fmt.Sprintf("CPU %d", cpu)
			hint = "the CPU must be one that this process may use (taskset -p shows them)"
		}
		return 0, dpdkError("rte_thread_register", what, id, mark, hint)
	}
	return uint(id), nil
}

// UnregisterLcore ends what RegisterLcore began, on the same thread.
func UnregisterLcore() { C.ndpip_lcore_unregister() }
