package link

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"ndpip/dpdk"
)

func TestPools(t *testing.T) {
	l := New(Config{A: Port{Buffers: 4, TxBuffers: 3}, B: Port{Headroom: -1, BufSize: 128}})
	a, b := l.A.NewLane(true), l.B.NewLane(true)
	a.Want = 8
	a.Exchange(dpdk.OpStock)
	if a.NStock != 3 || a.NoMem != 1 {
		t.Errorf("a stock of %d from a pool of 3, %d times empty", a.NStock, a.NoMem)
	}
	sendOn(t, b, 0, numbered(6, 60)...)
	a.Exchange(dpdk.OpRx)
	if a.NRx != 4 { // the transmit pool being empty does not matter
		t.Errorf("%d frames from a pool of 4", a.NRx)
	}
	if s := l.A.Stats(); s.NoBuffer != 2 || s.Received != 4 {
		t.Errorf("%+v", s)
	}
	for _, f := range a.Rx[:a.NRx] {
		a.Release(f.Handle)
	}
	a.Exchange(dpdk.OpFree)
	if l.A.InUse() != 3 {
		t.Errorf("%d buffers in use", l.A.InUse())
	}
	// A frame that is longer than the receiver's buffer is marked.
	f, _ := a.Take()
	f.Len = 200
	a.Queue(f)
	a.Exchange(dpdk.OpTx)
	b.Exchange(dpdk.OpRx)
	if b.NRx != 1 || b.Rx[0].Len != 128 || b.Rx[0].Flags&dpdk.RxChained == 0 {
		t.Errorf("received %+v", b.Rx[0])
	}
}

func TestTxRing(t *testing.T) {
	l := New(Config{A: Port{TxRing: 4}, AB: Path{Rate: 1e9, Delay: time.Second}})
	a, b := l.A.NewLane(true), l.B.NewLane(true)
	sendOn(t, a, 0, numbered(10, 76)...)
	if a.NTx != 6 || a.TxSent != 4 || a.TxRefuse != 1 {
		t.Fatalf("%d left, %d sent, %d refusals", a.NTx, a.TxSent, a.TxRefuse)
	}
	// The ring has room when the first frame has left, long before it arrives.
	at, _ := l.NextArrival()
	if at != start+800*time.Nanosecond {
		t.Errorf("next at %v", at)
	}
	l.AdvanceTo(at)
	a.Exchange(dpdk.OpTx)
	if a.NTx != 5 || binary.BigEndian.Uint32(a.Tx[0].Bytes()) != 5 {
		t.Errorf("%d left", a.NTx)
	}
	for a.NTx > 0 {
		at, _ := l.NextArrival()
		l.AdvanceTo(at)
		a.Exchange(dpdk.OpTx)
	}
	l.Advance(2 * time.Second)
	if got := receiveOn(b); fmt.Sprint(numbers(got)) != "[0 1 2 3 4 5 6 7 8 9]" {
		t.Errorf("received %v", numbers(got))
	}
}

func TestRxRingAndPad(t *testing.T) {
	l := New(Config{B: Port{RxRing: 8, Pad: 60}})
	a, b := l.A.NewLane(true), l.B.NewLane(true)
	sendOn(t, a, 0, numbered(12, 54)...)
	got := receiveOn(b)
	if fmt.Sprint(numbers(got)) != "[0 1 2 3 4 5 6 7]" {
		t.Errorf("received %v", numbers(got))
	}
	wantStats(t, l.B, Stats{Received: 8, Missed: 4})
	for _, f := range got {
		if len(f) != 60 || bytes.Equal(f[54:], make([]byte, 6)) {
			t.Errorf("a frame of %d bytes that ends in % x", len(f), f[54:])
		}
	}
}

func TestHold(t *testing.T) {
	l := New(Config{A: Port{Hold: true}, AB: Path{Delay: time.Microsecond, Filter: func(f []byte) Verdict {
		switch string(f) {
		case "drop":
			return Drop
		case "copy":
			return Verdict{Copies: 2}
		}
		return Pass
	}}})
	a, b := l.A.NewLane(true), l.B.NewLane(true)
	use := func(want int) {
		t.Helper()
		l.A.FreeLane(a) // the stock does not count
		if got := l.A.InUse(); got != want {
			t.Errorf("%d buffers in use, want %d", got, want)
		}
	}
	sendOn(t, a, 0, []byte("x"), []byte("drop"), []byte("copy"))
	use(3)
	l.Advance(time.Microsecond)
	if got := receiveOn(b); string(bytes.Join(got, []byte(" "))) != "x copy copy copy" {
		t.Errorf("received %q", got)
	}
	use(0)

	h := sendOn(t, a, dpdk.TxRetain, []byte("y"))[0]
	a.Release(h) // the sender's reference; the port has its own
	use(1)
	l.Advance(time.Microsecond)
	receiveOn(b)
	use(0)

	h = sendOn(t, a, dpdk.TxRetain, []byte("z"))[0]
	p := l.A.tx
	mem := p.buffer(p.index(h, ""))[p.headroom:]
	mem[1] = 1 // not a byte of the frame
	mem[0]++
	l.Advance(time.Microsecond)
	wantPanic(t, "was changed while", func() { receiveOn(b) })
}
