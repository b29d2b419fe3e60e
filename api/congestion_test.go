package api

import (
	"bytes"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/stack"
	"ndpip/stack/link"
)

func TestCongestion(t *testing.T) {
	a, b := linkHosts(t, Config{Inline: true}, link.Config{AB: link.Path{Delay: time.Millisecond}})
	fd, err := a.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	ok(t, err)
	value := func(fd int, want string, profile int) {
		t.Helper()
		var b [16]byte
		if n, err := a.GetSockOpt(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, b[:]); n != 16 || err != nil || string(bytes.TrimRight(b[:], "\x00")) != want {
			t.Errorf("TCP_CONGESTION is %q (%d bytes, %v), want %s", b, n, err, want)
		}
		if v, err := a.GetSockOptInt(fd, unix.SOL_SOCKET, SO_NDPIP_PROFILE); v != profile || err != nil {
			t.Errorf("the profile is %d (%v), want %d", v, err, profile)
		}
	}
	value(fd, "none", 0)
	ok(t, a.SetSockOptInt(fd, unix.SOL_SOCKET, SO_NDPIP_PROFILE, 1))
	value(fd, "cubic", 1)
	ok(t, a.SetSockOpt(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, []byte("reno\x00rest")))
	value(fd, "reno", 1)
	ok(t, a.SetSockOptInt(fd, unix.SOL_SOCKET, SO_NDPIP_PROFILE, 1)) // it stays what it was
	value(fd, "reno", 1)
	ok(t, a.SetSockOptInt(fd, unix.SOL_SOCKET, SO_NDPIP_PROFILE, 0))
	value(fd, "none", 0)
	for _, name := range stack.ControlNames() {
		ok(t, a.SetCongestion(fd, name))
		value(fd, name, 1)
	}
	if err := a.SetCongestion(fd, "vegas"); err != unix.ENOENT {
		t.Error(err)
	}
	if err := a.SetSockOptInt(fd, unix.SOL_SOCKET, SO_NDPIP_PROFILE, 2); err != unix.EINVAL {
		t.Error(err)
	}
	l := listen(t, b, 4)
	at, err := b.Getsockname(l)
	ok(t, err)
	ok(t, a.SetCongestion(fd, "scalable"))
	if err := a.Connect(fd, at); err != unix.EINPROGRESS {
		t.Fatal(err)
	}
	value(fd, "scalable", 1)
	if err := a.SetCongestion(fd, "reno"); err != unix.EISCONN {
		t.Error(err)
	}
	info := func() *unix.TCPInfo {
		i, err := a.GetTCPInfo(fd)
		ok(t, err)
		return i
	}
	eventually(t, func() bool { a.poll(); b.poll(); return info().State == 1 })
	if w := info().Snd_cwnd; w != 10 {
		t.Errorf("a congestion window of %d segments, want 10", w)
	}
	u, err := a.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	ok(t, err)
	if err := a.SetCongestion(u, "reno"); err != unix.ENOPROTOOPT {
		t.Error(err)
	}
}

// A host's Config has the control of its sockets.
func TestCongestionByDefault(t *testing.T) {
	a, _ := linkHosts(t, Config{Inline: true, Congestion: "fast"}, link.Config{})
	fd, err := a.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	ok(t, err)
	if name, err := a.Congestion(fd); name != "fast" || err != nil {
		t.Error(name, err)
	}
	ok(t, a.SetCongestion(fd, "none"))
	if name, _ := a.Congestion(fd); name != "none" {
		t.Error(name)
	}
	c := Config{Addr: a.cfg.Addr, Congestion: "westwood"}
	if err := c.check(); err == nil {
		t.Error("no such control, and no error")
	}
}
