package api

import (
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"ndpip/dpdk"
	"ndpip/stack"
)

// Checksum says how the checksums of TCP and UDP are handled.
type Checksum = stack.Checksum

// The ways: by the port where it can and else in software; in software; not at all, for a wire that is memory.
const (
	ChecksumAuto     = stack.ChecksumAuto
	ChecksumSoftware = stack.ChecksumSoftware
	ChecksumOff      = stack.ChecksumOff
)

// Faults are injected into the frames that a port of Open's receives.
type Faults = dpdk.Faults

// Config is what a Host is opened with. The zero value of a field means its default; Addr must be given.
type Config struct {
	Wire   string   // "memif:PATH", "tap:NAME", "af_packet:IF", "af_xdp:IF", "pci:ADDRESS", "null"; "": see EAL
	Server bool     // memif: this side makes the socket
	EAL    []string // further EAL arguments, or all of them when Wire is empty
	NoHuge bool     // do without hugepages
	Port   int      // DPDK's number of the port, when Wire is empty

	Faults Faults // for tests: what happens to received frames, as on a wire that is not reliable

	MAC        net.HardwareAddr                // nil: the port's own
	Addr       netip.Prefix                    // own IPv4 address, and the prefix on the link
	Gateway    netip.Addr                      // for all other addresses; zero: none
	Neighbours map[netip.Addr]net.HardwareAddr // static ARP entries; ff:ff:ff:ff:ff:ff sends to all
	Broadcast  bool                            // take what is for this host out of broadcast frames, too

	Burst    int // frames received per turn; 0: 32
	Mbufs    int // buffers in the receive pool and in the transmit pool, each; 0: 8192
	MTU      int // 0: the port's
	Checksum Checksum
	MSS      int // largest segment sent and asked for; 0: from the MTU
	WinScale int // window scale that is offered; -1 or 0: from RcvBuf
	RcvBuf   int // bytes; 0: 1 MiB
	SndBuf   int
	// Congestion is the congestion control of all sockets, and with it the lossy profile, unless they choose otherwise:
	// one of those that TCP_CONGESTION takes. "": none, the lossless profile.
	Congestion string

	Inline bool // no worker: the stack's turns are taken inside the application's calls
	// WorkerSends leaves the sending to the worker: the application's threads only copy what they write into packet buffers,
	// or hand theirs over. docs/modes.md says when that is better.
	WorkerSends bool
	// NoCoalesce has each received frame taken apart by itself, instead of runs of a connection's segments by what their
	// headers have in common. Nothing but speed changes: it is for measurements.
	NoCoalesce bool
	WorkerCPU  int  // CPU that the worker is pinned to; -1: none. Beware that 0 is a CPU
	Yield      bool // give the CPU away when there is nothing to do
	// AckDelay is how long the ACK of a small piece of text waits for an answer that carries it (RFC 1122 4.2.3.2).
	// 0: 4 ms on tap, af_packet and af_xdp, whose frames are system calls; elsewhere with Inline until the next turn, for an
	// application that answers at once, and else not at all. Negative: not at all.
	AckDelay time.Duration
	// Archive is how many blocks of closed connections, with their rings, are kept for up to 10 s for the next ones
	// between the same two hosts. 0: 256; negative: none.
	Archive int
	// IdleSleep is for machines that must not spin: a thread that has polled in vain for so long (the worker, EpollWait, a
	// blocking call) sleeps until there is something to do. Ports that tell of frames wake it (net_tap; NICs bound to
	// vfio-pci); others are looked at in between, every 50 µs at first and every 2 ms when they were idle for long.
	// 0: they never sleep.
	IdleSleep time.Duration
	// Control is the Unix socket through which cmd/ndpip-stat looks at this process: its path, or "off". "": what the
	// environment variable NDPIP_CONTROL says, or else a file named by the process's number in ControlDir. It is for this
	// user alone.
	Control string
	// Log is told when the host opens and stops, when its link goes up or down, and of trouble (drops, timeouts, want of
	// buffers), at most once a second. nil: nothing is logged. What DPDK logs is another matter: see EAL, --log-level.
	Log *slog.Logger
	// KeepEAL leaves DPDK running when the host stops, for a later Open in the same process: DPDK can be started once only.
	KeepEAL bool
}

