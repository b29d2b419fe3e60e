package main

// #include <stdint.h>
// #include <stdlib.h>
// #include "glue.h"
import "C"

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"ndpip/api"
	"ndpip/dpdk"
)

// iface is an interface: a DPDK port with its settings. It keeps its slot and its pools for the life of the process, since
// buffers and frames may outlive a stop.
type iface struct {
	slot    int
	id      uint16
	prefix  int
	addr    netip.Addr
	cfg     api.Config
	buffers int

	queues *queues    // of a port that the program runs
	feed   *dpdk.Port // the program's end, of an interface that it feeds
	pools  pools
	ours   *dpdk.Port // once it was set up here
	starts uint32
	host   *api.Host // while it is started, as is what follows
	port   *dpdk.Port
	lcore  C.int // that the worker is on; -1: none
}

// queues are the program's part of what it attaches.
type queues struct {
	rx, tx, workerTx int
	pool             unsafe.Pointer // struct rte_mempool *, or nil
}

type pools struct{ rx, tx, ctl *dpdk.Mempool }

// ifaces are all that were ever registered. Its lock is held while one starts or stops.
var ifaces struct {
	sync.Mutex
	all []*iface
}

// say logs what was wrong, and gives the errno.
func say(err error, what string, args ...any) C.int64_t {
	logText(true, fmt.Sprintf(what, args...)+": "+err.Error())
	return code(err)
}

func logText(isError bool, text string) {
	c := C.CString(text)
	defer C.free(unsafe.Pointer(c))
	bad := C.int(0)
	if isError {
		bad = 1
	}
	C.ndpip_log(bad, c)
}

// refuse logs what was wrong and what would be right, and gives the errno.
func refuse(e unix.Errno, text string, args ...any) C.int64_t {
	logText(true, fmt.Sprintf(text, args...))
	return -C.int64_t(e)
}

//export ndpip_go_init
func ndpip_go_init() {
	if !dpdk.EalInitialized() {
		logText(true, "DPDK does not run: call rte_eal_init before ndpip_linux_dpdk_init")
	}
}

// lookUp finds a registered interface. Under the lock.
func lookUp(id C.int) *iface {
	for _, f := range ifaces.all {
		if C.int(f.id) == id {
			return f
		}
	}
	return nil
}

// register makes an interface of a port, or one that was registered before anew. Under the lock.
func register(id C.int) (*iface, C.int64_t) {
	if !dpdk.EalInitialized() {
		return nil, refuse(unix.EINVAL, "DPDK does not run: call rte_eal_init first")
	}
	if id < 0 || id > 65535 {
		return nil, refuse(unix.ENODEV, "%d is not the number of a DPDK port", id)
	}
	if _, err := dpdk.PortName(uint16(id)); err != nil {
		return nil, say(err, "registering interface %d", id)
	}
	f := lookUp(id)
	switch {
	case f == nil && len(ifaces.all) == slots:
		return nil, refuse(unix.ENFILE, "there are %d interfaces already", slots)
	case f == nil:
		f = &iface{slot: len(ifaces.all), id: uint16(id)}
		ifaces.all = append(ifaces.all, f)
	case f.host != nil:
		return nil, refuse(unix.EBUSY, "interface %d is started: stop it first", id)
	}
	// With no network set, every address is a neighbour's, as in the original.
	f.queues, f.addr, f.prefix = nil, netip.Addr{}, 0
	f.cfg = api.Config{WinScale: -1, WorkerCPU: -1, Yield: true, Broadcast: true, Neighbours: map[netip.Addr]net.HardwareAddr{}}
	return f, 0
}

//export ndpip_go_register
func ndpip_go_register(id C.int) C.int64_t {
	ifaces.Lock()
	defer ifaces.Unlock()
	_, r := register(id)
	return r
}

//export ndpip_go_attach
func ndpip_go_attach(id C.int, rxq, txq, workerTxq C.uint16_t, pool unsafe.Pointer) C.int64_t {
	ifaces.Lock()
	defer ifaces.Unlock()
	f, r := register(id)
	if r < 0 {
		return r
	}
	port, err := dpdk.AttachPort(f.id)
	if err != nil {
		return say(err, "attaching port %d", id)
	}
	defer port.Close()
	info := port.Info()
	q := &queues{int(rxq), int(txq), int(workerTxq), pool}
	if q.rx >= info.RxQueues || q.tx >= info.TxQueues || q.workerTx >= info.TxQueues {
		return refuse(unix.EINVAL, "attaching port %d with receive queue %d and transmit queues %d and %d: it has %d and %d, numbered from 0",
			id, q.rx, q.tx, q.workerTx, info.RxQueues, info.TxQueues)
	}
	f.queues, f.ours = q, nil
	return 0
}

