package dpdk

/*
#include <errno.h>
#include <stdlib.h>
#include "eal.h"
#include "ethdev.h"
#include "gate.h"
#include "port.h"
*/
import "C"

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"unsafe"
)

// Port is an Ethernet device that this process uses. Its methods may be called from any goroutine, one at a time; the
// frames go through Lanes.
type Port struct {
	id     uint16
	name   string
	driver string
	mac    [6]byte
	owned  bool // configured here: Close closes the device
	keep   bool // unless it is the program's

	mu      sync.Mutex
	started bool
	lanes   []*portLane
	locks   map[uint16]unsafe.Pointer // spinlocks of transmit queues that lanes share
	share   bool                      // fewer transmit queues than were asked for: every lane locks from the start
}

// PortConf says how a port is to be set up. Zero values are sensible except RxPool.
type PortConf struct {
	RxQueues, TxQueues int // wanted, at least 1 each; the port may have fewer (see Port.Queues)
	RxDesc, TxDesc     int // descriptors per queue, 0: up to 1024; the driver rounds them
	MTU                int // 0: the port's own
	RxPool             *Mempool
	Offload            bool // switch on the checksum offloads that the port has
	MAC                *[6]byte
	Promiscuous        bool
	Interrupts         bool // have the receive queues tell of frames, where the driver can (see NewSleeper)
	Keep               bool // the device is the program's: Close leaves it there, stopped, for another Start or ConfigurePort
}

// PortCount is how many ports there are.
func PortCount() int { return int(C.rte_eth_dev_count_avail()) }

// PortByName finds a port by the name of its device, such as net_memif0 or 0000:03:00.0.
func PortByName(name string) (uint16, error) {
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	var id C.uint16_t
	// A driver that fails half-way may leave the name behind, with no port to it.
	if ret := C.rte_eth_dev_get_port_by_name(cname, &id); ret != 0 || C.rte_eth_dev_is_valid_port(id) == 0 {
		// The EAL starts without a device that fails to come up; what it logged then is the reason.
		e := &Error{Call: "rte_eth_dev_get_port_by_name", What: name, Errno: syscall.ENODEV, Text: strerror(syscall.ENODEV), Hint: havePorts()}
		if log := LogTail(); strings.Contains(log, name) {
			e.Reason = log
		}
		e.Hint = missingHint(name, e.Reason, e.Hint)
		return 0, e
	}
	return uint16(id), nil
}

// PortName is the name of the device behind a port.
func PortName(id uint16) (string, error) {
	var buf [C.NDPIP_ETH_NAME_MAX_LEN]C.char
	if ret := C.rte_eth_dev_get_name_by_port(C.uint16_t(id), &buf[0]); ret != 0 || C.rte_eth_dev_is_valid_port(C.uint16_t(id)) == 0 {
		return "", &Error{Call: "rte_eth_dev_get_name_by_port", What: fmt.Sprintf("port %d", id), Errno: syscall.ENODEV, Text: strerror(syscall.ENODEV), Hint: havePorts()}
	}
	return C.GoString(&buf[0]), nil
}

// missingHint says what most often keeps a port from coming up; other is what to say else.
func missingHint(name, reason, other string) string {
	root := os.Geteuid() == 0
	_, isPCI := pciAddress(name)
	switch {
	case isPCI:
		return "no device at this address is bound to a driver that DPDK can use: bind it to vfio-pci (dpdk-devbind.py --status shows them)"
	case reason == "":
		return other
	case strings.HasPrefix(name, "net_memif"):
		return "the socket's directory must exist, and this user must be able to write to it"
	case strings.HasPrefix(name, "net_tap") && !root:
		return "making a tap needs root, or CAP_NET_ADMIN"
	case strings.HasPrefix(name, "net_af_") && !root:
		return "this port needs root, or CAP_NET_RAW (af_packet), CAP_NET_ADMIN and CAP_BPF (af_xdp)"
	case strings.HasPrefix(name, "net_af_"):
		return "the interface must exist in this network namespace"
	}
	return "the device did not come up"
}

