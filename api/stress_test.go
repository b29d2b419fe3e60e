package api

import (
	"bytes"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/stack/link"
)

// TestEdgeServer is an echo server as epoll programs are written, on edges and with non-blocking calls: an edge that is
// lost is a client that waits for ever. The clients' bytes are many more than a window holds.
func TestEdgeServer(t *testing.T) {
	both(t, func(t *testing.T, cfg Config) {
		cfg.RcvBuf, cfg.SndBuf = 16<<10, 16<<10
		a, b := linkHosts(t, cfg, link.Config{})
		const conns, size = 12, 200 << 10
		l := listen(t, b, conns)
		ep, err := b.EpollCreate()
		ok(t, err)
		ok(t, b.EpollCtl(ep, unix.EPOLL_CTL_ADD, l, &EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET, Data: 1 << 40}))
		at, err := b.Getsockname(l)
		ok(t, err)
		var server, clients sync.WaitGroup
		server.Add(1)
		go func() {
			defer server.Done()
			edgeServer(t, b, ep, l)
		}()
		for i := range conns {
			clients.Add(1)
			go func() {
				defer clients.Done()
				edgeClient(t, a, at, random(uint64(i), size))
			}()
		}
		waitFor(t, &clients, 60*time.Second, a, b)
		ok(t, b.Close(ep))
		server.Wait()
	})
}

func edgeServer(t *testing.T, h *Host, ep, l int) {
	evs := make([]EpollEvent, 5)
	held := map[int][]byte{}
	ended := map[int]bool{}
	buf := make([]byte, 3000)
	serve := func(fd int) {
		for {
			for len(held[fd]) > 0 {
				n, err := h.Write(fd, held[fd])
				if err == unix.EAGAIN {
					return // EPOLLOUT comes when there is room
				}
				if err != nil {
					t.Errorf("write: %v", err)
					return
				}
				held[fd] = held[fd][n:]
			}
			if ended[fd] {
				_ = h.Close(fd)
				delete(held, fd)
				delete(ended, fd)
				return
			}
			n, err := h.Read(fd, buf)
			switch {
			case err == unix.EAGAIN:
				return
			case err != nil:
				t.Errorf("read: %v", err)
				return
			case n == 0:
				ended[fd] = true
			}
			held[fd] = append(held[fd], buf[:n]...)
		}
	}
	for {
		n, err := h.EpollWait(ep, evs, -1)
		if err != nil {
			return
		}
		for _, e := range evs[:n] {
			if e.Data != 1<<40 {
				serve(int(e.Data))
				continue
			}
			for {
				fd, _, err := h.Accept(l)
				if err != nil {
					break
				}
				events := uint32(unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET)
				if err := h.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &EpollEvent{Events: events, Data: uint64(fd)}); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

func edgeClient(t *testing.T, h *Host, at netip.AddrPort, want []byte) {
	fd, err := h.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err == nil {
		err = h.Connect(fd, at)
	}
	if err != nil {
		t.Error(err)
		return
	}
	defer h.Close(fd)
	go func() {
		_, _ = h.Write(fd, want)
		_ = h.Shutdown(fd, unix.SHUT_WR)
	}()
	got := make([]byte, 0, len(want))
	for p := make([]byte, 5000); ; {
		n, err := h.Read(fd, p)
		if err != nil {
			t.Errorf("client: %v", err)
			return
		}
		if n == 0 {
			break
		}
		got = append(got, p[:n]...)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d came back, or others", len(got), len(want))
	}
}

// TestCloseUnderHands closes sockets while other goroutines are in all kinds of calls on them, and their descriptors are
// given out anew.
func TestCloseUnderHands(t *testing.T) {
	a, b := linkHosts(t, Config{}, link.Config{})
	l := listen(t, b, 64)
	ep, err := b.EpollCreate()
	ok(t, err)
	stop := make(chan bool)
	var pollers sync.WaitGroup
	pollers.Add(1)
	go func() {
		defer pollers.Done()
		evs := make([]EpollEvent, 8)
		for {
			select {
			case <-stop:
				return
			default:
				_, _ = b.EpollWait(ep, evs, 1)
			}
		}
	}()
	for range 100 {
		ca, cb := dialTo(t, a, b, l, 0)
		var wg sync.WaitGroup
		for _, f := range []func(){
			func() { _, _ = b.Read(cb, make([]byte, 100)) },
			func() { _, _ = b.Write(cb, make([]byte, 100)) },
			func() { _ = b.EpollCtl(ep, unix.EPOLL_CTL_ADD, cb, &EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT}) },
			func() { _, _ = b.GetSockOptInt(cb, unix.SOL_SOCKET, unix.SO_ERROR) },
			func() { _ = b.Shutdown(cb, unix.SHUT_RD) },
			func() { _ = b.SetReadDeadline(cb, time.Now().Add(time.Second)) },
			func() {
				var bufs [2]Buf
				n, _ := b.Alloc(cb, bufs[:])
				k, _ := b.Send(cb, bufs[:n])
				_ = b.Free(cb, bufs[k:n])
			},
		} {
			wg.Add(1)
			go func() { defer wg.Done(); f() }()
		}
		_, _ = a.Write(ca, []byte("x"))
		ok(t, b.Close(cb))
		wg.Wait()
		ok(t, a.Close(ca))
	}
	close(stop)
	pollers.Wait()
}

// TestManySleepers has thousands of goroutines blocked in reads, and one connection at work among them: what it costs
// must not depend on the sleepers.
func TestManySleepers(t *testing.T) {
	a, b := linkHosts(t, Config{RcvBuf: 8 << 10, SndBuf: 8 << 10}, link.Config{})
	l := listen(t, b, 4096)
	x, y := dialTo(t, a, b, l, 0)
	go func() {
		p := make([]byte, 1)
		for {
			if n, _ := b.Read(y, p); n != 1 {
				return
			}
			_, _ = b.Write(y, p)
		}
	}()
	trips := func() time.Duration {
		p := make([]byte, 1)
		begin := cpuTimeOfProcess()
		for range 300 {
			_, err := a.Write(x, p)
			ok(t, err)
			_, err = a.Read(x, p)
			ok(t, err)
		}
		return (cpuTimeOfProcess() - begin) / 300
	}
	trips()
	alone := trips()
	var wg sync.WaitGroup
	var fds []int
	for range 3000 {
		_, cb := dialTo(t, a, b, l, 0)
		fds = append(fds, cb)
		wg.Add(1)
		go func() {
			defer wg.Done()
			_, _ = b.Read(cb, make([]byte, 1))
		}()
	}
	among := trips()
	t.Logf("a round trip takes %v of CPU alone, %v among 3000 sleepers", alone, among)
	if among > 10*alone+time.Millisecond {
		t.Errorf("a round trip takes %v of CPU among 3000 sleepers, %v alone", among, alone)
	}
	for _, fd := range fds {
		ok(t, b.Close(fd))
	}
	wg.Wait()
}

func cpuTimeOfProcess() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
