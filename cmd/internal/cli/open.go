package cli

import (
	"fmt"
	"io"
	"runtime"

	"ndpip/api"
	"ndpip/dpdk"
)

// Open opens the host. Where the machine has no hugepages and nobody chose, it goes on without them and says so on
// notes.
func Open(cfg api.Config, notes io.Writer) (*api.Host, error) {
	switch {
	case ealHas(cfg.EAL, "--no-huge"):
		cfg.NoHuge = false // it is in the arguments already
	case !cfg.NoHuge && !ealHas(cfg.EAL, "--in-memory") && !dpdk.HasHugepages():
		fmt.Fprintln(notes, "note: this machine has no free hugepages; going on without them, which is slower"+
			" ('echo 512 > /proc/sys/vm/nr_hugepages' as root reserves 1 GiB)")
		cfg.NoHuge = true
	}
	// Two threads poll and never block. Go's own work (timers, signals, printing) needs room besides them, or it would
	// have to interrupt them.
	if need := runtime.NumCPU() + 2; runtime.GOMAXPROCS(0) < need {
		runtime.GOMAXPROCS(need)
	}
	return api.Open(cfg)
}

// PinThread makes the calling goroutine's thread an lcore of DPDK, pinned to cpu, or not pinned when cpu is -1. The
// goroutine stays on the thread until release is called.
func PinThread(cpu int) (release func(), err error) {
	runtime.LockOSThread()
	if _, err := dpdk.RegisterLcore(cpu); err != nil {
		runtime.UnlockOSThread()
		if cpu >= 0 {
			return nil, fmt.Errorf("--cpu %d: %w", cpu, err)
		}
		return nil, err
	}
	return func() {
		dpdk.UnregisterLcore()
		runtime.UnlockOSThread()
	}, nil
}
