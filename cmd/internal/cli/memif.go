package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ndpip/api"
)

// otherNamespace is how long a socket that is there, but that nobody in this network namespace listens on, is given to
// come to life: it is left over from a process that was killed, or its owner lives in another namespace. Then the
// driver tries, again and again.
const otherNamespace = 2 * time.Second

// connects says whether this is the side of a memif that connects to the other.
func connects(cfg api.Config) bool { return strings.HasPrefix(cfg.Wire, "memif:") && !cfg.Server }

// awaitServer waits, at most for limit, until the other side of a memif is there, when this is the side that connects:
// DPDK's driver asks only once, when the port starts, and a program that waits here has not taken memory yet. Other
// wires have no such side. It returns nil when stop is asked for, too.
//
// It only looks. A connection made to ask would be the surest, but DPDK's server side (seen in 22.11) panics when
// a peer leaves before its interrupt thread has come to it.
func awaitServer(cfg api.Config, stop *Stop, limit time.Duration) error {
	if !connects(cfg) {
		return nil
	}
	path, err := filepath.Abs(strings.TrimPrefix(cfg.Wire, "memif:"))
	if err != nil {
		return fmt.Errorf("--wire %s: %w", cfg.Wire, err)
	}
	var seen time.Time // when the socket was there first
	for end := time.Now().Add(limit); ; {
		now := time.Now()
		switch info, err := os.Stat(path); {
		case err != nil && !os.IsNotExist(err):
			return fmt.Errorf("--wire %s: %w", cfg.Wire, err)
		case err != nil:
			seen = time.Time{}
		case info.Mode()&os.ModeSocket == 0:
			return fmt.Errorf("--wire %s: the file is there and is no socket; give another path", cfg.Wire)
		case listensOn(path):
			return nil
		case seen.IsZero():
			seen = now
		case now.Sub(seen) > otherNamespace:
			return nil
		}
		if now.After(end) {
			return notThere(cfg, limit)
		}
		if pause(stop, 20*time.Millisecond); stop.Asked() {
			return nil
		}
	}
}

func notThere(cfg api.Config, limit time.Duration) error {
	return fmt.Errorf("nobody has opened the other side of %s for %gs; start the listening program first, or give a longer --connect-timeout",
		cfg.Wire, limit.Seconds())
}

// listensOn says whether a process in this network namespace listens on the socket at path, as the kernel's list of
// Unix sockets tells: its flags have the bit __SO_ACCEPTCON, and its path ends the line (proc_net_unix(5)).
func listensOn(path string) bool {
	list, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return true // not to be known: let the driver try
	}
	for line := range bytes.Lines(list) {
		f := bytes.Fields(line)
		if len(f) >= 8 && string(f[3]) == "00010000" && bytes.HasSuffix(bytes.TrimSpace(line), []byte(" "+path)) {
			return true
		}
	}
	return false
}
