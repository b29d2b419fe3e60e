package api

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"

	"ndpip/dpdk"
	"ndpip/stack"
)

// check finds what is wrong with a Config before anything is touched.
func (c *Config) check() error {
	bad := func(field, format string, a ...any) error { return &ConfigError{field, fmt.Sprintf(format, a...)} }
	switch {
	case !c.Addr.IsValid() || !c.Addr.Addr().Unmap().Is4():
		return bad("Addr", "want an IPv4 address with its prefix length, as 10.0.0.1/24")
	case c.Gateway.IsValid() && !c.Gateway.Is4():
		return bad("Gateway", "want an IPv4 address")
	case c.MAC != nil && (len(c.MAC) != 6 || c.MAC[0]&1 != 0):
		return bad("MAC", "%v is not the Ethernet address of one station, as 02:00:00:00:00:01", c.MAC)
	case c.Burst < 0 || c.Burst > dpdk.RxCap:
		return bad("Burst", "%d: want 1 to %d frames, or 0 for 32", c.Burst, dpdk.RxCap)
	case c.Mbufs != 0 && c.Mbufs < 512:
		return bad("Mbufs", "%d: want at least 512 buffers, or 0 for 8192", c.Mbufs)
	case c.MTU != 0 && (c.MTU < 576 || c.MTU > 9216):
		return bad("MTU", "%d: want 576 to 9216 bytes, or 0 for the port's", c.MTU)
	case c.MSS != 0 && (c.MSS < 48 || c.MSS > 9176):
		return bad("MSS", "%d: want 48 to 9176 bytes, or 0 for what the MTU allows", c.MSS)
	case c.WinScale > 14:
		return bad("WinScale", "%d: want 0 to 14 (RFC 7323)", c.WinScale)
	case c.RcvBuf < 0 || c.RcvBuf > 1<<30 || c.SndBuf < 0 || c.SndBuf > 1<<30:
		return bad("RcvBuf, SndBuf", "want at most 1 GiB")
	case c.Port < 0 || c.Port > 65535:
		return bad("Port", "%d is not the number of a DPDK port", c.Port)
	case c.WorkerCPU >= runtime.NumCPU() && c.WorkerCPU > 0:
		return bad("WorkerCPU", "%d: this process has %d CPUs, numbered from 0", c.WorkerCPU, runtime.NumCPU())
	}
	for ip, mac := range c.Neighbours {
		if !ip.Unmap().Is4() || len(mac) != 6 {
			return bad("Neighbours", "%v=%v: want an IPv4 address and an Ethernet address", ip, mac)
		}
	}
	return nil
}

// Pools: a reserve of its own lets the worker send ACKs and ARP when the application holds all other buffers.
const (
	defaultMbufs = 8192
	ctlMbufs     = 1024
)

var opened atomic.Uint32 // hosts opened so far, for names that must be unique

// Open starts DPDK if the program has not, configures and starts the port, and starts the worker.
func Open(cfg Config) (*Host, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	h := &Host{cfg: cfg}
	if err := h.open(); err != nil {
		_ = h.release()
		var w *dpdk.WireError
		if errors.As(err, &w) {
			return nil, &ConfigError{"Wire", err.Error()}
		}
		return nil, err
	}
	return h, nil
}

func (h *Host) open() error {
	device, err := h.initEAL()
	if err != nil {
		return err
	}
	id := uint16(h.cfg.Port)
	if device != "" {
		if id, err = dpdk.PortByName(device); err != nil {
			return &EnvError{"port of " + h.cfg.Wire, err}
		}
	}
	if err := h.openPort(id); err != nil {
		return err
	}
	h.start()
	return nil
}

