package api

import (
	"fmt"
	"sync"

	"ndpip/dpdk"
)

// Feed is the program's end of a host that has no port: the program hands frames in, from its own receive loop, and takes
// frames to send out of it. A Handle is the address of a struct rte_mbuf; a frame is whole, with its Ethernet header.
//
// Buffers belong to one side. What Input takes is the stack's, and goes back to its pool, whichever that is; the rest stays
// the program's. What Output gives is the program's, to send or to free, but not to write to: the stack keeps it, to send it
// once more if it gets lost. What the stack has not fetched when the host stops is freed.
type Feed struct {
	in, out      sync.Mutex
	ours, theirs *dpdk.Port // the ends of a pair of rings
	pool         *dpdk.Mempool
	kick         func() // wakes the stack's thread, if it sleeps
	gone         bool   // under both locks
}

// feedSize is how many frames wait at most, each way.
const feedSize = 1024

// OpenFeed is Open for a program that moves the frames itself; DPDK runs. Of the Config, what makes and configures a port does
// not count. Frames that nobody reads are held for three quarters of Config.Mbufs, at most.
func OpenFeed(cfg Config) (*Host, *Feed, error) {
	if err := cfg.check(); err != nil {
		return nil, nil, err
	}
	f := &Feed{}
	p := &linkedPort{after: f.close}
	h, err := f.open(cfg, p)
	if err != nil {
		_ = p.release()
		return nil, nil, err
	}
	f.kick = h.st.Kick
	return h, f, nil
}

func (f *Feed) open(cfg Config, p *linkedPort) (*Host, error) {
	a, b, err := dpdk.RingPair(fmt.Sprintf("feed%d", opened.Add(1)), feedSize)
	if err != nil {
		return nil, &EnvError{"feed", err}
	}
	// The ports want a pool to receive into, which rings never use.
	if f.pool, err = dpdk.NewMempool(fmt.Sprintf("ndpip_feed%d", a), 63, dataRoom(&cfg), dpdk.PrivSize, -1); err != nil {
		return nil, &EnvError{"memory for packets", err}
	}
	for _, end := range []struct {
		id   uint16
		port **dpdk.Port
	}{{a, &f.ours}, {b, &f.theirs}} {
		if *end.port, err = dpdk.ConfigurePort(end.id, dpdk.PortConf{RxPool: f.pool}); err == nil {
			err = (*end.port).Start()
		}
		if err != nil {
			return nil, &EnvError{"feed", err}
		}
	}
	p.port = f.ours
	return openLink(cfg, Link{Port: f.ours, RxBuffers: or(cfg.Mbufs, defaultMbufs)}, p)
}

// Input hands frames to the stack and returns how many it takes: the first ones. When its queue is full it takes fewer.
func (f *Feed) Input(frames []dpdk.Handle) int {
	f.in.Lock()
	defer f.in.Unlock()
	if f.gone {
		return 0
	}
	n := f.theirs.TxBurst(0, frames)
	f.kick()
	return n
}

// Output takes frames that the stack sends, at most len(frames), and returns how many there were.
func (f *Feed) Output(frames []dpdk.Handle) int {
	f.out.Lock()
	defer f.out.Unlock()
	if f.gone {
		return 0
	}
	return f.theirs.RxBurst(0, frames)
}

// close ends the feed, with the frames that lie in it.
func (f *Feed) close() error {
	f.in.Lock()
	defer f.in.Unlock()
	f.out.Lock()
	defer f.out.Unlock()
	f.gone = true
	var first error
	for _, p := range []*dpdk.Port{f.ours, f.theirs} {
		if p != nil {
			if err := p.Close(); first == nil {
				first = err
			}
		}
	}
	if f.pool != nil {
		f.pool.Free()
	}
	return first
}
