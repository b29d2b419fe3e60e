package sim

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"ndpip/dpdk"
	"ndpip/stack"
	"ndpip/stack/link"
	"ndpip/tcp"
)

// The tests here run in real time: each stack has its worker on a thread of its own, and the applications are other
// threads. They are for the hand-offs between the two, and most worth with the race detector.

// threadTime is how long each of them goes on.
func threadTime() time.Duration {
	if testing.Short() {
		return 200 * time.Millisecond
	}
	return time.Second
}

// twoStacks are two stacks with a worker each.
type twoStacks struct {
	link  *link.Link
	s     [2]*stack.Stack
	lanes [2][2]*dpdk.Lane
	ends  [2]*link.End
}

// newTwoStacks starts them on a link whose two directions are path, with pools of the given number of buffers.
func newTwoStacks(path link.Path, buffers int, tune func(c *stack.Config, p *link.Port)) *twoStacks {
	t := &twoStacks{}
	t.start(path, buffers, tune, nil, nil)
	return t
}

// start starts the stacks; lane (if not nil) may put another lane in a stack's lane's place, and ready sees each stack before its worker starts.
func (t *twoStacks) start(path link.Path, buffers int, tune func(c *stack.Config, p *link.Port), lane func(i int, l *dpdk.Lane) *dpdk.Lane,
	ready func(i int, s *stack.Stack)) {
	port := link.Port{Buffers: buffers, TxBuffers: buffers}
	params := tcp.DefaultParams()
	params.MinRTO, params.InitRTO, params.TimeWait, params.FinWait2 = 2e6, 50e6, 20e6, 200e6
	cfg := stack.Config{TCP: params, RxBuffers: buffers, TxBuffers: buffers, RcvBuf: 64 << 10, SndBuf: 64 << 10}
	if tune != nil {
		tune(&cfg, &port)
	}
	t.link = link.New(link.Config{Seed: 1, Wall: true, A: port, B: port, AB: path, BA: path})
	t.ends = [2]*link.End{t.link.A, t.link.B}
	addrs := [2]uint32{addrA, addrB}
	for i, end := range t.ends {
		c := cfg
		c.MAC = mac(addrs[i])
		c.Addr = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(addrs[i])}), 24)
		t.lanes[i] = [2]*dpdk.Lane{end.NewLane(true), end.NewLane(false)}
		worker, app := t.lanes[i][0], t.lanes[i][1]
		if lane != nil {
			worker, app = lane(i, worker), lane(i, app)
		}
		s := stack.New(c, *worker, *app)
		t.s[i] = s
		if ready != nil {
			ready(i, s)
		}
		s.Start()
		go func() {
			runtime.LockOSThread()
			s.Run(true)
		}()
	}
}