// initEAL starts DPDK, or finds it running. device is the name of the wire's port.
func (h *Host) initEAL() (device string, err error) {
	c := &h.cfg
	var args []string
	if c.Wire != "" {
		if args, device, err = dpdk.Wire(c.Wire, c.Server); err != nil {
			return "", err
		}
	}
	if dpdk.EalInitialized() {
		if device == "" {
			return "", nil
		}
		if _, err := dpdk.PortByName(device); err == nil {
			return device, nil
		}
		return device, &EnvError{"wire " + c.Wire, errors.New("DPDK runs already, without this wire's device; " +
			"give it with the EAL arguments, or leave Wire empty and set Port")}
	}
	if c.Wire != "" || len(c.EAL) == 0 {
		mb := 0
		if c.NoHuge {
			mb = h.megabytes()
		}
		args = append(dpdk.DefaultArgs(c.NoHuge, mb, "ndpip"+strconv.Itoa(os.Getpid())), args...)
	} else if c.NoHuge {
		args = append(args, "--no-huge", "-m", strconv.Itoa(h.megabytes()))
	}
	args = append(args, c.EAL...)
	if _, err := dpdk.EalInit(args); err != nil {
		return device, &EnvError{"starting DPDK", err}
	}
	h.ownEAL = true
	return device, nil
}

func (h *Host) mbufs() int {
	if h.cfg.Mbufs > 0 {
		return h.cfg.Mbufs
	}
	return defaultMbufs
}

// dataRoom is the size of one buffer: a whole frame lies in it.
func (h *Host) dataRoom() int {
	if h.cfg.MTU > 1500 {
		return (h.cfg.MTU+14+4+1023)/1024*1024 + 128
	}
	return dpdk.DataRoom
}

// megabytes is how much memory the pools, and DPDK itself, take.
func (h *Host) megabytes() int {
	per := h.dataRoom() + dpdk.PrivSize + 128 + 128
	return (2*h.mbufs()+ctlMbufs)*per>>20 + 32
}

func (h *Host) openPort(id uint16) error {
	c := &h.cfg
	n := opened.Add(1)
	pool := func(kind string, size int) (*dpdk.Mempool, error) {
		p, err := dpdk.NewMempool(fmt.Sprintf("ndpip_%s%d", kind, n), size, h.dataRoom(), dpdk.PrivSize, -1)
		if err != nil {
			return nil, &EnvError{"memory for packets", err}
		}
		h.pools = append(h.pools, p)
		return p, nil
	}
	rx, err := pool("rx", h.mbufs())
	if err != nil {
		return err
	}
	tx, err := pool("tx", h.mbufs())
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
	if c.MAC != nil {
		conf.MAC = (*[6]byte)(c.MAC)
	}
	if h.port, err = dpdk.ConfigurePort(id, conf); err != nil {
		return &EnvError{"configuring the port", err}
	}
	app, err := h.port.NewLane(-1, 0, tx)
	if err != nil {
		return &EnvError{"port", err}
	}
	h.lanes = append(h.lanes, app)
	worker, err := h.port.NewLane(0, 1, ctl)
	if err != nil {
		return &EnvError{"port", err}
	}
	h.lanes = append(h.lanes, worker)
	if err := h.port.Start(); err != nil {
		return &EnvError{"starting the port", err}
	}
	h.newStack(worker, app)
	return nil
}

func (h *Host) newStack(worker, app *dpdk.Lane) {
	c, info := &h.cfg, h.port.Info()
	mac := h.port.MAC()
	if c.MAC != nil {
		mac = [6]byte(c.MAC)
	}
	mtu := c.MTU
	if mtu == 0 {
		mtu = min(max(info.MTU, 576), h.dataRoom()-128-14)
	}
	static := map[netip.Addr]stack.MAC{}
	for ip, m := range c.Neighbours {
		static[ip.Unmap()] = stack.MAC(m)
	}
	h.st = stack.New(stack.Config{
		MAC: mac, Addr: c.Addr, Gateway: c.Gateway, Neighbours: static,
		Burst: c.Burst, MTU: mtu, MSS: c.MSS, Checksum: c.Checksum, Offload: info.TxOffload,
		RcvBuf: c.RcvBuf, SndBuf: c.SndBuf, WinScale: c.WinScale, RxBuffers: h.mbufs(),
	}, *worker, *app)
}

// start starts the worker on a thread of its own.
func (h *Host) start() {
	if h.cfg.Inline {
		return
	}
	h.st.Start()
	// The worker's thread never comes back to Go's scheduler: without one more, the rest of the program would have to
	// interrupt it for each goroutine.
	runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	up := make(chan struct{})
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the worker
		cpu := h.cfg.WorkerCPU
		if _, err := dpdk.RegisterLcore(cpu); err == nil {
			defer dpdk.UnregisterLcore()
		}
		close(up)
		h.st.Run(h.cfg.Yield)
	}()
	<-up
}
