package link

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"ndpip/dpdk"
)

// sendOn sends frames from a lane and returns their handles; what the port refuses stays in the lane.
func sendOn(t *testing.T, l *dpdk.Lane, flags dpdk.Flags, frames ...[]byte) (handles []dpdk.Handle) {
	t.Helper()
	for _, b := range frames {
		l.Want = 16
		l.Exchange(dpdk.OpStock)
		f, ok := l.Take()
		if !ok {
			t.Fatal("no buffer to send from")
		}
		f.Len = uint32(copy(f.Bytes(), b))
		f.Flags = flags
		l.Queue(f)
		handles = append(handles, f.Handle)
	}
	l.Exchange(dpdk.OpTx)
	return handles
}

// receiveOn receives all that has arrived, and releases it.
func receiveOn(l *dpdk.Lane) (frames [][]byte) {
	for {
		l.Exchange(dpdk.OpFree | dpdk.OpRx)
		if l.NRx == 0 {
			return frames
		}
		for i := range l.Rx[:l.NRx] {
			frames = append(frames, bytes.Clone(l.Rx[i].Bytes()))
			l.Release(l.Rx[i].Handle)
		}
	}
}

// numbered are frames that can be told apart.
func numbered(n, size int) [][]byte {
	frames := make([][]byte, n)
	for i := range frames {
		frames[i] = bytes.Repeat([]byte{byte(i)}, size)
		binary.BigEndian.PutUint32(frames[i], uint32(i))
	}
	return frames
}

func numbers(frames [][]byte) (ns []int) {
	for _, f := range frames {
		ns = append(ns, int(binary.BigEndian.Uint32(f)))
	}
	return ns
}

func wantStats(t *testing.T, e *End, want Stats) {
	t.Helper()
	got := e.Stats()
	got.SentBytes, got.ReceivedBytes = want.SentBytes, want.ReceivedBytes
	if got != want {
		t.Errorf("end %v counted %+v, want %+v", e, got, want)
	}
}

func wantPanic(t *testing.T, text string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if r := fmt.Sprint(recover()); !strings.Contains(r, text) {
			t.Errorf("panic %q, want one about %q", r, text)
		}
	}()
	f()
}

func TestDelivery(t *testing.T) {
	l := New(Config{})
	a, b := l.A.NewLane(true), l.B.NewLane(true)
	sent := numbered(100, 100)
	sendOn(t, a, 0, sent...)
	if got := receiveOn(b); len(got) != 100 || !bytes.Equal(bytes.Join(got, nil), bytes.Join(sent, nil)) {
		t.Errorf("received %d frames: %v", len(got), numbers(got))
	}
	if got := receiveOn(b); got != nil {
		t.Errorf("received twice: %v", numbers(got))
	}
	sendOn(t, b, 0, []byte("back"))
	if got := receiveOn(a); len(got) != 1 || string(got[0]) != "back" {
		t.Errorf("received %q", got)
	}
	if a.TxSent != 100 || a.TSC != uint64(time.Second) || a.Hz() != 1e9 {
		t.Errorf("sent %d, clock %d at %d Hz", a.TxSent, a.TSC, a.Hz())
	}
	wantStats(t, l.A, Stats{Sent: 100, Received: 1})
	wantStats(t, l.B, Stats{Sent: 1, Received: 100})
	if n := l.A.InUse(); n != 15 { // its stock is topped up to 16 before a frame is taken from it
		t.Errorf("%d buffers in use before the lane is freed", n)
	}
	l.A.FreeLane(a)
	l.B.FreeLane(b)
	if l.A.InUse() != 0 || l.B.InUse() != 0 {
		t.Errorf("%d and %d buffers in use at the end", l.A.InUse(), l.B.InUse())
	}
}

// A lane that does not receive leaves the frames to the one that does, and both send.
func TestTwoLanes(t *testing.T) {
	l := New(Config{})
	worker, app, b := l.A.NewLane(true), l.A.NewLane(false), l.B.NewLane(true)
	sendOn(t, b, 0, []byte("x"))
	if got := receiveOn(app); got != nil {
		t.Errorf("the lane without a queue received %q", got)
	}
	if got := receiveOn(worker); len(got) != 1 {
		t.Errorf("the other received %q", got)
	}
	sendOn(t, app, 0, []byte("from app"))
	sendOn(t, worker, 0, []byte("from worker"))
	if got := receiveOn(b); len(got) != 2 || string(got[0]) != "from app" || string(got[1]) != "from worker" {
		t.Errorf("received %q", got)
	}
}

