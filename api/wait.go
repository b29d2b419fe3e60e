package api

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/tcp"
)

// Waiting of blocking calls: spin while an answer can come within microseconds, then let others run, then sleep in
// steps that grow.
const (
	spinRounds  = 2000
	yieldRounds = 4000
	sleepMin    = 20 * time.Microsecond
	sleepMax    = 500 * time.Microsecond
)

// wait waits until cond holds. EBADF: the socket was closed meanwhile.
func (h *Host) wait(s *sock, _ tcp.Pend, cond func() bool) error {
	sleep := sleepMin
	h.st.Flush()
	for i := 0; ; i++ {
		if cond() {
			return nil
		}
		if s.closed.Load() || h.stopped.Load() {
			return unix.EBADF
		}
		switch {
		case h.poll():
			i = 0
		case i < spinRounds && !h.cfg.Yield:
		case i < yieldRounds:
			runtime.Gosched()
		case h.cfg.Inline:
			// Nobody else takes the stack's turns: no sleep.
			runtime.Gosched()
		default:
			time.Sleep(sleep)
			sleep = min(sleep*2, sleepMax)
		}
	}
}
