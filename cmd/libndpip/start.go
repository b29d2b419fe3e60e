package main

// #include <stdint.h>
// #include "glue.h"
import "C"

import (
	"crypto/rand"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/api"
	"ndpip/dpdk"
)

const (
	defaultBuffers = 8192
	controlBuffers = 1024 // the worker's own, so that it can answer when the application holds all others
	feedSize       = 1024 // frames that wait at either end of a feed
)

//export ndpip_go_start
func ndpip_go_start(id C.int) C.int64_t {
	return setting(id, func(f *iface) C.int64_t {
		if !f.addr.IsValid() {
			return refuse(unix.EINVAL, "interface %d has no IPv4 address: call ndpip_linux_dpdk_set_inaddr first", id)
		}
		f.cfg.Addr = netip.PrefixFrom(f.addr, f.prefix)
		if err := f.start(); err != nil {
			return say(err, "starting interface %d", id)
		}
		return 0
	})
}

func (f *iface) start() (err error) {
	var link api.Link
	if f.queues != nil {
		link, err = f.linkTheirs()
	} else {
		link, err = f.linkOurs()
	}
	if err != nil {
		return err
	}
	if f.lcore = C.ndpip_lcore_free(); f.lcore >= 0 {
		link.Launch = f.launch
	} else {
		logText(false, fmt.Sprintf("interface %d: no lcore is free for the worker (the EAL's option -l gives more): it gets a thread of its own", f.id))
	}
	if f.host, err = api.OpenLink(f.cfg, link); err != nil {
		_ = link.Port.Close()
		return err
	}
	f.port = link.Port
	f.starts++
	C.ndpip_set_tag(C.int(f.slot), C.uint32_t(f.tag()))
	hosts[f.slot].Store(f.host)
	return nil
}

// tag is that of the buffers that a program owns, from this start to the next.
func (f *iface) tag() uint32 {
	tag := int64(C.NDPIP_TAG)
	return uint32(tag) | uint32(f.slot)<<C.NDPIP_TAG_SLOT | f.starts%(1<<15)<<1
}

// current is the host of a slot.
func current(slot C.uint32_t) *api.Host { return hosts[slot%slots].Load() }

// linkTheirs is a port that the program runs.
func (f *iface) linkTheirs() (api.Link, error) {
	port, err := dpdk.AttachPort(f.id)
	if err != nil {
		return api.Link{}, err
	}
	q := f.queues
	link := api.Link{Port: port, RxQueue: q.rx, TxQueues: [2]int{q.tx, q.workerTx}}
	if q.pool != nil {
		link.Pool = dpdk.AttachMempool(q.pool)
	} else if err := f.makePools(false); err != nil {
		_ = port.Close()
		return api.Link{}, err
	} else {
		link.Pool, link.Control = f.pools.tx, f.pools.ctl
	}
	return link, nil
}

// linkOurs is a port that ndpip sets up and starts.
func (f *iface) linkOurs() (api.Link, error) {
	if err := f.makePools(true); err != nil {
		return api.Link{}, err
	}
	conf := dpdk.PortConf{RxQueues: 1, TxQueues: 2, RxPool: f.pools.rx, Offload: true, Keep: true}
	if f.cfg.MAC != nil {
		conf.MAC = (*[6]byte)(f.cfg.MAC)
	}
	port, err := f.configure(conf)
	if err != nil {
		return api.Link{}, err
	}
	if port.Info().Driver == "net_tap" && f.cfg.MAC == nil { // the port's address is that of the kernel's interface
		f.cfg.MAC = randomMAC()
	}
	if err := startPort(port); err != nil {
		_ = port.Close()
		return api.Link{}, err
	}
	return api.Link{
		Port: port, TxQueues: [2]int{0, 1}, Pool: f.pools.tx, Control: f.pools.ctl, RxBuffers: f.pools.rx.Size(),
	}, nil
}

// configure sets the port up, the first time. Later it is as it was left: a net_memif server in which a client's greeting is
// under way must not be given new queues (seen in 22.11: what it sends then goes nowhere).
func (f *iface) configure(conf dpdk.PortConf) (port *dpdk.Port, err error) {
	if f.ours == nil {
		f.ours, err = dpdk.ConfigurePort(f.id, conf)
		return f.ours, err
	}
	if conf.MAC != nil && *conf.MAC != f.ours.MAC() {
		err = f.ours.SetMAC(*conf.MAC)
	}
	return f.ours, err
}

// A net_memif client whose server has not been started yet asks again.
const (
	askTimes  = 10
	askWithin = 300 * time.Millisecond
)

