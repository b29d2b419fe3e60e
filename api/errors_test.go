package api

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// states are the kinds of descriptors that calls are tried on. Each makes a fresh one.
var states = []struct {
	name string
	make func(w *world) (fd int, cleanup func())
}{
	{"none", func(w *world) (int, func()) { return 100000, nil }},
	{"negative", func(w *world) (int, func()) { return -1, nil }},
	{"closed", func(w *world) (int, func()) {
		fd := w.tcp(w.cli)
		w.must(w.cli.Close(fd))
		return fd, nil
	}},
	{"epoll", func(w *world) (int, func()) {
		fd, err := w.cli.EpollCreate()
		w.must(err)
		return fd, nil
	}},
	{"tcp", func(w *world) (int, func()) { return w.tcp(w.cli), nil }},
	{"tcp bound", func(w *world) (int, func()) {
		fd := w.tcp(w.cli)
		w.must(w.cli.Bind(fd, netip.AddrPortFrom(w.cliAddr, 0)))
		return fd, nil
	}},
	{"listening", func(w *world) (int, func()) {
		fd := w.tcp(w.cli)
		w.must(w.cli.Bind(fd, netip.AddrPortFrom(w.cliAddr, 0)))
		w.must(w.cli.Listen(fd, 5))
		return fd, nil
	}},
	{"connecting", func(w *world) (int, func()) { return w.connecting() }},
	{"refused", func(w *world) (int, func()) {
		l, at := w.listener(1)
		w.must(w.srv.Close(l))
		w.settle()
		fd := w.tcp(w.cli)
		w.must(w.cli.Connect(fd, at))
		w.settle()
		return fd, nil
	}},
	{"connected", func(w *world) (int, func()) {
		c, s := w.pair()
		return c, func() { w.srv.Close(s) }
	}},
	{"data waits", func(w *world) (int, func()) {
		c, s := w.pair()
		_, err := w.srv.Write(s, []byte("hello"))
		w.must(err)
		w.settle()
		return c, func() { w.srv.Close(s) }
	}},
	{"shut for writing", func(w *world) (int, func()) {
		c, s := w.pair()
		w.must(w.cli.Shutdown(c, unix.SHUT_WR))
		w.settle()
		return c, func() { w.srv.Close(s) }
	}},
	{"shut for reading", func(w *world) (int, func()) {
		c, s := w.pair()
		w.must(w.cli.Shutdown(c, unix.SHUT_RD))
		return c, func() { w.srv.Close(s) }
	}},
	{"shut for both", func(w *world) (int, func()) {
		c, s := w.pair()
		w.must(w.cli.Shutdown(c, unix.SHUT_RDWR))
		w.settle()
		return c, func() { w.srv.Close(s) }
	}},
	{"peer has shut", func(w *world) (int, func()) {
		c, s := w.pair()
		w.must(w.srv.Shutdown(s, unix.SHUT_WR))
		w.settle()
		return c, func() { w.srv.Close(s) }
	}},
	{"both have shut", func(w *world) (int, func()) {
		c, s := w.pair()
		w.must(w.srv.Shutdown(s, unix.SHUT_WR))
		w.settle()
		w.must(w.cli.Shutdown(c, unix.SHUT_WR))
		w.settle()
		return c, func() { w.srv.Close(s) }
	}},
	{"time-wait", func(w *world) (int, func()) {
		c, s := w.pair()
		w.must(w.cli.Shutdown(c, unix.SHUT_WR))
		w.settle()
		w.must(w.srv.Close(s))
		w.settle()
		return c, nil
	}},
	{"reset", func(w *world) (int, func()) {
		c, s := w.pair()
		w.reset(s)
		return c, nil
	}},
	{"reset with data", func(w *world) (int, func()) {
		c, s := w.pair()
		_, err := w.srv.Write(s, []byte("hello"))
		w.must(err)
		w.settle()
		w.reset(s)
		return c, nil
	}},
	{"reset after the peer's end", func(w *world) (int, func()) {
		c, s := w.pair()
		w.must(w.srv.Shutdown(s, unix.SHUT_WR))
		w.settle()
		w.reset(s)
		return c, nil
	}},
	{"udp", func(w *world) (int, func()) { return w.udp(w.cli), nil }},
	{"udp bound", func(w *world) (int, func()) {
		fd := w.udp(w.cli)
		w.must(w.cli.Bind(fd, netip.AddrPortFrom(w.cliAddr, 0)))
		return fd, nil
	}},
	{"udp connected", func(w *world) (int, func()) {
		s := w.udp(w.srv)
		w.must(w.srv.Bind(s, netip.AddrPortFrom(w.addr, 0)))
		at, err := w.srv.Getsockname(s)
		w.must(err)
		c := w.udp(w.cli)
		w.must(w.cli.Connect(c, at))
		return c, func() { w.srv.Close(s) }
	}},
	{"udp shut", func(w *world) (int, func()) {
		s := w.udp(w.srv)
		w.must(w.srv.Bind(s, netip.AddrPortFrom(w.addr, 0)))
		at, err := w.srv.Getsockname(s)
		w.must(err)
		c := w.udp(w.cli)
		w.must(w.cli.Connect(c, at))
		w.must(w.cli.Shutdown(c, unix.SHUT_RDWR))
		return c, func() { w.srv.Close(s) }
	}},
	{"udp refused", func(w *world) (int, func()) {
		s := w.udp(w.srv)
		w.must(w.srv.Bind(s, netip.AddrPortFrom(w.addr, 0)))
		at, err := w.srv.Getsockname(s)
		w.must(err)
		w.must(w.srv.Close(s))
		c := w.udp(w.cli)
		w.must(w.cli.Connect(c, at))
		_, err = w.cli.Write(c, []byte("x"))
		w.must(err)
		w.settle()
		return c, nil
	}},
}

