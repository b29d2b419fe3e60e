package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/api"
	"ndpip/dpdk"
)

// Open opens the host. Where the machine has no hugepages and nobody chose, it goes on without them and says so on
// notes. On the side of a memif that connects, it waits for the other side, at most for limit. It returns nil without
// an error when stop is asked for meanwhile.
func Open(cfg api.Config, notes io.Writer, stop *Stop, limit time.Duration) (*api.Host, error) {
	end := time.Now().Add(limit)
	if err := awaitServer(cfg, stop, limit); err != nil || stop.Asked() {
		return nil, err
	}
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
	smallHeap()
	cfg.KeepEAL = true // the EAL can be started once, and opening may take more than one attempt
	for {
		h, err := api.Open(cfg)
		switch {
		case err == nil && (!connects(cfg) || linked(h, stop)):
			return h, nil
		case err != nil && !(connects(cfg) && errors.Is(err, syscall.ECONNREFUSED)):
			return nil, inOptions(err)
		}
		if h != nil {
			_ = h.Stop()
		}
		switch {
		case stop.Asked():
			return nil, nil
		case time.Now().After(end):
			return nil, notThere(cfg, limit)
		}
		pause(stop, 50*time.Millisecond)
	}
}

// smallHeap has the collector keep the heap close to what is in use, unless GOGC says otherwise: these programs make next
// to no garbage while they run, and the heap would go on growing for minutes before it is collected the first time.
func smallHeap() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(25)
	}
}

// linked waits until the two sides of a memif have agreed. They do so at once, or never: a server that is not quite
// ready turns its client away, and DPDK's client does not ask again.
func linked(h *api.Host, stop *Stop) bool {
	for end := time.Now().Add(time.Second); !h.LinkUp(); pause(stop, 5*time.Millisecond) {
		if stop.Asked() || time.Now().After(end) {
			return false
		}
	}
	return true
}

// pause waits d, or until stop is asked for.
func pause(stop *Stop, d time.Duration) {
	select {
	case <-stop.Done():
	case <-time.After(d):
	}
}

// Close stops the host (which may be nil) and DPDK with it.
func Close(h *api.Host) error {
	var err error
	if h != nil {
		err = h.Stop()
	}
	if dpdk.EalInitialized() {
		err = errors.Join(err, dpdk.EalCleanup())
	}
	if err != nil {
		return fmt.Errorf("closing the port: %w", err)
	}
	return nil
}

// optionOf is the option that sets a field of api.Config.
var optionOf = map[string]string{
	"Wire": "--wire", "Port": "--iface", "MAC": "--bind-eth", "Addr": "--bind-ip", "Gateway": "--gateway", "Neighbours": "--arp",
	"Burst": "--burst", "Mbufs": "--mbufs", "MTU": "--mtu", "MSS": "--mss", "WinScale": "--win-scale",
	"RcvBuf, SndBuf": "--rcvbuf, --sndbuf", "WorkerCPU": "--worker-cpu",
}

// inOptions speaks of options where a ConfigError speaks of fields.
func inOptions(err error) error {
	var e *api.ConfigError
	if errors.As(err, &e) && optionOf[e.Field] != "" {
		return Usagef("%s: %s", optionOf[e.Field], e.Problem)
	}
	return err
}

// PinThread makes the program's thread an lcore of DPDK, pinned to the CPU of --cpu.
func (n *Net) PinThread() (release func(), err error) {
	release, err = api.PinThread(n.cpu)
	if err != nil && n.cpu >= 0 {
		err = fmt.Errorf("--cpu %d: %w", n.cpu, err)
	}
	return release, err
}

// Socket makes a non-blocking socket of kind (SOCK_STREAM or SOCK_DGRAM) with the options that a socket has.
func (n *Net) Socket(h *api.Host, kind int) (fd int, err error) {
	fd, err = h.Socket(unix.AF_INET, kind|unix.SOCK_NONBLOCK, 0)
	if err != nil || kind != unix.SOCK_STREAM || n.winScale < 0 {
		return fd, err
	}
	if err := h.SetSockOptInt(fd, unix.SOL_SOCKET, api.SO_NDPIP_TCP_WIN_SCALE, n.winScale); err != nil {
		h.Close(fd)
		return -1, fmt.Errorf("--win-scale %d: %w", n.winScale, err)
	}
	return fd, nil
}