func startPort(port *dpdk.Port) error {
	client := port.MemifClient()
	for range askTimes {
		if err := port.Start(); err != nil || !client {
			return err
		}
		for end := time.Now().Add(askWithin); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if port.LinkUp() {
				return nil
			}
		}
		if err := port.Stop(); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: the server of %s is there, but it has not started its interface", unix.ECONNREFUSED, port.Name())
}

// randomMAC is a locally administered address of one station (IEEE 802 8.2.2).
func randomMAC() []byte {
	m := make([]byte, 6)
	_, _ = rand.Read(m) // never fails: see crypto/rand
	m[0] = m[0]&^1 | 2
	return m
}

// makePools makes the pools that there are not yet.
func (f *iface) makePools(receive bool) (err error) {
	n := f.buffers
	if n == 0 {
		n = defaultBuffers
	}
	p := &f.pools
	pool := func(to **dpdk.Mempool, kind string, n int) {
		if *to == nil && err == nil {
			*to, err = dpdk.NewMempool(fmt.Sprintf("ndpip_%s_%d", kind, f.id), n, 0, -1, -1)
		}
	}
	if receive {
		pool(&p.rx, "rx", n)
	}
	pool(&p.tx, "tx", n)
	pool(&p.ctl, "ctl", controlBuffers)
	return err
}

// launch starts the worker on its lcore.
func (f *iface) launch(work func()) error {
	works[f.slot] = work
	if e := C.ndpip_lcore_start(f.lcore, C.int(f.slot)); e != 0 {
		return fmt.Errorf("rte_eal_remote_launch on lcore %d: %w", f.lcore, unix.Errno(-e))
	}
	return nil
}

// works are what the lcores are to do; each is stored before its lcore is started.
var works [slots]func()

//export ndpip_go_work
func ndpip_go_work(slot C.int) { works[slot]() }

//export ndpip_go_stop
func ndpip_go_stop(id C.int) C.int64_t {
	ifaces.Lock()
	defer ifaces.Unlock()
	f := lookUp(id)
	switch {
	case f == nil:
		return refuse(unix.ENODEV, "%d is no interface: register it first", id)
	case f.host == nil:
		return refuse(unix.EINVAL, "interface %d is not started", id)
	}
	if err := f.stop(); err != nil {
		return say(err, "stopping interface %d", id)
	}
	return 0
}

func (f *iface) stop() error {
	hosts[f.slot].Store(nil)
	C.ndpip_set_tag(C.int(f.slot), 0)
	err := f.host.Stop()
	if f.lcore >= 0 {
		C.ndpip_lcore_wait(f.lcore)
	}
	if f.queues == nil {
		drain(f.port)
	}
	if f.feed != nil {
		drain(f.feed)
	}
	if e := f.port.Close(); err == nil {
		err = e
	}
	f.host, f.port = nil, nil
	return err
}

// drain gives back what lies in a port's queue, at most as much as that holds: the peer may go on sending. By a lane, whose
// bursts a net_memif peer that goes away meanwhile does no harm.
func drain(p *dpdk.Port) {
	lane, err := p.NewLane(0, 0, nil)
	if err != nil {
		return // then nothing can lie there
	}
	defer dpdk.FreeLane(lane)
	for range 4 * feedSize / 32 {
		if lane.Exchange(dpdk.OpFree | dpdk.OpRx); lane.NRx == 0 {
			return
		}
		for _, f := range lane.Rx[:lane.NRx] {
			lane.Release(f.Handle)
		}
	}
}

//export ndpip_go_register_feed
func ndpip_go_register_feed(name *C.char) C.int64_t {
	ifaces.Lock()
	defer ifaces.Unlock()
	s := C.GoString(name)
	ours, theirs, err := dpdk.RingPair(s, feedSize)
	if err != nil {
		return say(err, "making feed %q", s)
	}
	f, r := register(C.int(ours))
	if r < 0 {
		return r
	}
	if f.feed, err = f.openFeed(theirs); err != nil {
		return say(err, "making feed %q", s)
	}
	C.ndpip_set_feed(C.int(ours), C.int(theirs))
	return C.int64_t(ours)
}

// openFeed starts the program's end of a feed. It stays so for the life of the process.
func (f *iface) openFeed(id uint16) (*dpdk.Port, error) {
	if err := f.makePools(true); err != nil {
		return nil, err
	}
	port, err := dpdk.ConfigurePort(id, dpdk.PortConf{RxPool: f.pools.rx, Keep: true})
	if err != nil {
		return nil, err
	}
	return port, port.Start()
}