// attempts are the calls. Each writes down what it returned.
var attempts = []struct {
	name string
	try  func(w *world, fd int)
}{
	{"read", func(w *world, fd int) {
		b := make([]byte, 3)
		n, err := w.cli.Read(fd, b)
		w.note("first", n, err)
		n, err = w.cli.Read(fd, make([]byte, 100))
		w.note("second", n, err)
		n, err = w.cli.Read(fd, make([]byte, 100))
		w.note("third", n, err)
	}},
	{"read nothing", func(w *world, fd int) {
		n, err := w.cli.Read(fd, nil)
		w.note("nil", n, err)
		n, err = w.cli.Read(fd, []byte{})
		w.note("empty", n, err)
	}},
	{"readv", func(w *world, fd int) {
		n, err := w.cli.Readv(fd, [][]byte{make([]byte, 2), make([]byte, 10)})
		w.note("readv", n, err)
	}},
	{"recvfrom", func(w *world, fd int) {
		n, from, err := w.cli.RecvFrom(fd, make([]byte, 10))
		_ = from
		w.note("recvfrom", n, err)
		n, _, err = w.cli.RecvFrom(fd, nil)
		w.note("recvfrom into nothing", n, err)
	}},
	{"write", func(w *world, fd int) {
		n, err := w.cli.Write(fd, []byte("abc"))
		w.note("first", n, err)
		n, err = w.cli.Write(fd, []byte("abc"))
		w.note("second", n, err)
	}},
	{"write nothing", func(w *world, fd int) {
		n, err := w.cli.Write(fd, nil)
		w.note("nil", n, err)
	}},
	{"writev", func(w *world, fd int) {
		n, err := w.cli.Writev(fd, [][]byte{[]byte("ab"), []byte("c")})
		w.note("writev", n, err)
	}},
	{"sendto", func(w *world, fd int) {
		n, err := w.cli.SendTo(fd, []byte("abc"), netip.AddrPort{})
		w.note("without address", n, err)
	}},
	{"sendto an address", func(w *world, fd int) {
		n, err := w.cli.SendTo(fd, []byte("abc"), netip.AddrPortFrom(w.addr, 9))
		w.note("port 9", n, err)
		n, err = w.cli.SendTo(fd, []byte("abc"), netip.AddrPortFrom(w.addr, 0))
		w.note("port 0", n, err)
	}},
	{"read, then SO_ERROR", func(w *world, fd int) {
		n, err := w.cli.Read(fd, make([]byte, 100))
		w.note("read", n, err)
		w.option("SO_ERROR", w.cli, fd, unix.SOL_SOCKET, unix.SO_ERROR)
	}},
	{"SO_ERROR, then read and write", func(w *world, fd int) {
		w.option("SO_ERROR", w.cli, fd, unix.SOL_SOCKET, unix.SO_ERROR)
		w.option("SO_ERROR again", w.cli, fd, unix.SOL_SOCKET, unix.SO_ERROR)
		n, err := w.cli.Read(fd, make([]byte, 100))
		w.note("read", n, err)
		n, err = w.cli.Write(fd, []byte("abc"))
		w.note("write", n, err)
	}},
	{"write, then read", func(w *world, fd int) {
		n, err := w.cli.Write(fd, []byte("abc"))
		w.note("write", n, err)
		n, err = w.cli.Read(fd, make([]byte, 100))
		w.note("read", n, err)
	}},
	{"bind", func(w *world, fd int) {
		w.note("to an address of nobody here", w.cli.Bind(fd, netip.AddrPortFrom(w.other, 0)))
		w.note("to IPv6", w.cli.Bind(fd, netip.AddrPortFrom(netip.IPv6LinkLocalAllNodes(), 0)))
		w.note("to any", w.cli.Bind(fd, netip.AddrPortFrom(netip.IPv4Unspecified(), 0)))
		w.note("again", w.cli.Bind(fd, netip.AddrPortFrom(netip.IPv4Unspecified(), 0)))
		a, err := w.cli.Getsockname(fd)
		w.note("getsockname", a, err)
	}},
	{"listen", func(w *world, fd int) {
		w.note("listen", w.cli.Listen(fd, 5))
		w.note("again", w.cli.Listen(fd, 7))
		w.note("with a negative backlog", w.cli.Listen(fd, -1))
		w.option("SO_ACCEPTCONN", w.cli, fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
	}},
	{"accept", func(w *world, fd int) {
		_, _, err := w.cli.Accept(fd)
		w.note("accept", err)
	}},
	{"connect", func(w *world, fd int) {
		l, at := w.listener(5)
		defer w.srv.Close(l)
		w.note("first", w.cli.Connect(fd, at))
		w.settle()
		w.note("second", w.cli.Connect(fd, at))
		w.settle()
		w.note("third", w.cli.Connect(fd, at))
		a, err := w.cli.Getpeername(fd)
		w.note("getpeername", a, err)
	}},
	{"connect to IPv6", func(w *world, fd int) {
		w.note("connect", w.cli.Connect(fd, netip.AddrPortFrom(netip.IPv6LinkLocalAllNodes(), 80)))
	}},
	{"shutdown", func(w *world, fd int) {
		w.note("of what is not", w.cli.Shutdown(fd, 3))
		w.note("negative", w.cli.Shutdown(fd, -1))
		w.note("for reading", w.cli.Shutdown(fd, unix.SHUT_RD))
		n, err := w.cli.Read(fd, make([]byte, 100))
		w.note("read", n, err)
		n, err = w.cli.Read(fd, make([]byte, 100))
		w.note("read again", n, err)
		w.note("for writing", w.cli.Shutdown(fd, unix.SHUT_WR))
		n, err = w.cli.Write(fd, []byte("abc"))
		w.note("write", n, err)
		w.settle()
		w.note("for both", w.cli.Shutdown(fd, unix.SHUT_RDWR))
	}},
	{"names", func(w *world, fd int) {
		a, err := w.cli.Getsockname(fd)
		w.note("getsockname", a, err)
		a, err = w.cli.Getpeername(fd)
		w.note("getpeername", a, err)
	}},
	{"O_NONBLOCK", func(w *world, fd int) {
		w.note("off", w.cli.SetNonblock(fd, false))
		on, err := w.cli.Nonblock(fd)
		w.note("is", on, err)
	}},
	{"options", func(w *world, fd int) {
		for _, o := range []struct {
			name      string
			level, id int
		}{
			{"SO_TYPE", unix.SOL_SOCKET, unix.SO_TYPE}, {"SO_DOMAIN", unix.SOL_SOCKET, unix.SO_DOMAIN},
			{"SO_PROTOCOL", unix.SOL_SOCKET, unix.SO_PROTOCOL}, {"SO_ACCEPTCONN", unix.SOL_SOCKET, unix.SO_ACCEPTCONN},
			{"SO_REUSEADDR", unix.SOL_SOCKET, unix.SO_REUSEADDR}, {"SO_KEEPALIVE", unix.SOL_SOCKET, unix.SO_KEEPALIVE},
			{"SO_LINGER", unix.SOL_SOCKET, unix.SO_LINGER}, {"SO_RCVTIMEO", unix.SOL_SOCKET, unix.SO_RCVTIMEO},
			{"SO_SNDTIMEO", unix.SOL_SOCKET, unix.SO_SNDTIMEO}, {"SO_ERROR", unix.SOL_SOCKET, unix.SO_ERROR},
			{"no such option", unix.SOL_SOCKET, 9999}, {"no such level", 200, 1},
			{"TCP_KEEPIDLE", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE}, {"TCP_KEEPINTVL", unix.IPPROTO_TCP, unix.TCP_KEEPINTVL},
			{"TCP_KEEPCNT", unix.IPPROTO_TCP, unix.TCP_KEEPCNT}, {"TCP_USER_TIMEOUT", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT},
			{"no such TCP option", unix.IPPROTO_TCP, 9999},
		} {
			w.option(o.name, w.cli, fd, o.level, o.id)
		}
	}},
	{"set options", func(w *world, fd int) {
		one, zero, many := []byte{1, 0, 0, 0}, []byte{0, 0, 0, 0}, []byte{255, 255, 255, 127}
		for _, o := range []struct {
			name      string
			level, id int
			value     []byte
		}{
			{"SO_REUSEADDR", unix.SOL_SOCKET, unix.SO_REUSEADDR, one},
			{"SO_KEEPALIVE", unix.SOL_SOCKET, unix.SO_KEEPALIVE, one},
			{"SO_RCVBUF", unix.SOL_SOCKET, unix.SO_RCVBUF, []byte{0, 128, 0, 0}},
			{"SO_SNDBUF", unix.SOL_SOCKET, unix.SO_SNDBUF, []byte{0, 128, 0, 0}},
			{"SO_LINGER", unix.SOL_SOCKET, unix.SO_LINGER, []byte{1, 0, 0, 0, 5, 0, 0, 0}},
			{"SO_RCVTIMEO", unix.SOL_SOCKET, unix.SO_RCVTIMEO, append([]byte{3}, make([]byte, 15)...)},
			{"SO_SNDTIMEO of 4 s", unix.SOL_SOCKET, unix.SO_SNDTIMEO, append([]byte{4}, make([]byte, 15)...)},
			{"SO_SNDTIMEO of too many µs", unix.SOL_SOCKET, unix.SO_SNDTIMEO, append(make([]byte, 11), 1, 0, 0, 0, 0)},
			{"TCP_NODELAY", unix.IPPROTO_TCP, unix.TCP_NODELAY, one},
			{"TCP_KEEPIDLE", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, one},
			{"TCP_KEEPINTVL", unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, one},
			{"TCP_KEEPCNT", unix.IPPROTO_TCP, unix.TCP_KEEPCNT, one},
			{"TCP_KEEPIDLE of 0", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, zero},
			{"TCP_KEEPINTVL of too much", unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, many},
			{"TCP_KEEPCNT of too many", unix.IPPROTO_TCP, unix.TCP_KEEPCNT, many},
			{"TCP_USER_TIMEOUT", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, []byte{0, 4, 0, 0}},
			{"TCP_USER_TIMEOUT below 0", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, []byte{255, 255, 255, 255}},
			{"TCP_MAXSEG of 10", unix.IPPROTO_TCP, unix.TCP_MAXSEG, []byte{10, 0, 0, 0}},
			{"TCP_MAXSEG of 40000", unix.IPPROTO_TCP, unix.TCP_MAXSEG, []byte{64, 156, 0, 0}},
			{"SO_KEEPALIVE in 3 bytes", unix.SOL_SOCKET, unix.SO_KEEPALIVE, one[:3]},
			{"SO_KEEPALIVE in none", unix.SOL_SOCKET, unix.SO_KEEPALIVE, nil},
			{"SO_KEEPALIVE in 8 bytes", unix.SOL_SOCKET, unix.SO_KEEPALIVE, append(one, one...)},
			{"SO_LINGER in 4 bytes", unix.SOL_SOCKET, unix.SO_LINGER, one},
			{"SO_RCVTIMEO in 8 bytes", unix.SOL_SOCKET, unix.SO_RCVTIMEO, append(one, one...)},
			{"TCP_NODELAY in 2 bytes", unix.IPPROTO_TCP, unix.TCP_NODELAY, one[:2]},
			{"SO_TYPE", unix.SOL_SOCKET, unix.SO_TYPE, one},
			{"SO_ERROR", unix.SOL_SOCKET, unix.SO_ERROR, one},
			{"SO_ACCEPTCONN", unix.SOL_SOCKET, unix.SO_ACCEPTCONN, one},
			{"no such option", unix.SOL_SOCKET, 9999, one},
			{"no such level", 200, 1, one},
			{"no such TCP option", unix.IPPROTO_TCP, 9999, one},
		} {
			w.note(o.name, w.cli.SetSockOpt(fd, o.level, o.id, o.value))
		}
		for _, o := range []struct {
			name      string
			level, id int
		}{
			{"SO_KEEPALIVE is", unix.SOL_SOCKET, unix.SO_KEEPALIVE}, {"SO_LINGER is", unix.SOL_SOCKET, unix.SO_LINGER},
			{"SO_RCVTIMEO is", unix.SOL_SOCKET, unix.SO_RCVTIMEO}, {"SO_SNDTIMEO is", unix.SOL_SOCKET, unix.SO_SNDTIMEO},
			{"TCP_KEEPIDLE is", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE}, {"TCP_KEEPINTVL is", unix.IPPROTO_TCP, unix.TCP_KEEPINTVL},
			{"TCP_KEEPCNT is", unix.IPPROTO_TCP, unix.TCP_KEEPCNT}, {"TCP_USER_TIMEOUT is", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT},
		} {
			w.option(o.name, w.cli, fd, o.level, o.id)
		}
		short := make([]byte, 2)
		n, err := w.cli.GetSockOpt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, short)
		w.note("SO_KEEPALIVE to 2 bytes", n, short, err)
		n, err = w.cli.GetSockOpt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, nil)
		w.note("SO_KEEPALIVE to none", n, err)
	}},
	{"epoll", func(w *world, fd int) {
		ep, err := w.cli.EpollCreate()
		w.must(err)
		defer w.cli.Close(ep)
		ev := &EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLPRI, Data: 1}
		w.note("mod before add", w.cli.EpollCtl(ep, unix.EPOLL_CTL_MOD, fd, ev))
		w.note("del before add", w.cli.EpollCtl(ep, unix.EPOLL_CTL_DEL, fd, nil))
		w.note("add without events", w.cli.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, nil))
		w.note("no such operation", w.cli.EpollCtl(ep, 7, fd, ev))
		w.note("add", w.cli.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, ev))
		w.note("add again", w.cli.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, ev))
		w.wait("events", w.cli, ep)
		w.note("del", w.cli.EpollCtl(ep, unix.EPOLL_CTL_DEL, fd, nil))
	}},
	{"as an epoll instance", func(w *world, fd int) {
		other := w.tcp(w.cli)
		defer w.cli.Close(other)
		w.note("add to it", w.cli.EpollCtl(fd, unix.EPOLL_CTL_ADD, other, &EpollEvent{Events: unix.EPOLLIN}))
		w.note("add it to itself", w.cli.EpollCtl(fd, unix.EPOLL_CTL_ADD, fd, &EpollEvent{Events: unix.EPOLLIN}))
		_, err := w.cli.EpollWait(fd, make([]EpollEvent, 1), 0)
		w.note("wait", err)
		_, err = w.cli.EpollWait(fd, nil, 0)
		w.note("wait for nothing", err)
	}},
	{"close", func(w *world, fd int) {
		w.note("first", w.cli.Close(fd))
		w.note("second", w.cli.Close(fd))
	}},
}

