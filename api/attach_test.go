package api

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"ndpip/dpdk"
)

// carry sends n bytes from a to b over a connection, and checks them.
func carry(t *testing.T, a, b *Host, n int) {
	t.Helper()
	l, err := b.Net().Listen("tcp", ":0")
	require.NoError(t, err)
	defer l.Close()
	sum := make(chan int, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			sum <- -1
			return
		}
		defer c.Close()
		got, err := io.Copy(io.Discard, c)
		if err != nil {
			got = -1
		}
		sum <- int(got)
	}()
	c, err := a.Net().Dial("tcp", netip.AddrPortFrom(b.Addr(), uint16(l.Addr().(*net.TCPAddr).Port)).String())
	require.NoError(t, err)
	_, err = c.Write(make([]byte, n))
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.Equal(t, n, <-sum)
}

func testConfig(addr string) Config {
	return Config{Addr: netip.MustParsePrefix(addr), WorkerCPU: -1, Yield: true, Mbufs: 2048}
}

// TestOpenLink has two hosts on queue 1 of two ports that the test runs, while it uses queue 0 itself. Twice: the ports stay.
func TestOpenLink(t *testing.T) {
	needEAL(t)
	ida, idb, err := dpdk.RingPairQueues(fmt.Sprintf("api%d", pairs.Add(1)), 1024, 2)
	require.NoError(t, err)
	pool, err := dpdk.NewMempool(fmt.Sprintf("own%d", ida), 4095, 3000, 192, -1)
	require.NoError(t, err)
	var ports [2]*dpdk.Port
	for i, id := range []uint16{ida, idb} {
		ports[i], err = dpdk.ConfigurePort(id, dpdk.PortConf{RxQueues: 2, TxQueues: 2, RxPool: pool})
		require.NoError(t, err)
		require.NoError(t, ports[i].Start())
	}
	for range 2 {
		a, err := OpenLink(testConfig("10.0.0.1/24"), Link{Port: ports[0], RxQueue: 1, TxQueues: [2]int{1, 1}, Pool: pool})
		require.NoError(t, err)
		var launched atomic.Bool
		b, err := OpenLink(testConfig("10.0.0.2/24"), Link{Port: ports[1], RxQueue: 1, TxQueues: [2]int{1, 1},
			Launch: func(work func()) error { launched.Store(true); go work(); return nil }})
		require.NoError(t, err)
		require.True(t, launched.Load())
		carry(t, a, b, 4<<20)
		require.NoError(t, a.Stop())
		require.NoError(t, b.Stop())
		for i := range ports { // what was said last lies in the rings
			var f [64]dpdk.Handle
			for n := ports[i].RxBurst(1, f[:]); n > 0; n = ports[i].RxBurst(1, f[:]) {
				dpdk.FreeBufs(f[:n])
			}
		}
		require.Zero(t, pool.InUse())
		var f [1]dpdk.Handle
		require.Zero(t, ports[0].RxBurst(0, f[:]))
	}
	for _, p := range ports {
		require.NoError(t, p.Close())
	}
	pool.Free()
}

func TestOpenLinkErrors(t *testing.T) {
	needEAL(t)
	_, err := OpenLink(testConfig("10.0.0.1/24"), Link{})
	require.ErrorContains(t, err, "Link.Port")
	_, err = OpenLink(Config{}, Link{})
	require.ErrorContains(t, err, "Addr")
	a, b, err := dpdk.RingPair(fmt.Sprintf("api%d", pairs.Add(1)), 64)
	require.NoError(t, err)
	pool, err := dpdk.NewMempool(fmt.Sprintf("own%d", a), 255, 0, -1, -1)
	require.NoError(t, err)
	for _, id := range []uint16{a, b} {
		p, err := dpdk.ConfigurePort(id, dpdk.PortConf{RxPool: pool})
		require.NoError(t, err)
		require.NoError(t, p.Start())
		_, err = OpenLink(testConfig("10.0.0.1/24"), Link{Port: p, RxQueue: 3})
		require.ErrorContains(t, err, "receive queue 3")
		_, err = OpenLink(testConfig("10.0.0.1/24"), Link{Port: p, Launch: func(func()) error { return unix.EBUSY }})
		require.ErrorIs(t, err, unix.EBUSY)
		require.NoError(t, p.Close())
	}
	pool.Free()
}

// TestFeed joins two hosts by a loop of the test's own.
func TestFeed(t *testing.T) {
	needEAL(t)
	open := func(addr string) (*Host, *Feed) {
		h, f, err := OpenFeed(testConfig(addr))
		require.NoError(t, err)
		return h, f
	}
	a, fa := open("10.0.0.1/24")
	b, fb := open("10.0.0.2/24")
	var stop atomic.Bool
	carried := make(chan int)
	go func() {
		n := 0
		for !stop.Load() {
			n += pass(fa, fb) + pass(fb, fa)
			_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		}
		carried <- n
	}()
	carry(t, a, b, 4<<20)
	carry(t, b, a, 4<<20)
	require.NoError(t, a.Stop())
	require.NoError(t, b.Stop())
	stop.Store(true)
	require.Greater(t, <-carried, 2*4<<20/1460)
	var one [1]dpdk.Handle
	require.Zero(t, fa.Output(one[:]))
	require.Zero(t, fa.Input(one[:]))
}

// pass carries frames one way. What the other end has no room for is lost, as on a wire.
func pass(from, to *Feed) int {
	var f [32]dpdk.Handle
	n := from.Output(f[:])
	k := to.Input(f[:n])
	dpdk.FreeBufs(f[k:n])
	return k
}
