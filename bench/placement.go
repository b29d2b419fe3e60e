package main

import (
	"fmt"
	"net/netip"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"ndpip/dpdk"
	"ndpip/stack"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// Who makes the headers and sends: the three placements against each other. inline: the application's thread does all,
// on one CPU. app: it sends what it writes, and a worker on another CPU does the rest. worker: it only enters what it
// writes, and the worker sends too.

type placement struct {
	name    string
	worker  bool // there is one
	workers bool // and it sends
}

var placements = []placement{{"inline", false, false}, {"app", true, false}, {"worker", true, true}}

// farEnd is a peer that costs next to nothing: it acknowledges what was sent when the worker looks next.
type farEnd struct {
	nxt   atomic.Uint32 // what it expects next
	acked uint32
	ack   header
	port  *dpdk.Lane // buffers for what it sends
	copy  []byte     // where it copies what it is sent, as net_memif does; nil: it does not
	at    int
}

// farLane is a lane whose frames go to the far end.
type farLane struct {
	*dpdk.Lane
	far *farEnd
	syn *sink // opens the connection; only the worker's lane has it
}

func (l farLane) Exchange(b *dpdk.Block, op dpdk.Op) {
	if n := b.NTx; op&dpdk.OpTx != 0 && n > 0 {
		l.far.take(b.Tx[:n])
	}
	if l.syn != nil && l.far.nxt.Load() == 0 {
		l.syn.Exchange(b, op)
		return
	}
	l.Lane.Exchange(op)
	if op&dpdk.OpRx != 0 && l.syn != nil {
		b.NRx = uint32(l.far.give(b.Rx[:1]))
	}
}

// take is what the far end does with frames.
func (f *farEnd) take(frames []dpdk.Frame) {
	if f.copy != nil {
		for i := range frames {
			n := int(frames[i].Len)
			if f.at+n > len(f.copy) {
				f.at = 0
			}
			copy(f.copy[f.at:f.at+n], frames[i].Bytes())
			f.at += (n + 63) &^ 63
		}
	}
	for i := len(frames) - 1; i >= 0; i-- {
		b := frames[i].Bytes()
		if n := frames[i].Len; n > headLen && wire.Flags(b[flagsAt])&wire.SYN == 0 {
			seq := uint32(b[seqAt])<<24 | uint32(b[seqAt+1])<<16 | uint32(b[seqAt+2])<<8 | uint32(b[seqAt+3])
			f.nxt.Store(seq + n - headLen)
			return
		}
	}
}

// give makes the acknowledgement that is due.
func (f *farEnd) give(rx []dpdk.Frame) int {
	nxt := f.nxt.Load()
	if nxt == f.acked || nxt == 0 {
		return 0
	}
	if f.port.NStock == 0 {
		f.port.Want = 64
		f.port.Exchange(dpdk.OpStock)
	}
	b, ok := f.port.Take()
	if !ok {
		return 0
	}
	f.acked = nxt
	f.ack.setAck(tcp.Seq(nxt))
	copy(b.Bytes(), f.ack[:headLen])
	b.Len = headLen
	rx[0] = b
	return 1
}

// placed is a sending end in one of the placements.
type placed struct {
	how placement
	*side
	far  *farEnd
	c    *tcp.Conn
	out  []byte
	zero bool
}

func newPlaced(e *env, p point, how placement, costly, zero bool) (*placed, error) {
	pairs++
	device := fmt.Sprintf("net_null%d", pairs)
	if err := dpdk.VdevInit(device, "no-rx=1"); err != nil {
		return nil, err
	}
	id, err := dpdk.PortByName(device)
	if err != nil {
		return nil, err
	}
	s := &placed{how: how, out: make([]byte, burst*p.MSS), zero: zero, far: &farEnd{}}
	if costly {
		s.far.copy = make([]byte, 4<<20)
	}
	if s.side, err = newSide(id); err != nil {
		return nil, err
	}
	if s.far.port, err = s.port.NewLane(-1, 0, s.pools[0]); err != nil {
		return nil, err
	}
	syn := &sink{port: s.worker, bufs: s.far.port, acks: map[uint16]header{}, scale: 5}
	far := netip.MustParseAddr("10.0.2.2")
	s.Stack = stack.New(stack.Config{
		MAC: stack.MAC{2, 0, 0, 0, 2, 1}, Addr: netip.MustParsePrefix("10.0.2.1/24"), Checksum: sums(p.Checksum),
		Neighbours: map[netip.Addr]stack.MAC{far: {2, 0, 0, 0, 2, 2}}, WorkerSends: how.workers,
	}, dpdk.NewLane(s.worker.Block, farLane{s.worker, s.far, syn}), dpdk.NewLane(s.app.Block, farLane{s.app, s.far, nil}))
	e.watch("counters of "+how.name, func() string { return fmt.Sprintf("%+v", s.Counters()) })
	c, errno := s.Connect(0, wire.FromAddr(far), 7, stack.Options{MaxTxSeg: p.MSS}, 1)
	if errno != 0 {
		return nil, errno
	}
	for range 4 {
		s.Turn()
	}
	if c.State() != tcp.Established {
		return nil, fmt.Errorf("the connection is in %v: %+v", c.State(), s.Counters())
	}
	s.c, s.far.ack = c, syn.acks[c.Lport]
	return s, nil
}

func (s *placed) write() (int, syscall.Errno) {
	if !s.zero {
		return s.Send(s.c, s.out)
	}
	var f [burst]dpdk.Frame
	n := s.AllocBufs(f[:])
	for i := range f[:n] {
		f[i].Len = uint32(len(s.out) / burst)
		f[i].Bytes()[0] = byte(i)
	}
	m, e := s.SendBufs(s.c, f[:n])
	if m < n {
		s.FreeBufs(f[m:n], false)
	}
	return m * len(s.out) / burst, e
}

// longRounds is for samples across two CPUs: the first and last bursts, where only one of them works, count for little.
const longRounds = 16 * rounds

// sample writes, and waits until all is acknowledged.
func (s *placed) sample() (float64, error) {
	start := time.Now()
	want := longRounds * len(s.out)
	for got, idle := 0, 0; ; {
		if got < want {
			n, e := s.write()
			if e != 0 && e != syscall.EAGAIN {
				return 0, fmt.Errorf("write: %w", e)
			}
			if got += n; n > 0 {
				idle = 0
			}
		} else if _, _, all := s.c.Room(); all {
			break
		}
		if !s.how.worker {
			s.Turn()
		}
		if idle++; idle&(1<<20-1) == 0 && time.Since(start) > stuck {
			return 0, fmt.Errorf("%d of %d bytes were written in %s: %s %+v", got, want, stuck, s.c.Debug(), s.Counters())
		}
	}
	return float64(time.Since(start).Nanoseconds()) / (longRounds * burst), nil
}

func (s *placed) close() {
	s.AbortAll()
	s.Turn()
	dpdk.FreeLane(s.far.port)
	device := s.port.Name()
	s.side.close()
	_ = dpdk.VdevUninit(device)
}

// turner takes the turns of one host at a time on a CPU of its own.
type turner struct {
	ask, at atomic.Pointer[func()]
	stop    atomic.Bool
	done    chan struct{}
}

func newTurner(cpu int) (*turner, error) {
	t := &turner{done: make(chan struct{})}
	up := make(chan error)
	go func() {
		defer close(t.done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if _, err := dpdk.RegisterLcore(cpu); err != nil {
			up <- err
			return
		}
		defer dpdk.UnregisterLcore()
		close(up)
		for !t.stop.Load() {
			turn := t.ask.Load()
			if t.at.Load() != turn {
				t.at.Store(turn)
			}
			if turn != nil {
				(*turn)()
			}
		}
	}()
	return t, <-up
}

// turn has it take turns; nil: none. It returns when the former ones have ended.
func (t *turner) turn(f *func()) {
	t.ask.Store(f)
	for t.at.Load() != f {
		runtime.Gosched()
	}
}

func (t *turner) close() {
	t.turn(nil)
	t.stop.Store(true)
	<-t.done
}

// runPlaced measures the placements in turn, sample by sample.
func runPlaced(name string, open func(*env, point, placement) (sample func() (float64, error), turn func(), end func(), err error)) func(*env, point) ([]result, error) {
	return func(e *env, p point) ([]result, error) {
		use := cpus()
		if len(use) < 2 {
			return nil, errSkip{"it needs two CPUs"}
		}
		samples, turns := make([]func() (float64, error), len(placements)), make([]*func(), len(placements))
		for i, how := range placements {
			sample, turn, end, err := open(e, p, how)
			if err != nil {
				return nil, err
			}
			defer end()
			samples[i] = sample
			if how.worker {
				turns[i] = &turn
			}
		}
		back, err := pinned(use[0])
		if err != nil {
			return nil, err
		}
		defer back()
		defer moreProcs()()
		t, err := newTurner(use[1])
		if err != nil {
			return nil, err
		}
		defer t.close()
		all, err := measure(e.ctx, e.each, e.floorAt(p.MSS), sampler{parts: len(placements), warm: 5, take: func(out []float64) (int, error) {
			for i := range placements {
				t.turn(turns[i])
				var err error
				if out[i], err = samples[i](); err != nil {
					return 0, fmt.Errorf("%s: %w", placements[i].name, err)
				}
			}
			t.turn(nil)
			return len(placements) * longRounds * burst, nil
		}})
		if err != nil {
			return nil, err
		}
		var out []result
		for i, how := range placements {
			out = append(out, newResult(name+"-"+how.name, p, all[i]).counted())
		}
		return out, nil
	}
}

// sendPlaced is one-way traffic: the sending end before the far end.
func sendPlaced(costly, zero bool) func(*env, point, placement) (func() (float64, error), func(), func(), error) {
	return func(e *env, p point, how placement) (func() (float64, error), func(), func(), error) {
		s, err := newPlaced(e, p, how, costly, zero)
		if err != nil {
			return nil, nil, nil, err
		}
		return s.sample, func() { s.Turn() }, s.close, nil
	}
}

// bothPlaced is traffic both ways: what one host has for each segment that it sends and each that it receives. It is two
// hosts with one-way traffic between them, whose applications share one CPU and whose workers the other.
func bothPlaced(e *env, p point, how placement) (func() (float64, error), func(), func(), error) {
	w, err := e.stackPairWith(stack.Config{Checksum: sums(p.Checksum), WorkerSends: how.workers})
	if err != nil {
		return nil, nil, nil, err
	}
	f, err := w.connect(p.Connections, p.MSS)
	if err != nil {
		return nil, nil, nil, err
	}
	l := newLockstep(w, f, p.MSS)
	return func() (float64, error) { return l.through(longRounds, !how.worker) }, func() { w.a.Turn(); w.b.Turn() }, w.close, nil
}