// havePorts lists the ports for an error's hint.
func havePorts() string {
	var names []string
	for id := uint16(0); id < C.RTE_MAX_ETHPORTS; id++ {
		if C.rte_eth_dev_is_valid_port(C.uint16_t(id)) != 0 {
			name, _ := PortName(id)
			names = append(names, fmt.Sprintf("%d (%s)", id, name))
		}
	}
	if len(names) == 0 {
		return "there is no port: name one with --vdev or -a among the EAL's arguments"
	}
	return "the ports are " + strings.Join(names, ", ")
}

func (p *Port) errorf(call string, errno int, mark C.uint64_t, hint string) error {
	return dpdkError(call, fmt.Sprintf("port %d, %s", p.id, p.name), errno, mark, hint)
}

// ConfigurePort sets a port up: queues, offloads, MTU, address. Start lets frames flow.
func ConfigurePort(id uint16, conf PortConf) (*Port, error) {
	name, err := PortName(id)
	if err != nil {
		return nil, err
	}
	p := &Port{id: id, name: name, owned: true, keep: conf.Keep, locks: map[uint16]unsafe.Pointer{}}
	mark := C.ndpip_log_mark()
	info, err := p.info()
	if err != nil {
		return nil, err
	}
	p.driver = info.Driver
	bad := func(hint string) (*Port, error) {
		return nil, p.errorf("ConfigurePort", int(syscall.EINVAL), mark, hint)
	}
	if conf.RxPool == nil {
		return bad("PortConf.RxPool must name the pool that received frames come from")
	}
	if conf.MTU != 0 {
		if conf.MTU < 68 || conf.MTU < info.MinMTU || info.MaxMTU > 0 && conf.MTU > info.MaxMTU {
			return bad(fmt.Sprintf("the MTU %d is not in the port's range of %d to %d", conf.MTU, max(68, info.MinMTU), info.MaxMTU))
		}
		// Ethernet header and one VLAN tag beyond the MTU; the drivers here put a frame into one buffer.
		if room := conf.RxPool.DataRoom() - C.RTE_PKTMBUF_HEADROOM; conf.MTU+18 > room {
			return bad(fmt.Sprintf("the MTU %d needs buffers of %d bytes, the receive pool has %d: make it with dataRoom %d",
				conf.MTU, conf.MTU+18, room, conf.MTU+18+C.RTE_PKTMBUF_HEADROOM))
		}
	}
	want := [2]int{max(conf.RxQueues, 1), max(conf.TxQueues, 1)}
	rxq := min(want[0], max(info.MaxRxQueues, 1))
	txq := min(want[1], max(info.MaxTxQueues, 1))
	if info.Driver == "net_memif" || info.Driver == "net_tap" {
		// net_memif: a transmit queue that the peer has no receive queue for leads nowhere, and both ends are set up
		// alike. net_tap: a queue is one file descriptor for both ways.
		txq = min(txq, rxq)
		rxq = txq
	}
	p.share = txq < want[1]
	cc := C.struct_ndpip_port_conf{
		rxq: C.uint16_t(rxq), txq: C.uint16_t(txq),
		rx_desc: descriptors(conf.RxDesc, conf.RxPool.Size()/rxq), tx_desc: descriptors(conf.TxDesc, 1<<20),
		mtu: C.uint16_t(conf.MTU), offload: cbool(conf.Offload), promiscuous: cbool(conf.Promiscuous),
		interrupts: cbool(conf.Interrupts),
		pool:       conf.RxPool.mp,
	}
	var step *C.char
	C.ndpip_gate_reset(C.uint16_t(id), 1)
	signals := C.ndpip_signals_before()
	ret := C.ndpip_port_configure(C.uint16_t(id), &cc, &step)
	C.ndpip_signals_after(signals)
	if ret != 0 {
		hint := ""
		if need := int(cc.rx_desc) * rxq; ret == -C.ENOMEM && need >= conf.RxPool.Size() {
			hint = fmt.Sprintf("the receive pool has %d buffers, and the receive queues take up to %d: make it larger, or ask for fewer descriptors", conf.RxPool.Size(), need)
		}
		return nil, p.errorf(C.GoString(step), int(ret), mark, hint)
	}
	switch {
	case conf.MAC != nil:
		err = p.SetMAC(*conf.MAC)
	case info.MAC == [6]byte{}:
		p.mac = [6]byte{2, 'N', 'D', 'P', byte(id >> 8), byte(id)} // locally administered
	default:
		p.mac = info.MAC
	}
	if err == nil {
		err = p.guard()
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// descriptors is how many a queue is to have: n, or else up to 1024. Receive descriptors hold a buffer each, so of the
// buffers that there are for the queue, at most half.
func descriptors(n, buffers int) C.uint16_t {
	if n <= 0 {
		n = 1024
		for n > buffers/2 && n > 32 {
			n /= 2
		}
	}
	return C.uint16_t(min(n, 32768))
}

func cbool(b bool) C.uint8_t {
	if b {
		return 1
	}
	return 0
}

// AttachPort takes a port that the program has configured and started itself. Start, Stop and Close leave the device alone.
func AttachPort(id uint16) (*Port, error) {
	name, err := PortName(id)
	if err != nil {
		return nil, err
	}
	p := &Port{id: id, name: name, locks: map[uint16]unsafe.Pointer{}}
	info, err := p.info()
	if err != nil {
		return nil, err
	}
	if info.TxQueues == 0 {
		return nil, p.errorf("AttachPort", int(syscall.EINVAL), C.ndpip_log_mark(), "the port is not configured: call rte_eth_dev_configure, or ConfigurePort")
	}
	p.driver, p.mac, p.started = info.Driver, info.MAC, true
	C.ndpip_gate_reset(C.uint16_t(id), 0)
	if err := p.guard(); err != nil {
		return nil, err
	}
	return p, nil
}

// Start lets frames flow. A net_memif client connects now, and gets an error when the server is not there yet: it may
// call Start again. (LinkUp tells when the two have agreed.)
func (p *Port) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started {
		return nil
	}
	if err := p.guard(); err != nil { // Close has ended it, for a port that was kept
		return err
	}
	mark := C.ndpip_log_mark()
	if ret := C.rte_eth_dev_start(C.uint16_t(p.id)); ret != 0 {
		if p.driver == "net_memif" {
			return p.errorf("rte_eth_dev_start", int(syscall.ECONNREFUSED), mark, "the server side must be running first; then call Start again")
		}
		return p.errorf("rte_eth_dev_start", int(ret), mark, "")
	}
	C.ndpip_gate_open(C.uint16_t(p.id))
	p.started = true
	return nil
}

// Stop ends the flow of frames. Lanes may be in use: their exchanges then move nothing until Start. A port that was
// attached is left to the program that started it.
func (p *Port) Stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stop()
}

