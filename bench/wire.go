package main

import (
	"fmt"
	"net/netip"
	"runtime"

	"ndpip/dpdk"
	"ndpip/stack"
)

// eal starts DPDK once, and makes this thread an lcore.
func eal() error {
	runtime.LockOSThread()
	if _, err := dpdk.EalInit(append(dpdk.DefaultArgs(!dpdk.HasHugepages(), 512, ""), "--no-pci")); err != nil {
		return err
	}
	_, err := dpdk.RegisterLcore(-1)
	return err
}

// side is one end of a net_ring pair.
type side struct {
	port  *dpdk.Port
	pools []*dpdk.Mempool
	lanes []*dpdk.Lane
	*stack.Stack
}

var pairs int

// ringPair makes two ports joined by rings in this process.
func ringPair() (a, b *side, err error) {
	pairs++
	ia, ib, err := dpdk.RingPair(fmt.Sprintf("bench%d", pairs), 8192)
	if err != nil {
		return nil, nil, err
	}
	if a, err = newSide(ia); err != nil {
		return nil, nil, err
	}
	b, err = newSide(ib)
	return a, b, err
}

func newSide(id uint16) (*side, error) {
	s := &side{}
	for _, k := range []struct {
		name string
		n    int
	}{{"rx", 2047}, {"tx", 65535}, {"ctl", 1023}} {
		p, err := dpdk.NewMempool(fmt.Sprintf("%s%d", k.name, id), k.n, dpdk.DataRoom, dpdk.PrivSize, -1)
		if err != nil {
			return nil, err
		}
		s.pools = append(s.pools, p)
	}
	var err error
	if s.port, err = dpdk.ConfigurePort(id, dpdk.PortConf{RxQueues: 1, TxQueues: 1, RxPool: s.pools[0]}); err != nil {
		return nil, err
	}
	app, err := s.port.NewLane(-1, 0, s.pools[1])
	if err != nil {
		return nil, err
	}
	worker, err := s.port.NewLane(0, 0, s.pools[2])
	if err != nil {
		return nil, err
	}
	s.lanes = []*dpdk.Lane{worker, app}
	return s, s.port.Start()
}

// stacks puts a stack on each end.
func stacks(a, b *side, cfg stack.Config) {
	for i, s := range []*side{a, b} {
		c := cfg
		c.MAC = stack.MAC{2, 0, 0, 0, 0, byte(1 + i)} // net_ring ports have none of their own
		c.Addr = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)}), 24)
		s.Stack = stack.New(c, *s.lanes[0], *s.lanes[1])
	}
}
