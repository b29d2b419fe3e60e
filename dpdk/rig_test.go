//go:build cgo

package dpdk

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

var rigs atomic.Int32

// newPool makes a pool that must be whole again when the test ends.
func newPool(t testing.TB, n int) *Mempool {
	t.Helper()
	pool, err := NewMempool(fmt.Sprintf("pool%d", rigs.Add(1)), n, 0, -1, -1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := pool.InUse(); n != 0 {
			t.Errorf("%d buffers are still out of the pool", n)
		}
		pool.Free()
	})
	return pool
}

// openPort configures and starts a port, and closes it when the test ends.
func openPort(t testing.TB, id uint16, conf PortConf) *Port {
	t.Helper()
	p, err := ConfigurePort(id, conf)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func newLane(t testing.TB, p *Port, rxq, txq int, pool *Mempool) *Lane {
	t.Helper()
	l, err := p.NewLane(rxq, txq, pool)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// ringLanes is a net_ring pair with one lane at each end, and the pool that all buffers come from. The calling thread
// becomes an lcore, so that the pool's cache is used.
func ringLanes(t testing.TB, poolSize, ringSize int) (a, b *Lane, pool *Mempool) {
	t.Helper()
	lcore(t)
	pool = newPool(t, poolSize)
	ia, ib := ringPorts(t, ringSize)
	a = newLane(t, openPort(t, ia, PortConf{RxPool: pool}), 0, 0, pool)
	b = newLane(t, openPort(t, ib, PortConf{RxPool: pool}), 0, 0, pool)
	return a, b, pool
}

func ringPorts(t testing.TB, size int) (a, b uint16) {
	t.Helper()
	a, b, err := RingPair(fmt.Sprintf("r%d", rigs.Add(1)), size)
	if err != nil {
		t.Fatal(err)
	}
	return a, b
}

func lcore(t testing.TB) {
	t.Helper()
	runtime.LockOSThread()
	if _, err := RegisterLcore(-1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		UnregisterLcore()
		runtime.UnlockOSThread()
	})
}

// queue puts a frame of n bytes, all with the value v, on the transmit list.
func queue(t testing.TB, l *Lane, n int, v byte, flags Flags) Handle {
	t.Helper()
	f, ok := l.Take()
	if !ok {
		t.Fatal("the stock is empty")
	}
	f.Len, f.Flags = uint32(n), flags
	copy(f.Bytes(), bytes.Repeat([]byte{v}, n))
	l.Queue(f)
	return f.Handle
}

// releaseAll frees what the last exchange received.
func releaseAll(l *Lane) {
	for i := range l.NRx {
		l.Release(l.Rx[i].Handle)
	}
	l.Exchange(OpFree)
}

// child runs a part of this binary; cred is the user to run as (nil: as we are). It returns what the part printed.
func child(t testing.TB, part, arg string, attr *syscall.SysProcAttr, env ...string) (string, error) {
	t.Helper()
	cmd := childCmd(part, arg, env...)
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func childCmd(part, arg string, env ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(append(os.Environ(), childEnv+"="+part, childEnv+"_ARG="+arg), env...)
	return cmd
}

// wantError checks an error's number and that its text contains each of parts.
func wantError(t testing.TB, err error, errno syscall.Errno, parts ...string) {
	t.Helper()
	if err == nil {
		t.Error("no error")
		return
	}
	if errno != 0 && !errors.Is(err, errno) {
		t.Errorf("error is not %v: %v", errno, err)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("error does not say %q: %v", p, err)
		}
	}
}