// setting changes a stopped interface's settings.
func setting(id C.int, change func(f *iface) C.int64_t) C.int64_t {
	ifaces.Lock()
	defer ifaces.Unlock()
	f := lookUp(id)
	switch {
	case f == nil:
		return refuse(unix.ENODEV, "%d is no interface: register it first", id)
	case f.host != nil:
		return refuse(unix.EBUSY, "interface %d is started: settings are for stopped ones", id)
	}
	return change(f)
}

// hardware copies an Ethernet address.
func hardware(mac *C.uint8_t) net.HardwareAddr {
	return net.HardwareAddr(C.GoBytes(unsafe.Pointer(mac), 6))
}

//export ndpip_go_set_ethaddr
func ndpip_go_set_ethaddr(id C.int, mac *C.uint8_t) C.int64_t {
	return setting(id, func(f *iface) C.int64_t {
		m := hardware(mac)
		if m[0]&1 != 0 {
			return refuse(unix.EINVAL, "interface %d: %v is not the address of one station", id, m)
		}
		f.cfg.MAC = m
		return 0
	})
}

//export ndpip_go_set_inaddr
func ndpip_go_set_inaddr(id C.int, ip C.uint32_t) C.int64_t {
	return setting(id, func(f *iface) C.int64_t {
		if a := addr(ip); a.IsUnspecified() || a.IsMulticast() || ip == 1<<32-1 {
			return refuse(unix.EINVAL, "interface %d: %v is not the address of one host", id, a)
		}
		f.addr = addr(ip)
		return 0
	})
}

//export ndpip_go_clear_peers
func ndpip_go_clear_peers(id C.int) C.int64_t {
	return setting(id, func(f *iface) C.int64_t {
		clear(f.cfg.Neighbours)
		return 0
	})
}

//export ndpip_go_add_peer
func ndpip_go_add_peer(id C.int, ip C.uint32_t, mac *C.uint8_t) C.int64_t {
	return setting(id, func(f *iface) C.int64_t {
		f.cfg.Neighbours[addr(ip)] = hardware(mac)
		return 0
	})
}

//export ndpip_go_set_burst
func ndpip_go_set_burst(id C.int, n C.uint16_t) C.int64_t {
	return setting(id, func(f *iface) C.int64_t {
		if n < 1 || n > dpdk.RxCap {
			return refuse(unix.EINVAL, "interface %d: a burst of %d frames: want 1 to %d", id, n, dpdk.RxCap)
		}
		f.cfg.Burst = int(n)
		return 0
	})
}

//export ndpip_go_set_network
func ndpip_go_set_network(id, bits C.int, gateway C.uint32_t) C.int64_t {
	return setting(id, func(f *iface) C.int64_t {
		if bits < 0 || bits > 32 {
			return refuse(unix.EINVAL, "interface %d: a prefix of %d bits: want 0 to 32", id, bits)
		}
		f.prefix, f.cfg.Gateway = int(bits), netip.Addr{}
		if gateway != 0 {
			f.cfg.Gateway = addr(gateway)
		}
		return 0
	})
}

//export ndpip_go_set_buffers
func ndpip_go_set_buffers(id C.int, n C.uint) C.int64_t {
	return setting(id, func(f *iface) C.int64_t {
		if n < 512 || n > 1<<24 {
			return refuse(unix.EINVAL, "interface %d: %d buffers: want 512 to %d", id, n, 1<<24)
		}
		f.buffers = int(n)
		return 0
	})
}

//export ndpip_go_set_yield
func ndpip_go_set_yield(id, on C.int) C.int64_t {
	return setting(id, func(f *iface) C.int64_t {
		f.cfg.Yield = on != 0
		return 0
	})
}

//export ndpip_go_slot
func ndpip_go_slot(id C.int) C.int64_t {
	ifaces.Lock()
	defer ifaces.Unlock()
	f := lookUp(id)
	if f == nil {
		return refuse(unix.ENODEV, "%d is no interface: register it first", id)
	}
	return C.int64_t(f.slot)
}