// stop waits until the stacks have let go of all connections, ends the workers, and checks that nothing is missing.
func (t *twoStacks) stop(tb testing.TB) {
	tb.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for i, s := range t.s {
		for {
			var u stack.Usage
			s.Flush()
			s.Do(func() { u = s.Usage() })
			if u == (stack.Usage{}) {
				break
			}
			if time.Now().After(deadline) {
				tb.Errorf("stack %d: still in use: %+v", i, u)
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
	for i, s := range t.s {
		s.Stop()
		s.Flush()
		t.ends[i].FreeLane(t.lanes[i][0])
		t.ends[i].FreeLane(t.lanes[i][1])
	}
	for i, end := range t.ends {
		for end.InUse() != 0 && time.Now().Before(deadline) { // frames on the wire
			t.ends[1-i].Peer().Sent()
			time.Sleep(time.Millisecond)
		}
		if n := end.InUse(); n != 0 {
			tb.Errorf("end %v: %d buffers have not come back", end, n)
		}
	}
}

// task is what one application thread does with a connection.
type task struct {
	s             *stack.Stack
	c             *tcp.Conn
	out, in       uint64 // keys of the streams
	size          int    // of a write, at most
	pause         time.Duration
	zero          bool
	until         time.Time // no more is written from then on
	quit          time.Time // the connection is dropped then; zero: never
	rnd           *rand.Rand
	wrote, read   uint64
	buf           []byte
	finished, eof bool
}

// run moves data both ways until both streams have ended, and returns what went wrong.
func (k *task) run() error {
	k.buf = make([]byte, 1<<14)
	stuck := time.Now().Add(20 * time.Second)
	for !k.eof || !k.finished {
		now := time.Now()
		if !k.quit.IsZero() && now.After(k.quit) {
			k.s.Close(k.c)
			return nil
		}
		w, err := k.write(now)
		if err != nil {
			return err
		}
		r, err := k.recv()
		if err != nil {
			return err
		}
		if w || r {
			stuck = now.Add(20 * time.Second)
			continue
		}
		if now.After(stuck) {
			return fmt.Errorf("stuck: wrote %d, read %d: %s", k.wrote, k.read, k.c.Debug())
		}
		k.s.Flush()
		runtime.Gosched()
	}
	k.s.Close(k.c)
	return nil
}

func (k *task) write(now time.Time) (busy bool, err error) {
	if k.finished {
		return false, nil
	}
	if now.After(k.until) {
		k.finished = true
		k.s.Shutdown(k.c)
		return true, nil
	}
	if k.zero {
		return k.writeBufs()
	}
	p := k.buf[:1+k.rnd.IntN(k.size)]
	fill(p, k.out, k.wrote)
	n, e := k.s.Send(k.c, p)
	k.wrote += uint64(n)
	if e != 0 && e != syscall.EAGAIN {
		return false, fmt.Errorf("send: %w", e)
	}
	return n > 0, nil
}

func (k *task) writeBufs() (busy bool, err error) {
	var f [8]dpdk.Frame
	n := k.s.AllocBufs(f[:1+k.rnd.IntN(8)])
	at := k.wrote
	for i := range f[:n] {
		f[i].Len = uint32(1 + k.rnd.IntN(min(k.size, int(k.c.SndMSS))))
		fill(f[i].Bytes(), k.out, at)
		at += uint64(f[i].Len)
	}
	m, e := k.s.SendBufs(k.c, f[:n])
	for i := range f[:m] {
		k.wrote += uint64(f[i].Len)
	}
	k.s.FreeBufs(f[m:n], false)
	if e != 0 && e != syscall.EAGAIN {
		return false, fmt.Errorf("send: %w", e)
	}
	return m > 0, nil
}

func (k *task) recv() (busy bool, err error) {
	if k.eof {
		return false, nil
	}
	if k.pause > 0 {
		time.Sleep(k.pause)
	}
	n, e := k.s.Recv(k.c, k.buf[:1+k.rnd.IntN(len(k.buf))])
	switch {
	case e == syscall.EAGAIN:
		return false, nil
	case e != 0:
		return false, fmt.Errorf("receive: %w", e)
	case n == 0:
		k.eof = true
		return true, nil
	}
	if d := differs(k.buf[:n], k.in, k.read); d >= 0 {
		return false, fmt.Errorf("a wrong byte at %d", k.read+uint64(d))
	}
	k.read += uint64(n)
	return true, nil
}

// pair opens a connection from stack 0 to stack 1 and gives both ends of it.
func (t *twoStacks) pair(port uint16) (a, b *tcp.Conn, err error) {
	l, e := t.s[1].Listen(0, port, 4, stack.Options{}, 0)
	if e != 0 {
		return nil, nil, e
	}
	defer t.s[1].Unlisten(l)
	if a, e = t.s[0].Connect(0, addrB, port, stack.Options{}, 1); e != 0 {
		return nil, nil, e
	}
	for deadline := time.Now().Add(20 * time.Second); b == nil; runtime.Gosched() {
		b = t.s[1].Accept(l)
		if st, why, _ := a.Status(); st == tcp.Closed || time.Now().After(deadline) {
			return nil, nil, fmt.Errorf("no connection: %v %v", st, why)
		}
	}
	for {
		if st, _, _ := a.Status(); st != tcp.SynSent {
			return a, b, nil
		}
		runtime.Gosched()
	}
}

// both runs a task at each end of a connection. Their errors count unless one of them drops the connection.
func (t *twoStacks) both(tb testing.TB, port uint16, tune func(a, b *task)) {
	ca, cb, err := t.pair(port)
	if err != nil {
		tb.Errorf("port %d: %v", port, err)
		return
	}
	until := time.Now().Add(threadTime())
	mk := func(i int, c *tcp.Conn) *task {
		k := &task{s: t.s[i], c: c, out: uint64(port)<<1 + uint64(i), in: uint64(port)<<1 + uint64(1-i), size: 1 << 14, until: until,
			rnd: rand.New(rand.NewPCG(uint64(port), uint64(i)))}
		return k
	}
	a, b := mk(0, ca), mk(1, cb)
	tune(a, b)
	var wg sync.WaitGroup
	errs := [2]error{}
	for i, k := range [...]*task{a, b} {
		wg.Go(func() {
			if errs[i] = k.run(); errs[i] != nil {
				k.s.Close(k.c)
			}
		})
	}
	wg.Wait()
	dropped := !a.quit.IsZero() || !b.quit.IsZero()
	for i, err := range errs {
		if err != nil && !dropped {
			tb.Errorf("port %d, end %d: %v", port, i, err)
		}
	}
	if !dropped && (a.read != b.wrote || b.read != a.wrote) {
		tb.Errorf("port %d: wrote %d and %d, read %d and %d", port, a.wrote, b.wrote, b.read, a.read)
	}
	tb.Logf("port %d: %d bytes one way, %d the other", port, a.read, b.read)
	if a.wrote+b.wrote == 0 {
		tb.Errorf("port %d: nothing was sent", port)
	}
}

// TestThreads has several connections at work at once, each in its way.
func TestThreads(t *testing.T) {
	for _, c := range []struct {
		name    string
		path    link.Path
		buffers int
		tune    func(c *stack.Config, p *link.Port)
	}{
		{"clean", link.Path{}, 2048, nil},
		{"lossy", link.Path{Delay: 20 * time.Microsecond, Loss: 0.01, Duplicate: 0.01, Reorder: 0.01, ReorderBy: 50 * time.Microsecond}, 2048, nil},
		{"worker sends", link.Path{Loss: 0.001}, 2048, func(c *stack.Config, _ *link.Port) { c.WorkerSends = true }},
		{"tight", link.Path{Rate: 1e9, Delay: 5 * time.Microsecond}, 400, func(c *stack.Config, p *link.Port) {
			p.TxRing, p.Hold = 32, true
			c.RcvBuf = 8192
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			two := newTwoStacks(c.path, c.buffers, c.tune)
			var wg sync.WaitGroup
			for i, tune := range []func(a, b *task){
				func(a, b *task) {},                                          // bulk both ways
				func(a, b *task) { a.size, b.size = 64, 8 },                  // many small writes
				func(a, b *task) { a.zero, b.zero = true, true },             // without copies
				func(a, b *task) { b.pause = time.Millisecond },              // a slow reader
				func(a, b *task) { a.quit = a.until.Add(-threadTime() / 2) }, // closed in the middle of it all
				func(a, b *task) { b.quit = b.until; b.pause = time.Millisecond },
			} {
				wg.Go(func() { two.both(t, uint16(100+i), tune) })
			}
			wg.Wait()
			two.stop(t)
		})
	}
}

// TestChurn opens and closes connections as fast as it can, from several threads.
func TestChurn(t *testing.T) {
	two := newTwoStacks(link.Path{Delay: 5 * time.Microsecond, Loss: 0.001}, 2048, nil)
	end := time.Now().Add(2 * threadTime())
	var wg sync.WaitGroup
	var mu sync.Mutex
	total := 0
	for i := range 3 {
		wg.Go(func() {
			port := uint16(2000 + 1000*i)
			n := 0
			for ; time.Now().Before(end) && !t.Failed(); n++ {
				a, b, err := two.pair(port + uint16(n%1000))
				if err != nil {
					t.Error(err)
					break
				}
				two.greet(t, a, b, n)
			}
			mu.Lock()
			total += n
			mu.Unlock()
		})
	}
	wg.Wait()
	two.stop(t)
	t.Logf("%d connections", total)
}

// greet sends a few bytes one way and ends the connection, in one of several ways.
func (t *twoStacks) greet(tb testing.TB, a, b *tcp.Conn, n int) {
	hello := []byte("hello")
	if k, e := t.s[0].Send(a, hello); k != len(hello) {
		tb.Errorf("send: %d %v", k, e)
	}
	if n%4 == 3 { // without a look
		t.s[0].Close(a)
		t.s[1].Close(b)
		return
	}
	var buf [16]byte
	for got, deadline := 0, time.Now().Add(20*time.Second); got < len(hello); runtime.Gosched() {
		k, e := t.s[1].Recv(b, buf[got:])
		if got += k; e != 0 && e != syscall.EAGAIN || time.Now().After(deadline) {
			tb.Errorf("receive: %d %v, %s", got, e, b.Debug())
			break
		}
	}
	switch n % 4 {
	case 0:
		t.s[0].Close(a)
		t.s[1].Close(b)
	case 1:
		t.s[1].Abort(b)
		t.s[0].Close(a)
	case 2:
		b.SetLinger0(true)
		t.s[1].Close(b)
		t.s[0].Close(a)
	}
}