func TestRetain(t *testing.T) {
	l := New(Config{})
	a, b := l.A.NewLane(true), l.B.NewLane(true)
	h := sendOn(t, a, dpdk.TxRetain, []byte("again"))[0]
	l.A.FreeLane(a)
	if l.A.InUse() != 1 {
		t.Fatalf("%d buffers in use, want the one that was retained", l.A.InUse())
	}
	p := l.A.tx
	f := dpdk.Frame{Handle: h, Addr: p.base + uintptr(p.index(h, ""))*uintptr(p.size) + 128, Len: 5, Flags: dpdk.TxRetain}
	for range 3 {
		a.Queue(f)
		a.Exchange(dpdk.OpTx)
	}
	if got := receiveOn(b); len(got) != 4 || string(got[3]) != "again" {
		t.Errorf("received %q", got)
	}
	a.Release(h)
	a.Exchange(dpdk.OpFree)
	if l.A.InUse() != 0 {
		t.Errorf("%d buffers in use at the end", l.A.InUse())
	}
}

func TestMisuse(t *testing.T) {
	l := New(Config{})
	a, b := l.A.NewLane(true), l.B.NewLane(true)
	take := func(l *dpdk.Lane) dpdk.Frame {
		l.Want = 1
		l.Exchange(dpdk.OpStock)
		f, _ := l.Take()
		return f
	}
	release := func(l *dpdk.Lane, h dpdk.Handle) {
		l.NFree = 0 // of the panic before
		l.Release(h)
		l.Exchange(dpdk.OpFree)
	}
	send := func(l *dpdk.Lane, f dpdk.Frame) {
		l.NTx = 0
		l.Queue(f)
		l.Exchange(dpdk.OpTx)
	}
	f := take(a)
	release(a, f.Handle)
	wantPanic(t, "given back already", func() { release(a, f.Handle) })
	wantPanic(t, "given back already", func() { send(a, f) })
	g := take(a) // the same buffer
	if g.Addr != f.Addr || g.Handle == f.Handle {
		t.Errorf("got %+v after %+v", g, f)
	}
	wantPanic(t, "used anew", func() { release(a, f.Handle) })
	wantPanic(t, "not of this end", func() { release(b, g.Handle) })
	wantPanic(t, "not of this end", func() { release(a, 0) })
	wantPanic(t, "not of the receive pool", func() { release(a, g.Handle+1<<20) })

	long := g
	long.Len++
	wantPanic(t, "does not lie in buffer", func() { send(a, long) })
	wantPanic(t, "does not lie in buffer", func() { send(a, dpdk.Frame{Handle: g.Handle, Addr: g.Addr, Len: 0}) })
	wantPanic(t, "does not lie in buffer", func() { send(a, dpdk.Frame{Handle: g.Handle, Addr: g.Addr - 129, Len: 20}) })
	wantPanic(t, "port that does not do them", func() { send(a, dpdk.Frame{Handle: g.Handle, Addr: g.Addr, Len: 60, Flags: dpdk.TxIPSum}) })
	send(a, dpdk.Frame{Handle: g.Handle, Addr: g.Addr - 128, Len: g.Len + 128}) // all of it
	wantPanic(t, "given back already", func() { release(a, g.Handle) })

	h := take(a)
	release(a, h.Handle)
	h.Bytes()[1024-128] = 1 // behind the pool's back, at the start of a line
	wantPanic(t, "written to, at byte 1024, after", func() { take(a) })

	wantPanic(t, "only forward", func() { l.Advance(-1) })
	wantPanic(t, "probability", func() { New(Config{AB: Path{Loss: 2}}) })
	wantPanic(t, "ReorderBy", func() { New(Config{AB: Path{Reorder: 1}}) })
	wantPanic(t, "headroom", func() { New(Config{A: Port{BufSize: 64}}) })
	wantPanic(t, "virtual clock", func() { New(Config{Wall: true}).Advance(1) })
}

