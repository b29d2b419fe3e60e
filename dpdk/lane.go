package dpdk

/*
#cgo noescape ndpip_exchange
#cgo nocallback ndpip_exchange
#include "eal.h"
#include "port.h"
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// portLane is a lane over a DPDK port.
type portLane struct {
	Lane
	c    *C.struct_ndpip_block
	port *Port
}

// lanes finds the lane of a block, for whoever has only the Lane, or a copy of it.
var lanes = struct {
	sync.Mutex
	of map[*Block]*portLane
}{of: map[*Block]*portLane{}}

func laneOf(l *Lane) *portLane {
	if l == nil || l.Block == nil {
		return nil
	}
	lanes.Lock()
	defer lanes.Unlock()
	return lanes.of[l.Block]
}

// dpdkDriver is the Driver of every such lane: the block says the rest.
type dpdkDriver struct{ hz uint64 }

// Exchange is the one call into C per burst. The block lies in C memory and holds numbers only, so the call checks no
// pointers; C neither keeps it nor calls back, which the directives above say to the compiler.
func (dpdkDriver) Exchange(b *Block, op Op) {
	C.ndpip_exchange((*C.struct_ndpip_block)(unsafe.Pointer(b)), C.uint32_t(op))
}

func (d dpdkDriver) Hz() uint64 { return d.hz }

// OwnTSC is by rte_rdtsc, which the shim calls.
func (dpdkDriver) OwnTSC() {}

// NewLane makes a lane that receives on queue rxq (-1: it does not receive), sends on queue txq, and takes its empty
// buffers from txPool (nil: OpStock does nothing). A receive queue belongs to one lane. Lanes may share a transmit
// queue, also one that the port has not (it stands for queue txq modulo their number): they then take turns by a
// spinlock. Make all lanes of a port before any of them is used.
func (p *Port) NewLane(rxq, txq int, txPool *Mempool) (*Lane, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	mark := C.ndpip_log_mark()
	bad := func(hint string) (*Lane, error) {
		return nil, p.errorf("NewLane", int(syscall.EINVAL), mark, hint)
	}
	info, err := p.info()
	if err != nil {
		return nil, err
	}
	if info.TxQueues == 0 {
		return bad("the port is not configured, or closed")
	}
	if txq < 0 {
		return bad(fmt.Sprintf("transmit queue %d: the port has queues 0 to %d", txq, info.TxQueues-1))
	}
	if rxq >= info.RxQueues {
		return bad(fmt.Sprintf("receive queue %d: the port has queues 0 to %d, and -1 stands for none", rxq, info.RxQueues-1))
	}
	for _, l := range p.lanes {
		if rxq >= 0 && l.c.priv.has_rx != 0 && int(l.c.priv.rxq) == rxq {
			return bad(fmt.Sprintf("receive queue %d belongs to another lane already", rxq))
		}
	}
	q := uint16(txq % info.TxQueues)
	var mp *C.struct_rte_mempool
	if txPool != nil {
		mp = txPool.mp
	}
	var errno C.int
	c := C.ndpip_lane_new(C.uint16_t(p.id), C.int(rxq), C.uint16_t(q), mp, &errno)
	if c == nil {
		hint := "give DPDK more memory"
		switch syscall.Errno(errno) {
		case syscall.ENOBUFS:
			hint = "the transmit pool is empty"
		case syscall.ENOTSUP:
			hint = "the transmit pool must be made by NewMempool or rte_pktmbuf_pool_create, not over external memory"
		}
		return nil, p.errorf("NewLane", int(errno), mark, hint)
	}
	l := &portLane{c: c, port: p}
	l.Lane = NewLane((*Block)(unsafe.Pointer(c)), dpdkDriver{uint64(C.ndpip_tsc_hz())})
	if err := p.shareQueue(l, q); err != nil {
		C.ndpip_lane_free(c)
		return nil, err
	}
	p.lanes = append(p.lanes, l)
	lanes.Lock()
	lanes.of[l.Block] = l
	lanes.Unlock()
	return &l.Lane, nil
}

// shareQueue gives every lane of transmit queue q the queue's lock when there is, or will be, more than one.
func (p *Port) shareQueue(l *portLane, q uint16) error {
	lock := p.locks[q]
	others := false
	for _, o := range p.lanes {
		others = others || uint16(o.c.priv.txq) == q
	}
	if !others && !p.share && lock == nil {
		return nil
	}
	if lock == nil {
		lock = C.ndpip_lock_new()
		if lock == nil {
			return p.errorf("rte_zmalloc", int(syscall.ENOMEM), C.ndpip_log_mark(), "give DPDK more memory")
		}
		p.locks[q] = lock
		for _, o := range p.lanes {
			if uint16(o.c.priv.txq) == q {
				o.c.priv.lock = C.uint64_t(uintptr(lock))
			}
		}
	}
	l.c.priv.lock = C.uint64_t(uintptr(lock))
	return nil
}

// FreeLane returns every buffer that the lane holds (lists, stock, what Inject holds back) and frees its memory. The lane must
// not be used afterwards. Port.Close does the same for the lanes that are left.
func FreeLane(l *Lane) {
	pl := laneOf(l)
	if pl == nil {
		return
	}
	pl.port.mu.Lock()
	defer pl.port.mu.Unlock()
	pl.port.freeLane(pl)
	l.Block = nil
}

func (p *Port) freeLane(l *portLane) {
	i := slices.Index(p.lanes, l)
	if i < 0 {
		return
	}
	p.lanes = slices.Delete(p.lanes, i, i+1)
	lanes.Lock()
	delete(lanes.of, l.Block)
	lanes.Unlock()
	if f, ok := l.drv.(*faulty); ok {
		f.giveBack(l.Block)
	}
	C.ndpip_lane_free(l.c)
	l.c, l.Block = nil, nil
}

// unsendable adds up what the lanes had to drop.
func (p *Port) unsendable() (n uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lanes {
		n += uint64(l.c.priv.tx_bad)
	}
	return n
}

// inBurst is the word by which a lane says that it is in the driver (gate.h).
func inBurst(l *Lane) *atomic.Uint64 {
	return (*atomic.Uint64)(unsafe.Pointer(&laneOf(l).c.priv.in_burst))
}
