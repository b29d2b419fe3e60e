package api

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"ndpip/stack/link"
)

// TestAcceptedInherits has an accepted socket take over what its listener was given, before listen or after.
func TestAcceptedInherits(t *testing.T) {
	a, b := linkHosts(t, Config{}, link.Config{})
	l := listen(t, b, 4)
	ok(t, b.SetSockOptInt(l, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1))
	ok(t, b.SetSockOptInt(l, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 11))
	ok(t, b.SetSockOptInt(l, unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 12))
	ok(t, b.SetSockOptInt(l, unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 13))
	ok(t, b.SetSockOptInt(l, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 1400))
	ok(t, b.SetSockOptInt(l, unix.SOL_SOCKET, unix.SO_RCVBUF, 15000))
	ok(t, b.SetSockOptTimeval(l, unix.SOL_SOCKET, unix.SO_RCVTIMEO, unix.Timeval{Sec: 16}))
	ok(t, b.SetLinger(l, true, 17))
	at, err := b.Getsockname(l)
	ok(t, err)
	for _, nonblock := range []bool{true, false} {
		ok(t, b.SetNonblock(l, nonblock))
		fd, err := a.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		ok(t, err)
		ok(t, a.Connect(fd, at))
		var c int
		var from netip.AddrPort
		eventually(t, func() bool {
			c, from, err = b.Accept(l)
			return err != unix.EAGAIN
		})
		ok(t, err)
		if own, err := a.Getsockname(fd); own != from {
			t.Errorf("accepted from %v, the peer is %v (%v)", from, own, err)
		}
		if on, err := b.Nonblock(c); on != nonblock {
			t.Errorf("O_NONBLOCK is %v, the listener's was %v (%v)", on, nonblock, err)
		}
		for _, o := range []struct{ level, name, want int }{
			{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1}, {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 11}, {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 12},
			{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 13}, {unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 1400}, {unix.SOL_SOCKET, unix.SO_RCVBUF, 15000},
			{unix.SOL_SOCKET, unix.SO_ACCEPTCONN, 0},
		} {
			if v, err := b.GetSockOptInt(c, o.level, o.name); v != o.want || err != nil {
				t.Errorf("option %d at level %d is %d, want %d (%v)", o.name, o.level, v, o.want, err)
			}
		}
		if v, err := b.GetSockOptTimeval(c, unix.SOL_SOCKET, unix.SO_RCVTIMEO); v.Sec != 16 {
			t.Error(v, err)
		}
		if v, err := b.Linger(c); v != (unix.Linger{Onoff: 1, Linger: 17}) {
			t.Error(v, err)
		}
		ok(t, b.SetLinger(c, false, 0))
		ok(t, a.Close(fd))
		ok(t, b.Close(c))
	}
}

// TestBacklogGrows changes a backlog, with connections waiting.
func TestBacklogGrows(t *testing.T) {
	a, b := linkHosts(t, Config{Inline: true}, link.Config{})
	l := listen(t, b, 2)
	at, err := b.Getsockname(l)
	ok(t, err)
	var fds []int
	connect := func(n int) (up int) {
		for range n {
			fd, err := a.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
			ok(t, err)
			if err := a.Connect(fd, at); err != unix.EINPROGRESS {
				t.Fatal(err)
			}
			fds = append(fds, fd)
		}
		for range 20 {
			a.poll()
			b.poll()
		}
		for _, fd := range fds {
			if _, err := a.Getpeername(fd); err == nil {
				up++
			}
		}
		return up
	}
	if n := connect(4); n != 3 { // one more than asked for, as on Linux
		t.Errorf("%d connections came up with a backlog of 2", n)
	}
	ok(t, b.Listen(l, 50))
	if n := connect(30); n != 33 { // the one that was refused comes again later
		t.Errorf("%d connections came up with a backlog of 50, want 33", n)
	}
	for range 33 {
		_, _, err := b.Accept(l)
		ok(t, err)
	}
	if _, _, err := b.Accept(l); err != unix.EAGAIN {
		t.Error(err)
	}
}

