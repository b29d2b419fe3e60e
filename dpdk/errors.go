package dpdk

import (
	"fmt"
	"strings"
	"syscall"
)

// Error is what DPDK said when one of its functions failed. errors.Is compares it with a syscall.Errno.
type Error struct {
	Call   string        // the DPDK function
	What   string        // the port, pool or option concerned, or ""
	Errno  syscall.Errno // DPDK's error number; numbers above 1000 are DPDK's own
	Text   string        // rte_strerror's text for it
	Reason string        // what DPDK logged meanwhile, or ""
	Hint   string        // what would be right, or ""
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Call)
	if e.What != "" {
		fmt.Fprintf(&b, " (%s)", e.What)
	}
	fmt.Fprintf(&b, ": %s", e.Text)
	if e.Reason != "" {
		fmt.Fprintf(&b, ": DPDK says %q", e.Reason)
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "; %s", e.Hint)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Errno }

// EalError is an Error of the environment layer: the process has no usable EAL. Nothing else in this package works then.
type EalError Error

func (e *EalError) Error() string { return (*Error)(e).Error() }

func (e *EalError) Unwrap() error { return e.Errno }

// Errors of this package that stand for a condition of the process rather than for a failed call.
const (
	alreadyUp   = "the EAL of this process is up already; use it (EalInitialized reports this), or stop it first"
	onlyOnce    = "DPDK cannot be started a second time in one process; keep the EAL up for as long as the process lives, or start a new process"
	startFailed = "the first rte_eal_init of this process failed, and DPDK keeps what it left behind; start a new process"
)
