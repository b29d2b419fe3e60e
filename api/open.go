package api

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

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
	case c.Congestion != "" && !slices.Contains(stack.ControlNames(), c.Congestion):
		return bad("Congestion", "%q: want one of %s, or nothing for the lossless profile", c.Congestion, strings.Join(stack.ControlNames(), ", "))
	case !share(c.Faults.Loss) || !share(c.Faults.Duplicate) || !share(c.Faults.Reorder) || !share(c.Faults.SentLoss):
		return bad("Faults", "%+v: want shares of the frames from 0 to 1", c.Faults)
	case c.AckDelay > maxAckDelay:
		return bad("AckDelay", "%v: want at most %v (RFC 9293 3.8.6.3), 0 for the default, or less for none", c.AckDelay, maxAckDelay)
	case c.WorkerSends && c.Inline:
		return bad("WorkerSends", "with Inline there is no worker that could send: want one of the two")
	case c.IdleSleep < 0:
		return bad("IdleSleep", "%v: want a time, or 0 for never", c.IdleSleep)
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

func share(x float64) bool { return x >= 0 && x <= 1 }

// Open starts DPDK if the program has not, makes the wire's device if DPDK runs without it, configures and starts the
// port, and starts the worker. Any number of hosts may be open, each on a port of its own.
//
// The error is a *ConfigError (an option is wrong; the message says what would be right) or an *EnvError (the machine
// lacks something: memory, a permission, the port). Everything that was taken is given back.
func Open(cfg Config) (*Host, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	p := &dpdkPort{}
	h, err := open(cfg, p)
	if err == nil {
		return h, nil
	}
	_ = p.release()
	var w *dpdk.WireError
	if errors.As(err, &w) {
		return nil, &ConfigError{"Wire", err.Error()}
	}
	return nil, err
}

func open(cfg Config, p *dpdkPort) (*Host, error) {
	id, err := p.find(&cfg)
	if err != nil {
		return nil, err
	}
	if err := p.open(&cfg, id); err != nil {
		return nil, err
	}
	return newHost(cfg, stack.New(p.config(&cfg), *p.worker, *p.app), p, nil)
}

// newHost makes a host on a stack, and starts its worker by launch (nil: on a new thread). With an error, the stack and
// the device are the caller's.
func newHost(cfg Config, st *stack.Stack, dev device, launch func(work func()) error) (*Host, error) {
	h := &Host{cfg: cfg, st: st, dev: dev, launch: launch, since: time.Now()}
	if cfg.IdleSleep > 0 {
		var err error
		if h.sleeper, err = dev.sleeper(); err != nil {
			return nil, &EnvError{"sleep", err}
		}
		st.SetRest(cfg.IdleSleep, h.sleeper)
	}
	if launch == nil {
		h.launch = h.newThread
	}
	if err := h.begin(); err != nil {
		h.noSleeper()
		return nil, err
	}
	return h, nil
}

// begin starts what works by itself, and makes the host known.
func (h *Host) begin() error {
	if h.cfg.Inline {
		if err := enter(h); err != nil {
			return err
		}
		h.beginLog()
		return nil
	}
	if err := h.startNews(); err != nil {
		return err
	}
	err := h.startWorker()
	if err == nil {
		if err = enter(h); err != nil {
			h.st.Stop()
		}
	}
	if err != nil {
		h.stopNews()
		return err
	}
	h.beginLog()
	return nil
}

func (h *Host) noSleeper() {
	if h.sleeper != nil {
		h.sleeper.Close()
	}
}

// startWorker starts the worker, and returns when it works.
func (h *Host) startWorker() error {
	// The worker's thread never comes back to Go's scheduler: without one more, the rest of the program would have to
	// interrupt it for each goroutine.
	addProcs(1)
	up := make(chan struct{})
	err := h.launch(func() {
		defer addProcs(-1)
		h.st.Start()
		close(up)
		h.st.Run(h.cfg.Yield)
	})
	if err != nil {
		addProcs(-1)
		return err
	}
	<-up
	return nil
}

// newThread runs work on a thread of its own, which is an lcore for that time.
func (h *Host) newThread(work func()) error {
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the worker
		if dpdk.EalInitialized() {
			if _, err := dpdk.RegisterLcore(h.cfg.WorkerCPU); err == nil {
				defer dpdk.UnregisterLcore()
			}
		}
		work()
	}()
	return nil
}

var procs sync.Mutex

// addProcs lets n more goroutines run at once.
func addProcs(n int) {
	procs.Lock()
	defer procs.Unlock()
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0)+n, 1))
}
