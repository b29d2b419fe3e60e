package api

import (
	"crypto/rand"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ndpip/dpdk"
	"ndpip/stack"
)

// Pools: a reserve of its own lets the worker send ACKs and ARP when the application holds all other buffers.
const (
	defaultMbufs = 8192
	ctlMbufs     = 1024
)

var opened atomic.Uint32 // ports opened so far, for names that must be unique

// dpdkPort is a port of DPDK with its pools and lanes.
type dpdkPort struct {
	port   *dpdk.Port
	device string // that Config.Wire named
	own    bool   // and that goes with the host
	inEAL  bool   // counted among the users of the EAL
	mbufs  int
	worker *dpdk.Lane
	app    *dpdk.Lane
	faults func() dpdk.FaultCounts // nil: none

	mu    sync.Mutex // guards what follows: statistics may be asked for while the host stops
	pools []*dpdk.Mempool
	gone  bool
	left  int // buffers that were not back when the port was closed
}

// dataRoom is the size of one buffer: a whole frame lies in it.
func dataRoom(c *Config) int {
	if c.MTU > 1500 {
		return (c.MTU+14+4+1023)/1024*1024 + 128
	}
	return dpdk.DataRoom
}

// megabytes is how much memory the pools, and DPDK itself, take.
func megabytes(c *Config) int {
	per := dataRoom(c) + dpdk.PrivSize + 128 + 128
	return (2*or(c.Mbufs, defaultMbufs)+ctlMbufs)*per>>20 + 32
}

// open configures and starts the port.
func (p *dpdkPort) open(c *Config, id uint16) error {
	n := opened.Add(1)
	p.mbufs = or(c.Mbufs, defaultMbufs)
	pool := func(kind string, size int) (*dpdk.Mempool, error) {
		m, err := dpdk.NewMempool(fmt.Sprintf("ndpip_%s%d", kind, n), size, dataRoom(c), dpdk.PrivSize, -1)
		if err != nil {
			return nil, &EnvError{"memory for packets", err}
		}
		p.pools = append(p.pools, m)
		return m, nil
	}
	rx, err := pool("rx", p.mbufs)
	if err != nil {
		return err
	}
	tx, err := pool("tx", p.mbufs)
	if err != nil {
		return err
	}
	ctl, err := pool("ctl", ctlMbufs)
	if err != nil {
		return err
	}
	conf := dpdk.PortConf{RxQueues: 1, TxQueues: 2, MTU: c.MTU, RxPool: rx, Offload: c.Checksum == ChecksumAuto}
	if c.Inline {
		conf.TxQueues = 1
	}
	conf.Interrupts = c.IdleSleep > 0
	if c.MAC != nil && !isTap(id) {
		conf.MAC = (*[6]byte)(c.MAC)
	}
	if p.port, err = dpdk.ConfigurePort(id, conf); err != nil {
		return &EnvError{"configuring the port", err}
	}
	if p.app, err = p.port.NewLane(-1, 0, tx); err != nil {
		return &EnvError{"port", err}
	}
	if p.worker, err = p.port.NewLane(0, 1, ctl); err != nil {
		return &EnvError{"port", err}
	}
	if c.Faults.Any() {
		p.faults = p.worker.Inject(c.Faults)
		if c.Faults.SentLoss > 0 {
			theirs, ours := p.faults, p.app.Inject(dpdk.Faults{SentLoss: c.Faults.SentLoss, Seed: c.Faults.Seed + 1})
			p.faults = func() dpdk.FaultCounts {
				c := theirs()
				c.Lost += ours().Lost
				return c
			}
		}
	}
	if err := p.port.Start(); err != nil {
		return &EnvError{"starting the port", err}
	}
	return nil
}

// isTap says whether a port is a tap: its address is that of the kernel's interface at the other end, and so not ours.
func isTap(id uint16) bool {
	name, err := dpdk.PortName(id)
	return err == nil && strings.HasPrefix(name, "net_tap")
}

// randomMAC is a locally administered address of one station (IEEE 802 8.2.2), for ports that have none of their own.
func randomMAC() (m [6]byte) {
	_, _ = rand.Read(m[:]) // never fails: see crypto/rand
	m[0] = m[0]&^1 | 2
	return m
}

// config is that of the stack on this port.
func (p *dpdkPort) config(c *Config) stack.Config {
	info := p.port.Info()
	mac := p.port.MAC()
	switch {
	case c.MAC != nil:
		mac = [6]byte(c.MAC)
	case mac == [6]byte{} || isTap(p.port.ID()):
		mac = randomMAC()
	}
	mtu := c.MTU
	if mtu == 0 {
		mtu = min(max(info.MTU, 576), dataRoom(c)-128-14)
	}
	sc := stackConfig(c)
	sc.MAC, sc.MTU, sc.Offload, sc.RxBuffers, sc.TxBuffers = mac, mtu, info.TxOffload, p.mbufs, p.mbufs
	return sc
}

// stackConfig is what a stack's config has from the host's: all that does not depend on the port.
func stackConfig(c *Config) stack.Config {
	static := map[netip.Addr]stack.MAC{}
	for ip, m := range c.Neighbours {
		static[ip.Unmap()] = stack.MAC(m)
	}
	return stack.Config{
		Addr: c.Addr, Gateway: c.Gateway, Neighbours: static, Broadcast: c.Broadcast, Burst: c.Burst, MSS: c.MSS,
		Checksum: c.Checksum, RcvBuf: c.RcvBuf, SndBuf: c.SndBuf, WinScale: c.WinScale,
		AckDelay: int64(ackDelay(c)), AckRide: c.Inline && c.AckDelay == 0, Archive: c.Archive, WorkerSends: c.WorkerSends, NoCoalesce: c.NoCoalesce,
	}
}

// maxAckDelay is less than half a second, and than the RTO of whoever may be at the other end.
const maxAckDelay = 100 * time.Millisecond

func ackDelay(c *Config) time.Duration {
	kind, _, _ := strings.Cut(c.Wire, ":")
	switch {
	case c.AckDelay != 0:
		return max(c.AckDelay, 0)
	case kind == "tap" || kind == "af_packet" || kind == "af_xdp":
		return 4 * time.Millisecond
	}
	return 0
}

func (p *dpdkPort) stats() (drops uint64, inUse int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return 0, p.left
	}
	if s, err := p.port.Stats(); err == nil {
		drops = s.RxMissed + s.RxNoMbuf
	}
	for _, m := range p.pools {
		inUse += m.InUse()
	}
	return drops, inUse
}

func (p *dpdkPort) injected() (c dpdk.FaultCounts) {
	if p.faults != nil {
		c = p.faults()
	}
	return c
}

func (p *dpdkPort) sleeper() (*dpdk.Sleeper, error) { return p.port.NewSleeper(0) }

func (p *dpdkPort) linkUp() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.gone && p.port.LinkUp()
}

// release gives back what was taken, as far as that got.
func (p *dpdkPort) release() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	var first error
	keep := func(err error) {
		if err != nil && first == nil {
			first = err
		}
	}
	if p.port != nil {
		keep(p.port.Stop())
	}
	dpdk.FreeLane(p.app)
	dpdk.FreeLane(p.worker)
	if p.port != nil {
		keep(p.port.Close())
	}
	for _, m := range p.pools {
		p.left += m.InUse()
		m.Free()
	}
	keep(p.leaveEAL())
	return first
}