// option writes down an option's value.
func (w *world) option(label string, c calls, fd, level, name int) {
	b := make([]byte, 32)
	n, err := c.GetSockOpt(fd, level, name, b)
	if err != nil {
		w.note(label, err)
		return
	}
	w.note(label, n, b[:min(n, len(b))])
}

// TestErrors tries every call on a descriptor in every state (A4).
func TestErrors(t *testing.T) {
	all := worlds(t)
	for _, s := range states {
		for _, a := range attempts {
			if s.name == "closed" && a.name == "connect" {
				continue // on Linux the listener would get this descriptor
			}
			compare(t, all, s.name+"/"+a.name, knownErrors, func(w *world) {
				fd, cleanup := s.make(w)
				a.try(w, fd)
				w.cli.Close(fd)
				if cleanup != nil {
					cleanup()
				}
				w.settle()
			})
		}
	}
}

// knownErrors are the differences, by state, call and result.
var knownErrors = func() map[string]difference {
	const (
		nest = "epoll instances do not nest"
		dead = "a socket that was connected can be closed or, if connect failed, connected again; it cannot be bound"
	)
	m := map[string]difference{
		"epoll/epoll: mod before add": {"ENOENT", "EINVAL", nest},
		"epoll/epoll: del before add": {"ENOENT", "EINVAL", nest},
		"epoll/epoll: add":            {"ok", "EINVAL", nest},
		"epoll/epoll: add again":      {"EEXIST", "EINVAL", nest},
		"epoll/epoll: del":            {"ok", "EINVAL", nest},
	}
	for _, state := range []string{"refused", "both have shut", "time-wait", "reset", "reset with data", "reset after the peer's end"} {
		m[state+"/bind: to any"] = difference{"ok", "EINVAL", dead}
		m[state+"/bind: getsockname"] = difference{"any:port ok", "host:port ok", dead}
	}
	return m
}()
