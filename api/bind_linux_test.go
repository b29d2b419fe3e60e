package api

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// TestBinding compares who may have which port (C10).
func TestBinding(t *testing.T) {
	all := worlds(t)
	one := []byte{1, 0, 0, 0}
	reuse := func(w *world, fd int) { w.must(w.srv.SetSockOpt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, one)) }
	port := func(w *world, fd int) netip.AddrPort {
		a, err := w.srv.Getsockname(fd)
		w.must(err)
		return a
	}
	for _, k := range []struct {
		name string
		make func(w *world, c calls) int
	}{{"tcp", (*world).tcp}, {"udp", (*world).udp}} {
		for _, r := range []struct {
			name          string
			first, second bool
		}{{"neither reuses", false, false}, {"the first reuses", true, false}, {"the second reuses", false, true}, {"both reuse", true, true}} {
			for _, at := range []string{"any, any", "any, host", "host, any", "host, host"} {
				compare(t, all, k.name+"/"+r.name+"/"+at, nil, func(w *world) {
					a, b := k.make(w, w.srv), k.make(w, w.srv)
					if r.first {
						reuse(w, a)
					}
					if r.second {
						reuse(w, b)
					}
					addr := func(i int) netip.Addr {
						if (at[:3] == "any" && i == 0) || (at[len(at)-3:] == "any" && i == 1) {
							return netip.IPv4Unspecified()
						}
						return w.addr
					}
					w.must(w.srv.Bind(a, netip.AddrPortFrom(addr(0), 0)))
					p := port(w, a).Port()
					w.note("bind", w.srv.Bind(b, netip.AddrPortFrom(addr(1), p)))
					if k.name == "tcp" {
						w.note("listen", w.srv.Listen(a, 3))
						w.note("the second listens", w.srv.Listen(b, 3))
						c := k.make(w, w.srv)
						reuse(w, c)
						w.note("bind to a listener's port", w.srv.Bind(c, netip.AddrPortFrom(addr(1), p)))
						w.srv.Close(c)
					}
					w.srv.Close(a)
					w.srv.Close(b)
					c := k.make(w, w.srv)
					w.note("bind after close", w.srv.Bind(c, netip.AddrPortFrom(addr(1), p)))
					w.srv.Close(c)
				})
			}
		}
	}
	for _, r := range []bool{false, true} {
		name := "time-wait"
		if r {
			name += ", reused"
		}
		compare(t, all, name, nil, func(w *world) {
			l := w.tcp(w.srv)
			if r {
				reuse(w, l)
			}
			w.must(w.srv.Bind(l, netip.AddrPortFrom(w.addr, 0)))
			w.must(w.srv.Listen(l, 3))
			at := port(w, l)
			c := w.tcp(w.cli)
			w.must(w.cli.Connect(c, at))
			w.settle()
			s, _, err := w.srv.Accept(l)
			w.must(err)
			w.must(w.srv.Close(s))
			w.settle()
			w.must(w.cli.Close(c))
			w.settle()
			w.must(w.srv.Close(l))
			n := w.tcp(w.srv)
			if r {
				reuse(w, n)
			}
			w.note("bind", w.srv.Bind(n, at))
			w.note("listen", w.srv.Listen(n, 3))
			w.srv.Close(n)
		})
	}
	compare(t, all, "connect from one port twice", map[string]difference{
		"connect from one port twice: connect the other": {"EADDRNOTAVAIL", "EADDRINUSE", "POSIX names EADDRINUSE for this, which says more"},
	}, func(w *world) {
		l, at := w.listener(5)
		a, b := w.tcp(w.cli), w.tcp(w.cli)
		for _, fd := range []int{a, b} {
			w.must(w.cli.SetSockOpt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, one))
		}
		w.must(w.cli.Bind(a, netip.AddrPortFrom(w.cliAddr, 0)))
		own, err := w.cli.Getsockname(a)
		w.must(err)
		w.note("bind", w.cli.Bind(b, own))
		w.note("connect", w.cli.Connect(a, at))
		w.settle()
		w.note("connect the other", w.cli.Connect(b, at))
		l2, at2 := w.listener(5)
		w.note("connect the other elsewhere", w.cli.Connect(b, at2))
		w.settle()
		for _, fd := range []int{a, b} {
			w.cli.Close(fd)
		}
		w.srv.Close(l)
		w.srv.Close(l2)
		w.settle()
	})
	compare(t, all, "listen without bind", nil, func(w *world) {
		l := w.tcp(w.srv)
		w.note("listen", w.srv.Listen(l, 3))
		a, err := w.srv.Getsockname(l)
		w.note("getsockname", a, err)
		w.srv.Close(l)
	})
}
