package api

import (
	"fmt"
	"sync"
	"time"

	"ndpip/dpdk"
	"ndpip/stack"
)

// Link is a port that the program has set up itself, and the part of it that is the stack's. The program starts, stops
// and closes the port: it runs before OpenLink and until after Stop. Nobody else may use the queues meanwhile.
type Link struct {
	Port     *dpdk.Port    // of dpdk.AttachPort, or dpdk.ConfigurePort and Start
	RxQueue  int           // that the stack receives on
	TxQueues [2]int        // that the application and the worker send on; equal: they take turns by a lock
	Pool     *dpdk.Mempool // what the application sends lies in its buffers; nil: the host makes it
	Control  *dpdk.Mempool // and the worker's ACKs in this one's; nil: Pool, if given

	// RxBuffers is how many buffers the pool has that the queue is filled from: data that nobody reads are held in three
	// quarters of them, at most. 0: the port's record, if it keeps one, and else no limit.
	RxBuffers int
	// Launch starts work on a thread that the program gives for it, and returns; work is the worker, and ends in Stop.
	// nil: a new thread.
	Launch func(work func()) error
}

// OpenLink is Open for a port that the program runs by itself. Of the Config, what makes and configures a port does not
// count: Wire, EAL, NoHuge, Port, KeepEAL. MAC is the port's own unless it is given.
func OpenLink(cfg Config, l Link) (*Host, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if l.Port == nil {
		return nil, &ConfigError{"Link.Port", "want a port, as dpdk.AttachPort gives it"}
	}
	p := &linkedPort{port: l.Port, rxq: l.RxQueue}
	h, err := openLink(cfg, l, p)
	if err != nil {
		_ = p.release()
		return nil, err
	}
	return h, nil
}

func openLink(cfg Config, l Link, p *linkedPort) (*Host, error) {
	mbufs := or(cfg.Mbufs, defaultMbufs)
	pool, control := l.Pool, l.Control
	var err error
	if pool == nil {
		if pool, err = p.pool(mbufs, dataRoom(&cfg)); err != nil {
			return nil, err
		}
	}
	if control == nil {
		if control = l.Pool; control == nil {
			if control, err = p.pool(ctlMbufs, dataRoom(&cfg)); err != nil {
				return nil, err
			}
		}
	}
	if l.RxBuffers == 0 {
		if rx := l.Port.RxPool(l.RxQueue); rx != nil {
			l.RxBuffers = rx.Size()
		}
	}
	if p.app, err = l.Port.NewLane(-1, l.TxQueues[0], pool); err != nil {
		return nil, &EnvError{"port", err}
	}
	if p.worker, err = l.Port.NewLane(l.RxQueue, l.TxQueues[1], control); err != nil {
		return nil, &EnvError{"port", err}
	}
	info, sc := l.Port.Info(), stackConfig(&cfg)
	sc.MAC = stack.MAC(info.MAC)
	if cfg.MAC != nil {
		sc.MAC = stack.MAC(cfg.MAC)
	}
	if sc.MTU = cfg.MTU; sc.MTU == 0 {
		sc.MTU = min(max(info.MTU, 576), pool.DataRoom()-128-14, control.DataRoom()-128-14)
	}
	sc.Offload, sc.RxBuffers, sc.TxBuffers = info.TxOffload, l.RxBuffers, pool.Size()
	return newHost(cfg, stack.New(sc, *p.worker, *p.app), p, l.Launch)
}

// linkedPort is a program's port as a host's device: of it there are the two lanes, and pools.
type linkedPort struct {
	port        *dpdk.Port
	rxq         int
	worker, app *dpdk.Lane
	after       func() error // ends what the port stands on

	mu    sync.Mutex // guards what follows: statistics may be asked for while the host stops
	pools []*dpdk.Mempool
	gone  bool
}

// spare are pools of stopped hosts. Their buffers may still lie in the queue of a port that goes on, so the memory is
// never given back; the next host takes them over.
var spare struct {
	sync.Mutex
	pools []*dpdk.Mempool
}

func (p *linkedPort) pool(n, room int) (*dpdk.Mempool, error) {
	spare.Lock()
	defer spare.Unlock()
	for i, m := range spare.pools {
		if m.Size() == n && m.DataRoom() == room {
			spare.pools = append(spare.pools[:i], spare.pools[i+1:]...)
			p.pools = append(p.pools, m)
			return m, nil
		}
	}
	m, err := dpdk.NewMempool(fmt.Sprintf("ndpip_link%d", opened.Add(1)), n, room, dpdk.PrivSize, -1)
	if err != nil {
		return nil, &EnvError{"memory for packets", err}
	}
	p.pools = append(p.pools, m)
	return m, nil
}

func (p *linkedPort) stats() (drops uint64, inUse int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return 0, 0
	}
	if s, err := p.port.Stats(); err == nil {
		drops = s.RxMissed + s.RxNoMbuf
	}
	for _, m := range p.pools {
		inUse += m.InUse()
	}
	return drops, inUse
}

func (p *linkedPort) sleeper() (*dpdk.Sleeper, error) { return p.port.NewSleeper(p.rxq) }

func (p *linkedPort) linkUp() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.gone && p.port.LinkUp()
}

// settle is how long release waits for the port to let go of the last frames.
const settle = 100 * time.Millisecond

func (p *linkedPort) release() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	dpdk.FreeLane(p.app)
	dpdk.FreeLane(p.worker)
	var err error
	if p.after != nil {
		err = p.after()
	}
	for end := time.Now().Add(settle); p.inUse() > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	spare.Lock()
	defer spare.Unlock()
	spare.pools = append(spare.pools, p.pools...)
	p.pools = nil
	return err
}

func (p *linkedPort) inUse() (n int) {
	for _, m := range p.pools {
		n += m.InUse()
	}
	return n
}
