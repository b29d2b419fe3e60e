//go:build cgo

package dpdk

import (
	"bytes"
	"syscall"
	"testing"
)

func TestRingInOrder(t *testing.T) {
	a, b, pool := ringLanes(t, 1023, 256)
	a.Want, b.RxMax = 100, 64
	a.Exchange(OpStock)
	if a.NStock != 100 {
		t.Fatalf("stock %d, want 100", a.NStock)
	}
	for i := range 100 {
		queue(t, a, 60+i, byte(i), 0)
	}
	a.Exchange(OpTx)
	if a.NTx != 0 || a.TxSent != 100 || a.TxRefuse != 0 {
		t.Fatalf("left %d, sent %d, refused %d", a.NTx, a.TxSent, a.TxRefuse)
	}
	got := 0
	for _, want := range []uint32{64, 36, 0} {
		b.Exchange(OpRx)
		if b.NRx != want || b.TSC == 0 {
			t.Fatalf("received %d, want %d", b.NRx, want)
		}
		for i := range b.NRx {
			f := &b.Rx[i]
			if !bytes.Equal(f.Bytes(), bytes.Repeat([]byte{byte(got)}, 60+got)) || f.Flags != 0 {
				t.Fatalf("frame %d arrived as %d bytes %x, flags %x", got, f.Len, f.Bytes()[:4], f.Flags)
			}
			if f.Addr%64 != 0 {
				t.Errorf("frame %d at %x is not on a cache line", got, f.Addr)
			}
			got++
		}
		releaseAll(b)
	}
	if n := pool.InUse(); n != 0 {
		t.Errorf("%d buffers in use, stock %d", n, a.NStock)
	}
	if a.Exchange(OpTx); b.NRx != 0 {
		t.Error("frames from nowhere")
	}
}

func TestRefusedFramesStayInOrder(t *testing.T) {
	a, b, pool := ringLanes(t, 1023, 50)
	a.Want = 200
	a.Exchange(OpStock)
	var handles []Handle
	for i := range 200 {
		flags := Flags(0)
		if i%2 == 0 {
			flags = TxRetain
		}
		handles = append(handles, queue(t, a, 60, byte(i), flags))
	}
	got := 0
	for turn := 0; got < 200; turn++ {
		a.Exchange(OpTx)
		if a.NTx > 0 && a.Tx[0].Bytes()[0] != byte(a.TxSent) {
			t.Fatalf("after %d frames the list begins with frame %d", a.TxSent, a.Tx[0].Bytes()[0])
		}
		a.Exchange(OpTx) // again, with the port full: it must not count as a second reference
		b.Exchange(OpRx)
		for i := range b.NRx {
			if v := b.Rx[i].Bytes()[0]; v != byte(got) {
				t.Fatalf("frame %d arrived as number %d", v, got)
			}
			got++
		}
		releaseAll(b)
		if turn > 100 {
			t.Fatal("stuck")
		}
	}
	if a.TxRefuse == 0 {
		t.Error("nothing was refused: the test shows nothing")
	}
	if n := pool.InUse(); n != 100 {
		t.Errorf("%d buffers in use, 100 are retained", n)
	}
	for i := 0; i < 200; i += 2 {
		a.Release(handles[i])
	}
	a.Exchange(OpFree)
}

func TestRetain(t *testing.T) {
	a, b, pool := ringLanes(t, 255, 64)
	a.Want = 1
	a.Exchange(OpStock)
	if n := pool.InUse(); n != 1 {
		t.Fatalf("%d in use", n)
	}
	h := queue(t, a, 100, 7, TxRetain)
	a.Exchange(OpTx)
	b.Exchange(OpRx)
	if b.NRx != 1 || b.Rx[0].Handle != h {
		t.Fatal("the receiver gets another buffer")
	}
	first := b.Rx[0]
	// Resent while the receiver still holds the first transmission: a third reference.
	f := first
	f.Flags = TxRetain
	a.Queue(f)
	a.Exchange(OpTx)
	b.Release(first.Handle)
	b.Exchange(OpFree | OpRx)
	if n := pool.InUse(); n != 1 {
		t.Fatalf("%d in use after the first release", n)
	}
	releaseAll(b)
	if n := pool.InUse(); n != 1 {
		t.Fatalf("%d in use while the sender retains it", n)
	}
	a.Release(h)
	a.Exchange(OpFree)
	if n := pool.InUse(); n != 0 {
		t.Fatalf("%d in use after the last release", n)
	}
}

