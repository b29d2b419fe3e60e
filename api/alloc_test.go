package api

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestNoAllocation moves bursts from one inline host to another: once a connection has its rings, none of the calls
// allocates, epoll_wait included.
func TestNoAllocation(t *testing.T) {
	x, y := ringHosts(t, Config{Inline: true, Checksum: ChecksumOff})
	release, err := PinThread(-1)
	require.NoError(t, err)
	defer release()
	const burst, mss = 32, 256
	cx, cy := connected(t, x, y, map[int]int{SO_NDPIP_MAX_TX_SEG: mss})
	defer func() {
		x.Close(cx)
		y.Close(cy)
	}()
	ex, err := x.EpollCreate()
	require.NoError(t, err)
	ey, err := y.EpollCreate()
	require.NoError(t, err)
	require.NoError(t, y.EpollCtl(ey, unix.EPOLL_CTL_ADD, cy, &EpollEvent{Events: unix.EPOLLIN, Data: 7}))
	events := make([]EpollEvent, 8)
	out, in, bufs := make([]byte, burst*mss), make([]byte, burst*mss), make([]Buf, burst)

	arrived := func() {
		if n, err := y.EpollWait(ey, events, 0); n != 1 || events[0].Data != 7 {
			t.Fatalf("epoll_wait named %d sockets (%v)", n, err)
		}
	}
	acknowledged := func() {
		if n, err := x.EpollWait(ex, events, 0); n != 0 || err != nil {
			t.Fatalf("epoll_wait named %d sockets (%v)", n, err)
		}
	}
	copied := func() {
		if n, err := x.Write(cx, out); n != len(out) {
			t.Fatalf("write moved %d of %d bytes (%v)", n, len(out), err)
		}
		arrived()
		if n, err := y.Read(cy, in); n != len(in) {
			t.Fatalf("read moved %d of %d bytes (%v)", n, len(in), err)
		}
		acknowledged()
	}
	lent := func() {
		if n, err := x.Alloc(cx, bufs); n != burst {
			t.Fatalf("alloc gave %d of %d buffers (%v)", n, burst, err)
		}
		if n, err := x.Send(cx, bufs); n != burst {
			t.Fatalf("send took %d of %d buffers (%v)", n, burst, err)
		}
		arrived()
		if n, err := y.Recv(cy, bufs); n != burst {
			t.Fatalf("recv gave %d of %d buffers (%v)", n, burst, err)
		}
		if err := y.Free(cy, bufs); err != nil {
			t.Fatal(err)
		}
		acknowledged()
	}
	copied()
	require.Zero(t, testing.AllocsPerRun(200, copied), "write, epoll_wait, read")
	lent()
	require.Zero(t, testing.AllocsPerRun(200, lent), "alloc, send, epoll_wait, recv, free")
	require.Zero(t, testing.AllocsPerRun(200, func() {
		if n, err := y.EpollWait(ey, events, 0); n != 0 || err != nil {
			t.Fatalf("epoll_wait named %d sockets (%v)", n, err)
		}
	}), "epoll_wait with nothing ready")
}
