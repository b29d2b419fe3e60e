//go:build cgo

package dpdk

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// net_null0 gives frames of 64 bytes for ever, and takes everything. It can be configured again after it was stopped,
// but not after it was closed, so its port stays open.
func nullPort(t *testing.T, name string, conf PortConf) *Port {
	t.Helper()
	id, err := PortByName(name)
	if err != nil {
		t.Fatal(err)
	}
	p, err := ConfigurePort(id, conf)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for len(p.lanes) > 0 {
			FreeLane(&p.lanes[0].Lane)
		}
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestNullPort(t *testing.T) {
	lcore(t)
	pool := newPool(t, 511)
	p := nullPort(t, "net_null0", PortConf{RxPool: pool, Promiscuous: true})
	before, err := p.Stats()
	if err != nil {
		t.Fatal(err)
	}
	l := newLane(t, p, 0, 0, pool)
	l.RxMax, l.Want = 100, 100
	for range 10 {
		l.Exchange(OpFree | OpStock | OpRx)
		if l.NRx != 100 || l.NStock != 100 {
			t.Fatalf("received %d, stock %d", l.NRx, l.NStock)
		}
		for i := range l.NRx {
			if l.Rx[i].Len != 64 {
				t.Fatalf("frame of %d bytes", l.Rx[i].Len)
			}
			l.Release(l.Rx[i].Handle)
		}
		for range 50 {
			queue(t, l, 100, 1, 0)
		}
		l.Exchange(OpTx)
	}
	l.Exchange(OpFree)
	after, err := p.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if rx, tx := after.RxFrames-before.RxFrames, after.TxFrames-before.TxFrames; rx != 1000 || tx != 500 || l.TxSent != 500 {
		t.Errorf("statistics: received %d, sent %d, by the lane %d", rx, tx, l.TxSent)
	}
	if p.Name() != "net_null0" || p.Info().Driver != "net_null" || !p.LinkUp() {
		t.Errorf("%s %+v", p.Name(), p.Info())
	}
	if name, err := PortName(p.ID()); err != nil || name != "net_null0" {
		t.Errorf("%q, %v", name, err)
	}
}

// A port that is stopped moves nothing, and an exchange on it is harmless.
func TestStoppedPort(t *testing.T) {
	lcore(t)
	pool := newPool(t, 511)
	p := nullPort(t, "net_null0", PortConf{RxPool: pool})
	l := newLane(t, p, 0, 0, pool)
	for range 3 {
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
		l.Exchange(OpFree | OpStock)
		queue(t, l, 60, 1, TxRetain)
		n := l.NTx
		l.Exchange(OpTx | OpRx)
		if l.NRx != 0 || l.NTx != n {
			t.Fatalf("stopped: received %d, %d of %d left to send", l.NRx, l.NTx, n)
		}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		h := l.Tx[0].Handle
		l.Exchange(OpTx | OpRx)
		if l.NRx == 0 || l.NTx != 0 {
			t.Fatalf("started: received %d, %d left to send", l.NRx, l.NTx)
		}
		l.Release(h)
		releaseAll(l)
	}
}

// Stop while another thread polls: no burst is cut, none begins.
func TestStopUnderLoad(t *testing.T) {
	pool := newPool(t, 511)
	p := nullPort(t, "net_null0", PortConf{RxPool: pool})
	l := newLane(t, p, 0, 0, pool)
	var quit atomic.Bool
	var wg sync.WaitGroup
	var got atomic.Uint64
	wg.Go(func() {
		lcoreLoop(t, func() bool {
			l.Exchange(OpYield | OpFree | OpRx)
			got.Add(uint64(l.NRx))
			for i := range l.NRx {
				l.Release(l.Rx[i].Handle)
			}
			return !quit.Load()
		})
		l.Exchange(OpFree)
	})
	for range 50 {
		was := got.Load()
		eventually(t, "frames", func() bool { return got.Load() > was+100 })
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
		was = got.Load()
		runtime.Gosched()
		if now := got.Load(); now > was+32 { // one exchange may not have counted yet
			t.Fatalf("%d frames from a stopped port", now-was)
		}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
	}
	quit.Store(true)
	wg.Wait()
}

// lcoreLoop runs f on an lcore of its own until it returns false.
func lcoreLoop(t testing.TB, f func() bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if _, err := RegisterLcore(-1); err != nil {
		t.Error(err)
		return
	}
	defer UnregisterLcore()
	for f() {
	}
}

// Two threads send through one transmit queue of a ring with a single producer: every frame arrives, whole, and each
// thread's in order.
func TestLanesShareQueue(t *testing.T) {
	const each = 20000
	pool := newPool(t, 2047)
	ia, ib := ringPorts(t, 128)
	// Asked for two transmit queues, the port has one.
	pa := openPort(t, ia, PortConf{RxPool: pool, TxQueues: 2})
	pb := openPort(t, ib, PortConf{RxPool: pool})
	rx := newLane(t, pb, 0, 0, nil)
	var wg sync.WaitGroup
	for q := range 2 {
		l := newLane(t, pa, -1, q, pool)
		wg.Go(func() {
			sent := 0
			lcoreLoop(t, func() bool {
				l.Exchange(OpYield | OpStock)
				for range min(20, each-sent, l.TxRoom()) {
					f, ok := l.Take()
					if !ok {
						break
					}
					f.Len = 64
					copy(f.Bytes(), fmt.Sprintf("%d:%08d", q, sent))
					l.Queue(f)
					sent++
				}
				l.Exchange(OpTx)
				return sent < each || l.NTx > 0
			})
		})
	}
	var next [2]int
	for next[0]+next[1] < 2*each {
		rx.Exchange(OpYield | OpFree | OpRx)
		for i := range rx.NRx {
			b := rx.Rx[i].Bytes()
			q := b[0] - '0'
			if q > 1 || !bytes.HasPrefix(b, fmt.Appendf(nil, "%d:%08d", q, next[q])) {
				t.Fatalf("after %v came %q", next, b[:10])
			}
			next[q]++
			rx.Release(rx.Rx[i].Handle)
		}
	}
	wg.Wait()
	rx.Exchange(OpFree)
	if len(pa.locks) != 1 || pa.lanes[0].c.priv.lock == 0 || pa.lanes[0].c.priv.lock != pa.lanes[1].c.priv.lock {
		t.Error("the lanes do not share one lock")
	}
}

func TestConfigureErrors(t *testing.T) {
	pool := newPool(t, 63)
	id, err := PortByName("net_null1")
	if err != nil {
		t.Fatal(err)
	}
	_, err = ConfigurePort(id, PortConf{})
	wantError(t, err, syscall.EINVAL, "net_null1", "RxPool")
	_, err = ConfigurePort(id, PortConf{RxPool: pool, MTU: 9000})
	wantError(t, err, syscall.EINVAL, "MTU 9000 needs buffers of 9018 bytes", "dataRoom 9146")
	_, err = ConfigurePort(id, PortConf{RxPool: pool, MTU: 20})
	wantError(t, err, syscall.EINVAL, "MTU 20 is not in the port's range of 68")
	_, err = ConfigurePort(999, PortConf{RxPool: pool})
	wantError(t, err, syscall.ENODEV, "port 999", "(net_null0)")
	_, err = PortByName("net_tap7")
	wantError(t, err, syscall.ENODEV, "net_tap7", "(net_null1)")
	_, err = AttachPort(999)
	wantError(t, err, syscall.ENODEV)
	p := nullPort(t, "net_null1", PortConf{RxPool: pool})
	_, err = p.NewLane(3, 0, pool)
	wantError(t, err, syscall.EINVAL, "receive queue 3", "queues 0 to 0")
	_, err = p.NewLane(0, -1, pool)
	wantError(t, err, syscall.EINVAL, "transmit queue -1")
	// Under way, a port cannot be configured: DPDK says so.
	_, err = ConfigurePort(id, PortConf{RxPool: pool})
	wantError(t, err, syscall.EBUSY, "rte_eth_dev_configure", "must be stopped")
	if PortCount() < 2 {
		t.Errorf("%d ports", PortCount())
	}
}

func TestAddressAndMTU(t *testing.T) {
	lcore(t)
	pool, err := NewMempool("jumbo", 127, 9000+18+128, -1, -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Free)
	mac := [6]byte{2, 0, 0, 0, 0, 9}
	ia, ib := ringPorts(t, 64)
	pa := openPort(t, ia, PortConf{RxPool: pool, MTU: 9000, MAC: &mac})
	pb := openPort(t, ib, PortConf{RxPool: pool, MTU: 9000})
	if m := pb.MAC(); m[0]&3 != 2 {
		t.Errorf("net_ring has no address of its own, and is given %x", m)
	}
	if pa.MAC() != mac || pa.Info().MAC != mac || pa.MTU() != 9000 || pa.Info().MTU != 9000 {
		t.Errorf("MAC %x, MTU %d, %+v", pa.MAC(), pa.MTU(), pa.Info())
	}
	mac[5]++
	if err := pa.SetMAC(mac); err != nil || pa.MAC() != mac {
		t.Errorf("SetMAC: %v, %x", err, pa.MAC())
	}
	wantError(t, pa.SetMAC([6]byte{}), syscall.EINVAL, "rte_eth_dev_default_mac_addr_set")
	wantError(t, pa.SetMAC([6]byte{1}), syscall.EINVAL, "not a multicast address")
	wantError(t, pa.SetMTU(8000), syscall.ENOTSUP, "rte_eth_dev_set_mtu") // net_ring cannot afterwards
	a, b := newLane(t, pa, 0, 0, pool), newLane(t, pb, 0, 0, pool)
	a.Want = 2
	a.Exchange(OpStock)
	queue(t, a, 9014, 3, 0)
	a.Exchange(OpTx)
	b.Exchange(OpRx)
	if b.NRx != 1 || b.Rx[0].Len != 9014 || !bytes.Equal(b.Rx[0].Bytes(), bytes.Repeat([]byte{3}, 9014)) {
		t.Errorf("a frame of 9014 bytes arrived as %d frames, the first of %d", b.NRx, b.Rx[0].Len)
	}
	releaseAll(b)
}

// A port that the program configured and started: lanes work, and closing leaves it as it was.
func TestAttach(t *testing.T) {
	lcore(t)
	pool := newPool(t, 127)
	ia, ib := ringPorts(t, 64)
	null, err := PortByName("net_null1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := AttachPort(null); err != nil { // another test may have configured it
		wantError(t, err, 0, "not configured")
	}
	pb := openPort(t, ib, PortConf{RxPool: pool})
	own := openPort(t, ia, PortConf{RxPool: pool})
	p, err := AttachPort(ia)
	if err != nil {
		t.Fatal(err)
	}
	a, b := newLane(t, p, 0, 0, pool), newLane(t, pb, 0, 0, nil)
	a.Exchange(OpStock)
	queue(t, a, 60, 1, 0)
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	a.Exchange(OpTx)
	b.Exchange(OpRx)
	if b.NRx != 1 {
		t.Error("nothing arrived")
	}
	releaseAll(b)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if !own.LinkUp() {
		t.Error("the program's port was stopped")
	}
}

func init() {
	children["pool"] = func(string) error {
		if _, err := EalInit(strings.Fields(small())); err != nil {
			return err
		}
		_, err := NewMempool("huge", 100000, 0, -1, -1)
		return want(errors.Is(err, syscall.ENOMEM) && strings.Contains(err.Error(), `pool "huge", 100000 buffers of 2176 bytes, about 231 MiB`) &&
			strings.Contains(err.Error(), "give DPDK more memory"), "%v", err)
	}
}

func TestPoolErrors(t *testing.T) {
	// In a child with little memory, so that this run does not take all hugepages for a moment.
	if out, err := child(t, "pool", "", nil); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	_, err := NewMempool("none", 0, 0, -1, -1)
	wantError(t, err, syscall.EINVAL, "1 to 67108864")
	_, err = NewMempool("wide", 10, 70000, -1, -1)
	wantError(t, err, syscall.EINVAL, "65535")
	_, err = NewMempool("odd", 10, 0, 3, -1)
	wantError(t, err, syscall.EINVAL, "multiple of 8")
	_, err = NewMempool(strings.Repeat("x", 26), 10, 0, -1, -1)
	wantError(t, err, syscall.EINVAL, "25 bytes")
	p, err := NewMempool("one", 1, 0, -1, -1)
	if err != nil {
		t.Fatal(err)
	}
	_, err = NewMempool("one", 1, 0, -1, -1)
	wantError(t, err, syscall.EEXIST, "another name")
	if p.Size() != 1 || p.Avail() != 1 || p.InUse() != 0 || p.DataRoom() != DataRoom || p.Ptr() == nil {
		t.Errorf("%d, %d, %d, %d", p.Size(), p.Avail(), p.InUse(), p.DataRoom())
	}
	p.Free()
	p.Free()
}

func TestDescriptors(t *testing.T) {
	for _, c := range [][3]int{{0, 8191, 1024}, {0, 2048, 1024}, {0, 2047, 512}, {0, 100, 32}, {0, 10, 32}, {77, 10, 77}, {1 << 20, 1, 32768}} {
		if n := descriptors(c[0], c[1]); int(n) != c[2] {
			t.Errorf("descriptors(%d, %d) = %d, want %d", c[0], c[1], n, c[2])
		}
	}
}

// Every step by itself, with nothing to do, and with limits out of range.
func TestEmptyExchange(t *testing.T) {
	a, b, _ := ringLanes(t, 127, 64)
	for _, op := range []Op{0, OpYield, OpFree, OpTx, OpRx, OpYield | OpFree | OpTx | OpStock | OpRx} {
		a.Want = 0
		a.Exchange(op)
		if a.NRx != 0 || a.NTx != 0 || a.NStock != 0 || a.NFree != 0 || a.TxRefuse != 0 {
			t.Errorf("op %x: %+v", op, []uint32{a.NRx, a.NTx, a.NStock, a.NFree})
		}
	}
	b.RxMax = 0
	b.Exchange(OpRx)
	b.RxMax = 1 << 30 // more than there is room for
	b.Exchange(OpRx)
	a.Want = 1 << 30
	a.Exchange(OpStock)
	if a.NStock > StockCap {
		t.Errorf("stock %d", a.NStock)
	}
	if a.Hz() < 1e8 {
		t.Errorf("clock of %d Hz", a.Hz())
	}
}