func TestClock(t *testing.T) {
	l := New(Config{AB: Path{Delay: 5 * time.Microsecond}})
	a, b := l.A.NewLane(true), l.B.NewLane(true)
	if _, ok := l.NextArrival(); ok {
		t.Error("something on an empty wire")
	}
	sendOn(t, a, 0, []byte("x"))
	l.Advance(time.Microsecond)
	sendOn(t, a, 0, []byte("y"))
	if got := receiveOn(b); got != nil {
		t.Errorf("too early: %q", got)
	}
	at, ok := l.NextArrival()
	if !ok || at != start+5*time.Microsecond {
		t.Errorf("next arrival at %v, %v", at, ok)
	}
	l.AdvanceTo(at - 1)
	if got := receiveOn(b); got != nil {
		t.Errorf("too early: %q", got)
	}
	l.AdvanceTo(at)
	if got := receiveOn(b); len(got) != 1 || got[0][0] != 'x' {
		t.Errorf("received %q", got)
	}
	l.AdvanceTo(at - 10)
	if l.Now() != at || b.TSC != uint64(at) {
		t.Errorf("the clock shows %v, the lane %v, want %v", l.Now(), b.TSC, at)
	}
	if at, _ := l.NextArrival(); at != start+6*time.Microsecond {
		t.Errorf("next arrival at %v", at)
	}

	w := New(Config{Wall: true})
	was := w.Now()
	time.Sleep(time.Millisecond)
	if d := w.Now() - was; d < time.Millisecond {
		t.Errorf("the wall clock went on by %v in a millisecond", d)
	}
}

func TestRateAndQueue(t *testing.T) {
	// 76 + 24 bytes at 1 Gb/s take 800 ns.
	l := New(Config{AB: Path{Rate: 1e9, Queue: 4, Delay: time.Microsecond}})
	a, b := l.A.NewLane(true), l.B.NewLane(true)
	sendOn(t, a, 0, numbered(6, 76)...)
	wantStats(t, l.A, Stats{Sent: 6, QueueFull: 2})
	for i := range 4 {
		at, _ := l.NextArrival()
		if want := start + time.Microsecond + time.Duration(i+1)*800*time.Nanosecond; at != want {
			t.Errorf("frame %d arrives at %v, want %v", i, at, want)
		}
		l.AdvanceTo(at)
		if got := numbers(receiveOn(b)); len(got) != 1 || got[0] != i {
			t.Errorf("at %v: %v", at, got)
		}
	}
	// A short frame takes as long as 60 bytes; the wire was idle in between.
	l.Advance(time.Second)
	now := l.Now()
	sendOn(t, a, 0, []byte("abcd"))
	if at, _ := l.NextArrival(); at != now+time.Microsecond+84*8 {
		t.Errorf("a short frame takes %v", at-now)
	}
}

func TestPeer(t *testing.T) {
	l := New(Config{})
	a, peer := l.A.NewLane(true), l.B.Peer()
	in := []byte("hello")
	peer.Inject(in)
	in[0] = 'j'
	if got := receiveOn(a); len(got) != 1 || string(got[0]) != "hello" {
		t.Errorf("received %q", got)
	}
	sendOn(t, a, 0, []byte("one"), []byte("two"))
	got := peer.Sent()
	sendOn(t, a, 0, []byte("three"))
	got = append(got, peer.Sent()...)
	if s := string(bytes.Join(got, []byte(" "))); s != "one two three" {
		t.Errorf("the peer got %q", s)
	}
	if got := peer.Sent(); got != nil {
		t.Errorf("the peer got %q again", got)
	}
}

func TestAllocatesNothing(t *testing.T) {
	l := New(Config{AB: Path{Rate: 1e10, Delay: 100, Reorder: 0.1, ReorderBy: 1000, Loss: 0.1}})
	a, b := l.A.NewLane(true), l.B.NewLane(true)
	a.Want = 32
	turn := func() {
		a.Exchange(dpdk.OpStock)
		for range 32 {
			f, _ := a.Take()
			f.Len = 100
			a.Queue(f)
		}
		a.Exchange(dpdk.OpTx)
		l.Advance(time.Microsecond)
		b.Exchange(dpdk.OpFree | dpdk.OpRx)
		for i := range b.Rx[:b.NRx] {
			b.Release(b.Rx[i].Handle)
		}
	}
	for range 100 {
		turn()
	}
	l.Advance(time.Millisecond)
	receiveOn(b)
	if n := testing.AllocsPerRun(100, turn); n > 0.5 {
		t.Errorf("%v allocations for 32 frames", n)
	}
}

func BenchmarkLink(b *testing.B) {
	l := New(Config{})
	tx, rx := l.A.NewLane(false), l.B.NewLane(true)
	tx.Want = 32
	for b.Loop() {
		tx.Exchange(dpdk.OpStock)
		for range 32 {
			f, _ := tx.Take()
			f.Len = 1514
			tx.Queue(f)
		}
		tx.Exchange(dpdk.OpTx)
		rx.Exchange(dpdk.OpFree | dpdk.OpRx)
		for i := range rx.Rx[:rx.NRx] {
			rx.Release(rx.Rx[i].Handle)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/32, "ns/frame")
}
