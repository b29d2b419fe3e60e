package main

import (
	"fmt"
	"net/netip"
	"os"
	"runtime"

	"ndpip/dpdk"
	"ndpip/stack"
)

// start starts DPDK, makes this thread an lcore, and makes the port pair of the floor loop.
func (e *env) start() (err error) {
	runtime.LockOSThread()
	noHuge, mb := !dpdk.HasHugepages(), 0
	if noHuge {
		mb = 768
		e.out.printf("no hugepages: all rows are slower, the floor too (go run ./cmd/dev doctor says how to get them)")
	}
	if _, err := dpdk.EalInit(append(dpdk.DefaultArgs(noHuge, mb, fmt.Sprintf("ndpip-bench-%d", os.Getpid())), "--no-pci")); err != nil {
		return err
	}
	if _, err := dpdk.RegisterLcore(-1); err != nil {
		return err
	}
	e.pair, err = ringPair()
	return err
}

func (e *env) stop() {
	e.pair.close()
	dpdk.UnregisterLcore()
	_ = dpdk.EalCleanup()
}

// side is a port with its pools and lanes, and the stack on it if there is one.
type side struct {
	port        *dpdk.Port
	pools       []*dpdk.Mempool
	worker, app *dpdk.Lane
	*stack.Stack
}

// pair is two ports joined by net_ring, in this process.
type pair struct{ a, b *side }

var pairs int

func ringPair() (*pair, error) {
	pairs++
	ia, ib, err := dpdk.RingPair(fmt.Sprintf("bench%d", pairs), 8192)
	if err != nil {
		return nil, err
	}
	p := &pair{}
	if p.a, err = newSide(ia); err != nil {
		return nil, err
	}
	if p.b, err = newSide(ib); err != nil {
		p.a.close()
		return nil, err
	}
	return p, nil
}

// newSide opens a port. The receive pool is small: over net_ring a frame arrives in the sender's own buffer.
func newSide(id uint16) (*side, error) {
	s := &side{}
	for _, k := range []struct {
		name string
		n    int
	}{{"rx", 1023}, {"tx", 8191}, {"ctl", 1023}} {
		p, err := dpdk.NewMempool(fmt.Sprintf("bench_%s%d_%d", k.name, pairs, id), k.n, dpdk.DataRoom, dpdk.PrivSize, -1)
		if err != nil {
			return nil, err
		}
		s.pools = append(s.pools, p)
	}
	var err error
	if s.port, err = dpdk.ConfigurePort(id, dpdk.PortConf{RxQueues: 1, TxQueues: 1, RxPool: s.pools[0]}); err != nil {
		return nil, err
	}
	if s.app, err = s.port.NewLane(-1, 0, s.pools[1]); err != nil {
		return nil, err
	}
	if s.worker, err = s.port.NewLane(0, 0, s.pools[2]); err != nil {
		return nil, err
	}
	return s, s.port.Start()
}

// close gives the port and its memory back. Frames that a ring still holds go with the port, so the pools come last.
func (p *pair) close() {
	for _, s := range []*side{p.a, p.b} {
		if s.Stack != nil {
			s.AbortAll()
			for range 4 {
				p.a.Turn()
				p.b.Turn()
			}
		}
	}
	p.a.closePort()
	p.b.closePort()
	p.a.freePools()
	p.b.freePools()
}

func (s *side) close() {
	s.closePort()
	s.freePools()
}

func (s *side) closePort() {
	_ = s.port.Stop()
	dpdk.FreeLane(s.app)
	dpdk.FreeLane(s.worker)
	_ = s.port.Close()
}

func (s *side) freePools() {
	for _, p := range s.pools {
		p.Free()
	}
}

// sums maps a row's word to the stack's.
func sums(word string) stack.Checksum {
	if word == "software" {
		return stack.ChecksumSoftware
	}
	return stack.ChecksumOff
}

// stackPair is a port pair with a stack on each end. archive is stack.Config's.
func (e *env) stackPair(checksum string, archive int) (*pair, error) {
	return e.stackPairWith(stack.Config{Checksum: sums(checksum), Archive: archive})
}

// stackPairWith is stackPair with all that a configuration says but the addresses.
func (e *env) stackPairWith(cfg stack.Config) (*pair, error) {
	p, err := ringPair()
	if err != nil {
		return nil, err
	}
	for i, s := range []*side{p.a, p.b} {
		cfg.MAC = stack.MAC{2, 0, 0, 0, 0, byte(1 + i)} // net_ring ports have none of their own
		cfg.Addr = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)}), 24)
		s.Stack = stack.New(cfg, *s.worker, *s.app)
		e.watch(fmt.Sprintf("counters of stack %c", 'A'+i), func() string { return fmt.Sprintf("%+v", s.Counters()) })
	}
	return p, nil
}

// both is the counters of both stacks, for errors.
func (p *pair) both() string {
	return fmt.Sprintf("\n  A: %+v\n  B: %+v", p.a.Counters(), p.b.Counters())
}
