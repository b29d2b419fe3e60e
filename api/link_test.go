package api

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/dpdk"
	"ndpip/stack"
	"ndpip/stack/link"
	"ndpip/tcp"
)

// linkPort is an end of a link as a host's device. With the host gone every buffer has to be back.
type linkPort struct {
	end         *link.End
	worker, app *dpdk.Lane
}

func newLinkPort(e *link.End) *linkPort {
	return &linkPort{end: e, worker: e.NewLane(true), app: e.NewLane(false)}
}

func (p *linkPort) stats() (uint64, int) {
	s := p.end.Stats()
	return s.Missed + s.NoBuffer, p.end.InUse()
}
func (p *linkPort) linkUp() bool { return true }

func (p *linkPort) sleeper() (*dpdk.Sleeper, error) { return (*dpdk.Port)(nil).NewSleeper(0) }

func (p *linkPort) look() PortView { return PortView{Name: "link", Link: true} }

func (p *linkPort) release() error {
	p.end.FreeLane(p.worker)
	p.end.FreeLane(p.app)
	if n := p.end.InUse(); n != 0 {
		return fmt.Errorf("%d buffers of end %s have not come back", n, p.end)
	}
	return nil
}

// quick are protocol times for tests in real time.
func quick() tcp.Params {
	p := tcp.DefaultParams()
	p.InitRTO, p.MinRTO, p.TimeWait, p.FinWait2, p.SynRetries = 2e8, 2e7, 1e9, 1e9, 3
	return p
}

// linkHosts is two hosts in memory, 10.0.0.1 and 10.0.0.2. They are stopped when the test ends, and must not have lost a
// buffer.
func linkHosts(t testing.TB, cfg Config, lc link.Config) (a, b *Host) {
	t.Helper()
	lc.Wall = true
	if lc.A.Buffers == 0 {
		lc.A.Buffers, lc.A.TxBuffers, lc.B.Buffers, lc.B.TxBuffers = 2048, 2048, 2048, 2048
	}
	l := link.New(lc)
	return linkHost(t, cfg, l.A, 1, lc.A), linkHost(t, cfg, l.B, 2, lc.B)
}

func linkHost(t testing.TB, cfg Config, e *link.End, n byte, p link.Port) *Host {
	t.Helper()
	cfg.Addr = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, n}), 24)
	cfg.Yield = true
	cfg.WorkerCPU = -1
	port := newLinkPort(e)
	st := stack.New(stack.Config{
		MAC: [6]byte{2, 0, 0, 0, 0, n}, Addr: cfg.Addr, MSS: cfg.MSS, MTU: cfg.MTU, RcvBuf: cfg.RcvBuf, SndBuf: cfg.SndBuf,
		Checksum: cfg.Checksum, TCP: quick(), RxBuffers: p.Buffers,
	}, *port.worker, *port.app)
	h, err := newHost(cfg, st, port, nil)
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

// dial makes a connection from a to b. With nonblocking hosts' worker or without.
func dial(t testing.TB, a, b *Host, flags int) (ca, cb int) {
	t.Helper()
	l := listen(t, b, 16)
	defer b.Close(l)
	return dialTo(t, a, b, l, flags)
}

func listen(t testing.TB, h *Host, backlog int) int {
	t.Helper()
	l, err := h.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	ok(t, err)
	ok(t, h.Bind(l, netip.AddrPortFrom(h.Addr(), 0)))
	ok(t, h.Listen(l, backlog))
	return l
}

func dialTo(t testing.TB, a, b *Host, l, flags int) (ca, cb int) {
	t.Helper()
	at, err := b.Getsockname(l)
	ok(t, err)
	ca, err = a.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	ok(t, err)
	if err := a.Connect(ca, at); err != unix.EINPROGRESS {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		a.poll()
		cb, _, err = b.Accept(l)
		return err != unix.EAGAIN
	})
	ok(t, err)
	eventually(t, func() bool {
		a.poll()
		_, err := a.Getpeername(ca)
		return err == nil
	})
	ok(t, a.SetNonblock(ca, flags&unix.SOCK_NONBLOCK != 0))
	ok(t, b.SetNonblock(cb, flags&unix.SOCK_NONBLOCK != 0))
	return ca, cb
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits for cond, for a machine that is busy with other things too.
func eventually(t testing.TB, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !cond(); {
		if time.Now().After(end) {
			t.Fatal("it did not come to that within 20 s")
		}
		time.Sleep(50 * time.Microsecond)
	}
}