// TestTCPInfo looks at TCP_INFO in several states.
func TestTCPInfo(t *testing.T) {
	a, b := linkHosts(t, Config{}, link.Config{})
	l := listen(t, b, 4)
	state := func(h *Host, fd int, want uint8) *unix.TCPInfo {
		t.Helper()
		i, err := h.GetTCPInfo(fd)
		ok(t, err)
		if i.State != want {
			t.Errorf("state %d, want %d", i.State, want)
		}
		return i
	}
	const established, finWait2, closed, closeWait, listening = 1, 5, 7, 8, 10
	state(b, l, listening)
	fd, err := a.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	ok(t, err)
	state(a, fd, closed)
	ca, cb := dialTo(t, a, b, l, 0)
	i := state(a, ca, established)
	if i.Snd_mss != 1460 || i.Rto == 0 || i.Snd_wnd == 0 || i.Unacked != 0 || i.Pmtu != 1500 {
		t.Errorf("%+v", i)
	}
	raw := make([]byte, 4)
	if n, err := a.GetSockOpt(ca, unix.IPPROTO_TCP, unix.TCP_INFO, raw); n != 4 || raw[0] != established {
		t.Error(n, raw, err)
	}
	ok(t, a.Shutdown(ca, unix.SHUT_WR))
	eventually(t, func() bool { i, _ := a.GetTCPInfo(ca); return i.State == finWait2 })
	state(b, cb, closeWait)
	u, err := a.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	ok(t, err)
	if _, err := a.GetTCPInfo(u); err == nil {
		t.Error("TCP_INFO of a UDP socket")
	}
}

// TestZeroCopyUDP sends and receives datagrams in the port's buffers.
func TestZeroCopyUDP(t *testing.T) {
	both(t, func(t *testing.T, cfg Config) {
		a, b := linkHosts(t, cfg, link.Config{})
		s, err := b.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		ok(t, err)
		ok(t, b.Bind(s, netip.AddrPortFrom(b.Addr(), 9)))
		c, err := a.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		ok(t, err)
		bufs := make([]Buf, 20)
		n, err := a.Alloc(c, bufs)
		ok(t, err)
		if n != 20 || bufs[0].Len() != 1472 {
			t.Fatal(n, bufs[0].Len())
		}
		if k, err := a.Send(c, bufs); k != 0 || err != unix.EDESTADDRREQ || bufs[0].IsZero() {
			t.Error(k, err)
		}
		ok(t, a.Connect(c, netip.AddrPortFrom(b.Addr(), 9)))
		for i := range bufs {
			ok(t, bufs[i].Resize(i))
			for j := range bufs[i].Bytes() {
				bufs[i].Bytes()[j] = byte(i)
			}
		}
		k, err := a.Send(c, bufs[:10]) // the next hop is not known yet
		if k != 10 || err != nil || !bufs[9].IsZero() || bufs[10].IsZero() {
			t.Fatal(k, err)
		}
		k, err = a.SendBufsTo(c, bufs[10:], netip.AddrPortFrom(b.Addr(), 9))
		if k != 10 || err != nil {
			t.Fatal(k, err)
		}
		var got [20]bool
		in := make([]Buf, 7)
		for left := 20; left > 0; {
			n := 0
			eventually(t, func() bool {
				a.poll()
				b.poll()
				ok(t, b.SetNonblock(s, true))
				n, err = b.Recv(s, in)
				return err != unix.EAGAIN
			})
			ok(t, err)
			left -= n
			for i := range in[:n] {
				p := in[i].Bytes()
				for _, x := range p {
					if int(x) != len(p) {
						t.Errorf("a datagram of %d bytes has %d in it", len(p), x)
					}
				}
				got[len(p)] = true
			}
			ok(t, b.Free(s, in[:n]))
		}
		for i, g := range got {
			if !g {
				t.Errorf("datagram %d has not come", i)
			}
		}
	})
}

// TestOwnAddress: there is no loopback.
func TestOwnAddress(t *testing.T) {
	a, _ := linkHosts(t, Config{}, link.Config{})
	fd, err := a.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	ok(t, err)
	if err := a.Connect(fd, netip.AddrPortFrom(a.Addr(), 80)); err != unix.ENETUNREACH {
		t.Error(err)
	}
}