func TestPoolExhausted(t *testing.T) {
	a, b, pool := ringLanes(t, 100, 64)
	a.Want = StockCap
	a.Exchange(OpStock)
	// Below the last few, a bulk of half as many is tried, down to one: nothing is left behind.
	if a.NStock != 100 || a.NoMem == 0 {
		t.Fatalf("stock %d of 100, found empty %d times", a.NStock, a.NoMem)
	}
	if avail := pool.Avail(); avail != 0 {
		t.Fatalf("%d left", avail)
	}
	b.Want = 10
	b.Exchange(OpStock)
	if _, ok := b.Take(); ok || b.NoMem != 1 {
		t.Fatalf("a buffer from an empty pool, found empty %d times", b.NoMem)
	}
	for range 60 {
		f, _ := a.Take()
		a.Release(f.Handle)
	}
	a.Exchange(OpFree)
	b.Exchange(OpStock)
	if b.NStock != 10 {
		t.Errorf("stock %d after 60 were freed", b.NStock)
	}
}

// FreeLane and Close give back what the lists and the ring hold.
func TestCloseReturnsBuffers(t *testing.T) {
	a, b, pool := ringLanes(t, 511, 32)
	a.Want = 100
	a.Exchange(OpStock)
	for range 60 { // 32 end in the ring, 28 stay listed
		queue(t, a, 60, 1, 0)
	}
	a.Exchange(OpTx)
	f, _ := a.Take()
	a.Release(f.Handle)
	if n := pool.InUse(); n != 100 {
		t.Fatalf("%d in use, want 100", n)
	}
	FreeLane(a)
	if n := pool.InUse(); n != 32 {
		t.Fatalf("%d in use, want the 32 in the ring", n)
	}
	FreeLane(a) // a second time does nothing
	b.Want = 5
	b.Exchange(OpStock)
	// The rest is newPool's and openPort's to check.
}

func TestRingPairErrors(t *testing.T) {
	_, _, err := RingPair("", 64)
	wantError(t, err, syscall.EINVAL, "1 to 12 bytes")
	_, _, err = RingPair("x", 0)
	wantError(t, err, syscall.EINVAL)
	pool := newPool(t, 63)
	ia, ib, err := RingPair("twice", 64)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = RingPair("twice", 64)
	wantError(t, err, syscall.EEXIST, "twice", "a name of its own")
	for _, id := range []uint16{ia, ib} {
		openPort(t, id, PortConf{RxPool: pool})
	}
}

func TestRingQueues(t *testing.T) {
	lcore(t)
	pool := newPool(t, 255)
	ia, ib, err := RingPairQueues("many", 64, 2)
	if err != nil {
		t.Fatal(err)
	}
	pa := openPort(t, ia, PortConf{RxPool: pool, RxQueues: 2, TxQueues: 2})
	pb := openPort(t, ib, PortConf{RxPool: pool, RxQueues: 9, TxQueues: 9})
	if i := pb.Info(); i.RxQueues != 2 || i.TxQueues != 2 || i.MaxTxQueues != 2 {
		t.Errorf("asked for 9 queues of 2: %+v", i)
	}
	a1 := newLane(t, pa, -1, 1, pool)
	b0, b1 := newLane(t, pb, 0, 0, nil), newLane(t, pb, 1, 1, nil)
	a1.Exchange(OpStock | OpRx)
	queue(t, a1, 60, 5, 0)
	a1.Exchange(OpTx)
	b0.Exchange(OpRx | OpStock)
	b1.Exchange(OpRx)
	if b0.NRx != 0 || b1.NRx != 1 {
		t.Errorf("queue 1 of a arrived at queues 0: %d, 1: %d", b0.NRx, b1.NRx)
	}
	releaseAll(b1)
	_, err = pb.NewLane(0, 0, nil)
	wantError(t, err, syscall.EINVAL, "belongs to another lane")
	_, err = pb.NewLane(2, 0, nil)
	wantError(t, err, syscall.EINVAL, "queues 0 to 1")
}
