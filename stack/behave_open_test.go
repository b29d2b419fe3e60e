package stack_test

import (
	"syscall"
	"testing"

	"ndpip/tcp"
)

// C1: connect to a closed port.
func TestC1(t *testing.T) {
	r := newRig(t)
	f := r.dial()
	f.in("RA", 0, 2) // an RST that acknowledges what was not sent
	f.in("RA", 0, 0)
	f.in("R", 0, 1) // and one that acknowledges nothing
	f.quiet()
	f.state(tcp.SynSent)
	f.in("RA", 0, 1)
	f.quiet()
	f.outcome(syscall.ECONNREFUSED)
}