// Host is an open port with its stack and descriptors.
type Host struct {
	cfg     Config
	st      *stack.Stack
	dev     device
	launch  func(work func()) error // starts the worker's thread
	sleeper *dpdk.Sleeper           // nil: nobody sleeps
	since   time.Time               // when it was opened
	fds     fdTable
	bufs    bufTable
	stopped atomic.Bool
	once    sync.Once

	news     sync.Mutex  // one goroutine at a time takes news off the stack's list
	taking   atomic.Bool // one is at it
	awake    awakener
	spinning atomic.Uint32 // 1: a goroutine spins in a blocking call

	tracing       atomic.Bool   // Trace is at work
	quiet, logged chan struct{} // ends the log; it has ended. nil: there is none
	tapMu         sync.Mutex    // guards taps
	taps          []*Capture

	leading atomic.Uint32 // 1: without a worker: a goroutine that waits takes the stack's turns
	idleMu  sync.Mutex
	idle    []*waiter // those that could lead
}

// device is what lies under the stack: the port with its pools and lanes.
type device interface {
	stats() (drops uint64, inUse int) // frames that the port dropped; buffers that are not free
	linkUp() bool
	look() PortView
	release() error // gives all of it back, once the stack has stopped
	sleeper() (*dpdk.Sleeper, error)
}

// Stats are a host's counters: the stack's, and sums over them.
type Stats struct {
	stack.Counters
	Drops     uint64 `help:"received frames that were dropped, for whatever reason"`
	PortDrops uint64 `help:"frames that the port dropped for want of a buffer or of room in its queue"`
	InUse     int    `kind:"gauge" help:"buffers of all pools that are not free"` // after Stop, those that never came back
	Faults    dpdk.FaultCounts
}

// Stats gives the counters as they are between two turns of the stack.
func (h *Host) Stats() Stats {
	s := Stats{Counters: h.st.Counters()}
	for r, n := range s.Drop {
		if stack.Drop(r) != stack.DropNeighbour {
			s.Drops += n
		}
	}
	for r, n := range s.Parse {
		if r != stack.ParseOK {
			s.Drops += n
		}
	}
	s.PortDrops, s.InUse = h.dev.stats()
	if d, ok := h.dev.(interface{ injected() dpdk.FaultCounts }); ok {
		s.Faults = d.injected()
	}
	return s
}

// Addr is the host's IPv4 address.
func (h *Host) Addr() netip.Addr { return h.cfg.Addr.Addr() }

// MAC is the host's Ethernet address.
func (h *Host) MAC() net.HardwareAddr {
	m := h.st.MAC()
	return m[:]
}

// LinkUp says whether the port's link is up: with memif, whether the peer is there.
func (h *Host) LinkUp() bool { return !h.stopped.Load() && h.dev.linkUp() }

// Stop closes all sockets, gives their connections a moment to end in order, then stops the worker and the port, and
// cleans up DPDK if Open started it (see Config.KeepEAL). Calls that wait end with EBADF, and descriptors are dead
// afterwards. It may be called more than once, and by several goroutines.
func (h *Host) Stop() (err error) {
	h.once.Do(func() { err = h.stop() })
	return err
}

// farewell is how long Stop lets connections end in order.
const farewell = 300 * time.Millisecond

func (h *Host) stop() error {
	h.stopped.Store(true)
	leave(h)
	h.fds.each(func(s *sock) {
		if h.close(s) != nil { // somebody else is closing it, and may wait for its peer
			s.rouseAll()
			s.mu.Lock()
			s.mu.Unlock() //lint:ignore SA2001 Close holds it
		}
	})
	for end := time.Now().Add(farewell); time.Now().Before(end) && h.st.Busy(); {
		if h.cfg.Inline {
			h.st.Poll()
		} else {
			time.Sleep(time.Millisecond)
		}
	}
	h.st.AbortAll()
	h.st.Stop()
	h.stopNews()
	h.bufs.giveUp(func(b dpdk.Handle, received bool) { h.st.FreeBufs([]dpdk.Frame{{Handle: b}}, received) })
	h.endCaptures()
	h.endLog()
	h.st.Kill()
	h.noSleeper()
	return h.dev.release()
}

// poll lets the stack take a turn, when nobody else does it.
func (h *Host) poll() bool { return h.cfg.Inline && h.st.Poll() }

// PinThread locks the calling goroutine to its thread and makes that an lcore of DPDK, with its own cache in every
// pool, pinned to cpu (-1: not pinned). release undoes it, on the same goroutine.
func PinThread(cpu int) (release func(), err error) {
	runtime.LockOSThread()
	if _, err := dpdk.RegisterLcore(cpu); err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	return func() {
		dpdk.UnregisterLcore()
		if cpu < 0 {
			runtime.UnlockOSThread() // a pinned thread must not serve other goroutines: it ends with this one
		}
	}, nil
}
