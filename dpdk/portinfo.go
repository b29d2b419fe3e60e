package dpdk

/*
#include <errno.h>
#include "eal.h"
#include "ethdev.h"
#include "port.h"
*/
import "C"

import "syscall"

// PortInfo is what a port is and can do.
type PortInfo struct {
	Driver                   string
	MaxRxQueues, MaxTxQueues int   // that the port can have
	RxQueues, TxQueues       int   // and has
	RxOffers, TxOffers       Flags // checksum work the port can do: RxIPGood, RxL4Good; TxIPSum, TxTCPSum, TxUDPSum
	RxOffload, TxOffload     Flags // and does as it is configured
	MinMTU, MaxMTU, MTU      int
	Socket                   int // NUMA socket, -1: unknown
	MAC                      [6]byte
	LinkUp                   bool
	SpeedMbps                int // 0: unknown
}

// PortStats are the port's own counters since it was started. Drivers differ in how much they count.
type PortStats struct {
	RxFrames, TxFrames, RxBytes, TxBytes uint64
	RxMissed                             uint64 // dropped by the port because its queue was full
	RxErrors, TxErrors                   uint64
	RxNoMbuf                             uint64 // receive found the pool empty
	TxUnsendable                         uint64 // dropped by lanes: the driver refuses such a frame for good
}

// Info is what the port is and can do, as of now.
func (p *Port) Info() PortInfo {
	info, _ := p.info()
	return info
}

func (p *Port) info() (PortInfo, error) {
	var c C.struct_ndpip_port_info
	var step *C.char
	mark := C.ndpip_log_mark()
	if ret := C.ndpip_port_info(C.uint16_t(p.id), &c, &step); ret != 0 {
		return PortInfo{}, p.errorf(C.GoString(step), int(ret), mark, "")
	}
	return PortInfo{
		Driver:      C.GoString(&c.driver[0]),
		MaxRxQueues: int(c.max_rxq), MaxTxQueues: int(c.max_txq),
		RxQueues: int(c.rxq), TxQueues: int(c.txq),
		RxOffers: Flags(c.rx_can), TxOffers: Flags(c.tx_can),
		RxOffload: Flags(c.rx_on), TxOffload: Flags(c.tx_on),
		MinMTU: int(c.min_mtu), MaxMTU: int(c.max_mtu), MTU: int(c.mtu),
		Socket: int(c.socket), MAC: p.addr(gomac(c.mac)), LinkUp: c.up != 0, SpeedMbps: int(c.speed),
	}, nil
}

// addr is the port's address, given the driver's.
func (p *Port) addr(driver [6]byte) [6]byte {
	if p.mac != [6]byte{} {
		return p.mac
	}
	return driver
}

func gomac(c [6]C.uint8_t) (m [6]byte) {
	for i, x := range c {
		m[i] = byte(x)
	}
	return m
}

// MAC is the port's address.
func (p *Port) MAC() [6]byte { return p.mac }

// SetMAC changes the port's address. Some virtual ports have none that could be changed, or none at all: what they
// deliver does not depend on it, so the address is kept here.
func (p *Port) SetMAC(mac [6]byte) error {
	mark := C.ndpip_log_mark()
	if mac[0]&1 != 0 || mac == [6]byte{} {
		return p.errorf("rte_eth_dev_default_mac_addr_set", int(syscall.EINVAL), mark, "a port's address is not a multicast address, and not all zero")
	}
	var c [6]C.uint8_t
	for i, x := range mac {
		c[i] = C.uint8_t(x)
	}
	ret := C.ndpip_port_set_mac(C.uint16_t(p.id), &c[0])
	if ret != 0 && ret != -C.ENOTSUP {
		return p.errorf("rte_eth_dev_default_mac_addr_set", int(ret), mark, "")
	}
	if ret != 0 {
		_ = C.rte_eth_promiscuous_enable(C.uint16_t(p.id)) // if it filters at all, it is not to
	}
	p.mac = mac
	return nil
}

// MTU is the port's MTU: the largest IP packet.
func (p *Port) MTU() int {
	var mtu C.uint16_t
	if C.rte_eth_dev_get_mtu(C.uint16_t(p.id), &mtu) != 0 {
		return 1500
	}
	return int(mtu)
}

// SetMTU changes the port's MTU. Most drivers want the port to be stopped.
func (p *Port) SetMTU(mtu int) error {
	mark := C.ndpip_log_mark()
	if ret := C.rte_eth_dev_set_mtu(C.uint16_t(p.id), C.uint16_t(mtu)); ret != 0 {
		return p.errorf("rte_eth_dev_set_mtu", int(ret), mark, "")
	}
	return nil
}

// LinkUp reports whether the port has a peer.
func (p *Port) LinkUp() bool { return C.ndpip_port_link(C.uint16_t(p.id)) == 1 }

// Stats are the port's counters.
func (p *Port) Stats() (PortStats, error) {
	var c C.struct_ndpip_port_stats
	mark := C.ndpip_log_mark()
	if ret := C.ndpip_port_stats(C.uint16_t(p.id), &c); ret != 0 {
		return PortStats{}, p.errorf("rte_eth_stats_get", int(ret), mark, "")
	}
	return PortStats{
		RxFrames: uint64(c.rx_frames), TxFrames: uint64(c.tx_frames),
		RxBytes: uint64(c.rx_bytes), TxBytes: uint64(c.tx_bytes),
		RxMissed: uint64(c.rx_missed), RxErrors: uint64(c.rx_errors), TxErrors: uint64(c.tx_errors),
		RxNoMbuf: uint64(c.rx_no_mbuf), TxUnsendable: p.unsendable(),
	}, nil
}
