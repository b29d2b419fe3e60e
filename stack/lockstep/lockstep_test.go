//go:build cgo

// Package lockstep_test runs two stacks over a net_ring pair of DPDK, on one thread, turn by turn.
package lockstep_test

import (
	"bytes"
	"net/netip"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"ndpip/dpdk"
	"ndpip/stack"
	"ndpip/tcp"
)

func TestMain(m *testing.M) {
	runtime.LockOSThread()
	noHuge := !dpdk.HasHugepages()
	if _, err := dpdk.EalInit(dpdk.DefaultArgs(noHuge, 256, "ndpip-lockstep-test")); err != nil {
		println(err.Error())
		os.Exit(1)
	}
	if _, err := dpdk.RegisterLcore(-1); err != nil {
		println(err.Error())
	}
	code := m.Run()
	_ = dpdk.EalCleanup()
	os.Exit(code)
}

type end struct {
	*stack.Stack
	port *dpdk.Port
	pool *dpdk.Mempool
}

func pair(t testing.TB, cfg stack.Config) (a, b end) {
	ida, idb, err := dpdk.RingPair("lockstep", 4096)
	if err != nil {
		t.Fatal(err)
	}
	mk := func(id uint16, ip string) end {
		pool, err := dpdk.NewMempool("p"+ip, 8191, 2176, 64, 0)
		if err != nil {
			t.Fatal(err)
		}
		p, err := dpdk.ConfigurePort(id, dpdk.PortConf{RxQueues: 1, TxQueues: 1, RxDesc: 1024, TxDesc: 1024, RxPool: pool})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		w, err := p.NewLane(0, 0, pool)
		if err != nil {
			t.Fatal(err)
		}
		ap, err := p.NewLane(-1, 0, pool)
		if err != nil {
			t.Fatal(err)
		}
		c := cfg
		c.MAC = [6]byte{2, 0, 0, 0, 0, byte(id)}
		c.Addr = netip.MustParsePrefix(ip + "/24")
		s := stack.New(c, *w, *ap)
		return end{s, p, pool}
	}
	return mk(ida, "10.0.0.1"), mk(idb, "10.0.0.2")
}

const ipA, ipB = 0x0a000001, 0x0a000002

func open(t testing.TB, a, b end, mss int) (ca, cb *tcp.Conn) {
	l, e := b.Listen(0, 80, 16, stack.Options{}, 0)
	if e != 0 {
		t.Fatal(e)
	}
	ca, e = a.Connect(0, ipB, 80, stack.Options{MaxTxSeg: mss}, 1)
	if e != 0 {
		t.Fatal(e)
	}
	for range 1000 {
		a.Turn()
		b.Turn()
		if cb = b.Accept(l); cb != nil {
			break
		}
	}
	if cb == nil {
		t.Fatalf("no connection: %v %+v %+v", ca.State(), a.Counters(), b.Counters())
	}
	return ca, cb
}

func TestLockstep(t *testing.T) {
	a, b := pair(t, stack.Config{})
	ca, cb := open(t, a, b, 1460)
	var want, got bytes.Buffer
	out, in := make([]byte, 50000), make([]byte, 20000)
	for i := range out {
		out[i] = byte(i * 7 >> 3)
	}
	for i := 0; i < 200; i++ {
		n, e := a.Send(ca, out[:i*100])
		if e != 0 && e != syscall.EAGAIN {
			t.Fatal(e)
		}
		want.Write(out[:n])
		b.Turn()
		n, e = b.Recv(cb, in)
		if e != 0 && e != syscall.EAGAIN {
			t.Fatal(e)
		}
		got.Write(in[:n])
		a.Turn()
	}
	a.Close(ca)
	for i := 0; i < 1000; i++ {
		b.Turn()
		n, e := b.Recv(cb, in)
		got.Write(in[:n])
		if e == 0 && n == 0 {
			break
		}
		a.Turn()
	}
	if !bytes.Equal(want.Bytes(), got.Bytes()) {
		t.Fatalf("sent %d, got %d bytes", want.Len(), got.Len())
	}
	b.Close(cb)
	for range 10 {
		a.Turn()
		b.Turn()
	}
	t.Logf("%v %+v", ca.State(), a.Counters())
	t.Logf("%v %+v", cb.State(), b.Counters())
}

func BenchmarkLockstep(tb *testing.B) {
	a, b := pair(tb, stack.Config{Checksum: stack.ChecksumOff})
	for _, mss := range []int{64, 256, 512, 1460} {
		tb.Run("", func(tb *testing.B) {
			ca, cb := openPort(tb, a, b, mss)
			out, in := make([]byte, 32*mss), make([]byte, 32*mss)
			start := time.Now()
			for i := 0; i < tb.N; i++ {
				n, e := a.Send(ca, out)
				if n != len(out) {
					tb.Fatal(i, n, e)
				}
				b.Turn()
				n, e = b.Recv(cb, in)
				if n != len(in) {
					tb.Fatal(i, n, e)
				}
				a.Turn()
			}
			tb.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(tb.N)/32, "ns/seg")
		})
	}
}

var port uint16 = 1000

func openPort(t testing.TB, a, b end, mss int) (ca, cb *tcp.Conn) {
	port++
	l, e := b.Listen(0, port, 16, stack.Options{}, 0)
	if e != 0 {
		t.Fatal(e)
	}
	ca, _ = a.Connect(0, ipB, port, stack.Options{MaxTxSeg: mss}, 1)
	for cb == nil {
		a.Turn()
		b.Turn()
		cb = b.Accept(l)
	}
	return ca, cb
}
