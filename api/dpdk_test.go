package api

import (
	"fmt"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"ndpip/dpdk"
)

var (
	eal   sync.Once
	pairs atomic.Int32
)

// needEAL starts DPDK once, as a program does that attaches its hosts to it.
func needEAL(t testing.TB) {
	t.Helper()
	eal.Do(func() {
		if _, err := dpdk.EalInit(dpdk.DefaultArgs(!dpdk.HasHugepages(), 256, fmt.Sprintf("ndpip-api-%d", os.Getpid()))); err != nil {
			t.Fatal(err)
		}
	})
}

// ringHosts is two hosts on a net_ring pair.
func ringHosts(t testing.TB, cfg Config) (a, b *Host) {
	t.Helper()
	needEAL(t)
	ida, idb, err := dpdk.RingPair(fmt.Sprintf("api%d", pairs.Add(1)), 4096)
	if err != nil {
		t.Fatal(err)
	}
	open := func(id uint16, addr string) *Host {
		cfg.Port, cfg.Addr, cfg.WorkerCPU = int(id), netip.MustParsePrefix(addr), -1
		cfg.MAC = []byte{2, 0, 0, 0, 0, byte(id)}
		h, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := h.Stop(); err != nil {
				t.Error(err)
			}
		})
		return h
	}
	return open(ida, "10.0.0.1/24"), open(idb, "10.0.0.2/24")
}

// connected is a connection between two inline hosts.
func connected(t testing.TB, a, b *Host, opts map[int]int) (ca, cb int) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil && err != unix.EINPROGRESS {
			t.Fatal(err)
		}
	}
	l, err := b.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	must(err)
	must(b.Bind(l, netip.AddrPortFrom(b.Addr(), 0)))
	must(b.Listen(l, 16))
	at, err := b.Getsockname(l)
	must(err)
	ca, err = a.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	must(err)
	for name, v := range opts {
		must(a.SetSockOptInt(ca, unix.SOL_SOCKET, name, v))
	}
	must(a.Connect(ca, at))
	for range 1000000 {
		a.poll()
		if cb, _, err = b.Accept(l); err != unix.EAGAIN {
			break
		}
	}
	must(err)
	a.poll()
	must(b.Close(l))
	return ca, cb
}