func (p *Port) stop() error {
	if !p.started || !p.owned {
		return nil
	}
	C.ndpip_gate_shut(C.uint16_t(p.id))
	p.started = false
	defer holdInterrupts(p.id)()
	mark := C.ndpip_log_mark()
	if ret := C.rte_eth_dev_stop(C.uint16_t(p.id)); ret != 0 {
		return p.errorf("rte_eth_dev_stop", int(ret), mark, "")
	}
	return nil
}

// Close frees the port's lanes and, unless it was attached, stops and closes the device: the port's number is gone then,
// unless PortConf.Keep was set. No lane may be in use.
func (p *Port) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.stop()
	for len(p.lanes) > 0 {
		p.freeLane(p.lanes[0])
	}
	for _, l := range p.locks {
		C.ndpip_lock_free(l)
	}
	clear(p.locks)
	defer unguard(p.id)
	if !p.owned || p.keep || err != nil {
		return err
	}
	defer holdInterrupts(p.id)()
	mark := C.ndpip_log_mark()
	if ret := C.rte_eth_dev_close(C.uint16_t(p.id)); ret != 0 {
		return p.errorf("rte_eth_dev_close", int(ret), mark, "")
	}
	p.owned = false
	ringPortClosed(p.id, p.name)
	return nil
}

// ID is the port's number.
func (p *Port) ID() uint16 { return p.id }

// Name is the name of the port's device.
func (p *Port) Name() string { return p.name }
