package cli

import (
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// Stop tells a program's loops to end. Loops that poll read Asked, which is one atomic load; others wait on Done.
type Stop struct {
	asked   atomic.Bool // set once, before done is closed; it orders nothing else
	expired atomic.Bool // set before asked, when the time was up first
	done    chan struct{}
}

// NewStop makes a Stop that nobody has asked for.
func NewStop() *Stop { return &Stop{done: make(chan struct{})} }

// Ask ends the loops. It may be called more than once and from any goroutine.
func (s *Stop) Ask() {
	if !s.asked.Swap(true) {
		close(s.done)
	}
}

// Asked says whether the loops are to end.
func (s *Stop) Asked() bool { return s.asked.Load() }

// Done is closed when the loops are to end.
func (s *Stop) Done() <-chan struct{} { return s.done }

// After asks for the end d from now, unless d is 0. The timer that it returns (nil without one) may be stopped.
func (s *Stop) After(d time.Duration) *time.Timer {
	if d == 0 {
		return nil
	}
	return time.AfterFunc(d, func() {
		s.expired.Store(!s.Asked())
		s.Ask()
	})
}

// Expired says whether it was After's time that asked for the end.
func (s *Stop) Expired() bool { return s.expired.Load() }

const (
	// grace is how long a program may take to end after a signal before it is ended by force.
	grace = 5 * time.Second
	// double is the time in which a second signal counts as the first: timeout(1), for one, sends two at once, to the
	// process and to its group.
	double = time.Second
)

// Signals is a Stop that SIGINT and SIGTERM ask for. A second signal after that, or an end that takes longer than
// grace, ends the process at once with status 1. SIGPIPE is ignored, so that a closed standard output is an error of
// the write and the port is still closed in order.
func Signals(program string) *Stop {
	s := NewStop()
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, os.Interrupt, syscall.SIGTERM)
	signal.Ignore(syscall.SIGPIPE)
	go func() {
		<-ch
		s.Ask()
		first, force := time.Now(), time.After(grace)
		for {
			select {
			case <-ch:
				if time.Since(first) < double {
					continue
				}
				fmt.Fprintf(os.Stderr, "%s: ended by a second signal; the port was not closed in order\n", program)
			case <-force:
				fmt.Fprintf(os.Stderr, "%s: the orderly end took longer than %v; ended by force\n", program, grace)
			}
			os.Exit(StatusFault)
		}
	}()
	return s
}
