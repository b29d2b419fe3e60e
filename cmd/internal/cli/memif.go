package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"syscall"
	"time"

	"ndpip/api"
)

// AwaitServer waits, at most for limit, until the other side of a memif is there, when this is the side that connects:
// DPDK's driver asks only once, when the port starts. Other wires have no such side. It returns nil when stop is asked
// for, too.
//
// The question is a connection to the socket that is closed at once. DPDK's server side takes it for a peer that left
// before it said which interface it wants, and forgets it.
func AwaitServer(cfg api.Config, stop *Stop, limit time.Duration) error {
	path, ok := strings.CutPrefix(cfg.Wire, "memif:")
	if !ok || cfg.Server {
		return nil
	}
	for end := time.Now().Add(limit); ; {
		c, err := net.Dial("unix", path)
		if err == nil {
			return c.Close()
		}
		// Not there, nobody behind it any more, or not yet accepting: worth waiting for. All else is not.
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.EAGAIN) {
			return fmt.Errorf("--wire %s: %w", cfg.Wire, err)
		}
		if time.Now().After(end) {
			return fmt.Errorf("nobody has opened the other side of %s for %gs; start the listening program first, or give a longer --connect-timeout",
				cfg.Wire, limit.Seconds())
		}
		select {
		case <-stop.Done():
			return nil
		case <-time.After(20 * time.Millisecond):
		}
	}
}
