package api

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The modes in which a socket is watched, and what for.
var (
	epollModes = []struct {
		name string
		bits uint32
	}{{"level", 0}, {"edge", unix.EPOLLET}, {"one-shot", unix.EPOLLONESHOT}, {"edge one-shot", unix.EPOLLET | unix.EPOLLONESHOT}}
	epollWants = []struct {
		name string
		bits uint32
	}{
		{"all", unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLPRI}, {"in", unix.EPOLLIN}, {"out", unix.EPOLLOUT},
		{"rdhup", unix.EPOLLRDHUP}, {"nothing", 0},
	}
)

// watched is a connection whose client's end is in an epoll instance.
type watched struct {
	w     *world
	c, s  int
	ep    int
	ev    EpollEvent
	waits int
}

// look waits twice: what is an edge does not come again.
func (x *watched) look(after string) {
	x.waits++
	x.w.wait(fmt.Sprintf("%d after %s", x.waits, after), x.w.cli, x.ep)
	x.w.wait(fmt.Sprintf("%d after %s, again", x.waits, after), x.w.cli, x.ep)
}

// step is one thing that can happen to the connection. when says whether it makes sense; it makes no difference to
// Linux, but not all that makes no sense is worth being equal in.
type step struct {
	name string
	do   func(x *watched)
}

var steps = map[string]step{}

func init() {
	for _, s := range []step{
		{"add", func(x *watched) {
			err := x.w.cli.EpollCtl(x.ep, unix.EPOLL_CTL_ADD, x.c, &x.ev)
			x.w.note("add", err)
		}},
		{"del", func(x *watched) {
			err := x.w.cli.EpollCtl(x.ep, unix.EPOLL_CTL_DEL, x.c, nil)
			x.w.note("del", err)
		}},
		{"mod", func(x *watched) {
			err := x.w.cli.EpollCtl(x.ep, unix.EPOLL_CTL_MOD, x.c, &x.ev)
			x.w.note("mod", err)
		}},
		{"data", func(x *watched) {
			x.srv("write", func() (int, error) { return x.w.srv.Write(x.s, []byte("0123456789")) })
		}},
		{"read 3", func(x *watched) { x.cli("read", func() (int, error) { return x.w.cli.Read(x.c, make([]byte, 3)) }) }},
		{"read all", func(x *watched) { x.cli("read", func() (int, error) { return x.w.cli.Read(x.c, make([]byte, 1000)) }) }},
		{"write", func(x *watched) {
			x.cli("write", func() (int, error) { return x.w.cli.Write(x.c, []byte("0123456789")) })
		}},
		{"peer reads", func(x *watched) { _, _ = x.w.srv.Read(x.s, make([]byte, 1000)) }},
		{"shut", func(x *watched) { x.w.note("shut", x.w.cli.Shutdown(x.c, unix.SHUT_WR)) }},
		{"shut rd", func(x *watched) { x.w.note("shut rd", x.w.cli.Shutdown(x.c, unix.SHUT_RD)) }},
		{"peer shuts", func(x *watched) { _ = x.w.srv.Shutdown(x.s, unix.SHUT_WR) }},
		{"peer closes", func(x *watched) {
			for n := 1; n > 0; {
				n, _ = x.w.srv.Read(x.s, make([]byte, 1000)) // or it would be a reset
			}
			_ = x.w.srv.Close(x.s)
			x.s = -1
		}},
		{"peer resets", func(x *watched) {
			if x.s >= 0 {
				_ = x.w.srv.SetSockOpt(x.s, unix.SOL_SOCKET, unix.SO_LINGER, []byte{1, 0, 0, 0, 0, 0, 0, 0})
				_ = x.w.srv.Close(x.s)
				x.s = -1
			}
		}},
		{"error", func(x *watched) { x.w.option("SO_ERROR", x.w.cli, x.c, unix.SOL_SOCKET, unix.SO_ERROR) }},
		{"close", func(x *watched) {
			if x.c >= 0 {
				x.w.note("close", x.w.cli.Close(x.c))
				x.c = -1
			}
		}},
		// As much as goes out without the peer reading; and then the peer reads it all.
		{"fill", func(x *watched) {
			// It may be full only until the next acknowledgement, or until a probe of the window takes the byte that waits.
			for full := 0; full < 3; x.w.settle() {
				if _, err := x.w.cli.Write(x.c, make([]byte, 100000)); err != nil {
					full++
					time.Sleep(time.Duration(quick().MinRTO))
				} else {
					full = 0
				}
			}
		}},
		{"peer drains", func(x *watched) {
			for n, p := 1, make([]byte, 100000); n > 0; x.w.settle() {
				n, _ = x.w.srv.Read(x.s, p)
			}
		}},
	} {
		steps[s.name] = s
	}
}

func (x *watched) cli(label string, f func() (int, error)) {
	n, err := f()
	x.w.note(label, n, err)
	x.w.settle()
}

func (x *watched) srv(_ string, f func() (int, error)) { _, _ = f() }

func runSteps(w *world, ev EpollEvent, names []string) {
	c, s := w.pair()
	ep, err := w.cli.EpollCreate()
	w.must(err)
	x := &watched{w: w, c: c, s: s, ep: ep, ev: ev}
	for _, n := range names {
		st, ok := steps[n]
		if !ok {
			w.t.Fatalf("no step %q", n)
		}
		st.do(x)
		w.settle()
		x.look(n)
	}
	w.cli.Close(ep)
	w.cli.Close(x.c)
	w.srv.Close(x.s)
	w.settle()
}

// TestEpoll runs sequences of events, in every mode (A1).
func TestEpoll(t *testing.T) {
	// In the lossy profile it takes more than the peer's window to fill a connection: the congestion window still grows.
	all := worldsOf(t, Config{}, Config{Inline: true})
	for _, seq := range []string{
		"add, data, data, read 3, read all, write, mod",
		"data, add, read all, data, mod, read 3, mod",
		"data, add, del, add, read 3, del, mod",
		"add, peer shuts, read all, mod, write, shut, mod",
		"add, data, peer shuts, read 3, read all, read all",
		"add, shut, mod, data, read all, peer shuts, mod",
		"add, peer closes, read all, write, write, mod",
		"add, peer resets, error, mod, read all, write",
		"add, data, peer resets, read all, read all, read all, write",
		"add, peer shuts, peer resets, mod, error, mod",
		"add, shut, peer resets, mod, read all",
		"peer resets, add, read all, mod",
		"peer shuts, add, mod, read all",
		"shut, add, mod",
		"shut rd, add, data, read all, mod",
		"add, shut rd, data, read all, mod",
		"add, data, close",
		"add, close",
		"fill, add, peer drains, write, mod",
		"add, fill, mod, peer drains, mod, write",
		"add, fill, data, read all, peer drains, read all",
		"add, fill, peer resets",
		"add, write, peer reads, write, peer reads",
	} {
		for _, m := range epollModes {
			for _, want := range epollWants {
				if strings.Contains(seq, "fill") && want.name != "all" && want.name != "out" {
					continue // they take time
				}
				if want.name != "all" && (testing.Short() || m.bits&unix.EPOLLONESHOT != 0) {
					continue // what is watched for and how often it is told do not meet in the code
				}
				name := fmt.Sprintf("%s/%s/%s", m.name, want.name, seq)
				compare(t, all, name, nil, func(w *world) {
					runSteps(w, EpollEvent{Events: m.bits | want.bits, Data: 7}, strings.Split(seq, ", "))
				})
			}
		}
	}
}

// TestEpollAtRandom runs random sequences.
func TestEpollAtRandom(t *testing.T) {
	all := worlds(t)
	names := []string{"mod", "data", "data", "read 3", "read 3", "read all", "write", "peer reads", "shut", "shut rd", "peer shuts", "peer resets", "error", "del", "add"}
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		seq := []string{"add"}
		if r.IntN(3) == 0 {
			seq = []string{"data", "add"}
		}
		for range 3 + r.IntN(8) {
			seq = append(seq, names[r.IntN(len(names))])
		}
		m, want := epollModes[r.IntN(len(epollModes))], epollWants[r.IntN(len(epollWants))]
		compare(t, all, fmt.Sprintf("%d/%s/%s/%s", seed, m.name, want.name, strings.Join(seq, ", ")), nil, func(w *world) {
			runSteps(w, EpollEvent{Events: m.bits | want.bits, Data: 7}, seq)
		})
	}
}

// TestEpollOpening is what is told of listeners and of sockets that connect.
func TestEpollOpening(t *testing.T) {
	all := worlds(t)
	for _, m := range epollModes {
		ev := EpollEvent{Events: m.bits | unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP, Data: 3}
		compare(t, all, m.name+"/listener", nil, func(w *world) {
			l, at := w.listener(10)
			ep, err := w.srv.EpollCreate()
			w.must(err)
			w.must(w.srv.EpollCtl(ep, unix.EPOLL_CTL_ADD, l, &ev))
			w.wait("no connection", w.srv, ep)
			a, b := w.tcp(w.cli), w.tcp(w.cli)
			w.must(w.cli.Connect(a, at))
			w.wait("one", w.srv, ep)
			w.wait("one still", w.srv, ep)
			w.must(w.cli.Connect(b, at))
			w.wait("two", w.srv, ep)
			c, _, err := w.srv.Accept(l)
			w.note("accept", err)
			w.wait("one left", w.srv, ep)
			d, _, err := w.srv.Accept(l)
			w.note("accept", err)
			_, _, err = w.srv.Accept(l)
			w.note("accept", err)
			w.wait("none left", w.srv, ep)
			w.must(w.srv.EpollCtl(ep, unix.EPOLL_CTL_MOD, l, &ev))
			w.wait("after mod", w.srv, ep)
			w.must(w.srv.Close(l))
			w.wait("closed", w.srv, ep)
			for _, fd := range []int{a, b} {
				w.cli.Close(fd)
			}
			for _, fd := range []int{c, d, ep} {
				w.srv.Close(fd)
			}
			w.settle()
		})
		compare(t, all, m.name+"/connect", nil, func(w *world) {
			l, at := w.listener(10)
			ep, err := w.cli.EpollCreate()
			w.must(err)
			c := w.tcp(w.cli)
			w.must(w.cli.EpollCtl(ep, unix.EPOLL_CTL_ADD, c, &ev))
			w.wait("not connected", w.cli, ep)
			w.wait("not connected still", w.cli, ep)
			w.must(w.cli.EpollCtl(ep, unix.EPOLL_CTL_MOD, c, &ev))
			w.must(w.cli.Connect(c, at))
			w.wait("connected", w.cli, ep)
			w.wait("connected still", w.cli, ep)
			w.option("SO_ERROR", w.cli, c, unix.SOL_SOCKET, unix.SO_ERROR)
			w.cli.Close(c)
			w.srv.Close(l)
			w.cli.Close(ep)
			w.settle()
		})
		compare(t, all, m.name+"/refused", nil, func(w *world) {
			l, at := w.listener(10)
			w.must(w.srv.Close(l))
			w.settle()
			ep, err := w.cli.EpollCreate()
			w.must(err)
			c := w.tcp(w.cli)
			w.must(w.cli.Connect(c, at))
			w.must(w.cli.EpollCtl(ep, unix.EPOLL_CTL_ADD, c, &ev))
			w.wait("refused", w.cli, ep)
			w.wait("refused still", w.cli, ep)
			w.option("SO_ERROR", w.cli, c, unix.SOL_SOCKET, unix.SO_ERROR)
			w.wait("told", w.cli, ep)
			w.must(w.cli.EpollCtl(ep, unix.EPOLL_CTL_MOD, c, &ev))
			w.wait("after mod", w.cli, ep)
			w.note("connect", w.cli.Connect(c, at))
			w.wait("after connect", w.cli, ep)
			w.note("connect", w.cli.Connect(c, at))
			w.wait("after connect again", w.cli, ep)
			w.cli.Close(c)
			w.cli.Close(ep)
		})
		compare(t, all, m.name+"/connecting", nil, func(w *world) {
			c, cleanup := w.connecting()
			ep, err := w.cli.EpollCreate()
			w.must(err)
			w.must(w.cli.EpollCtl(ep, unix.EPOLL_CTL_ADD, c, &ev))
			w.wait("connecting", w.cli, ep)
			w.note("shutdown", w.cli.Shutdown(c, unix.SHUT_RDWR))
			w.wait("given up", w.cli, ep)
			w.cli.Close(c)
			w.cli.Close(ep)
			cleanup()
			w.settle()
		})
		compare(t, all, m.name+"/udp", nil, func(w *world) {
			s, c := w.udp(w.srv), w.udp(w.cli)
			ep, err := w.srv.EpollCreate()
			w.must(err)
			w.must(w.srv.EpollCtl(ep, unix.EPOLL_CTL_ADD, s, &ev))
			w.wait("not bound", w.srv, ep)
			w.must(w.srv.Bind(s, netip.AddrPortFrom(w.addr, 0)))
			at, err := w.srv.Getsockname(s)
			w.must(err)
			w.must(w.srv.EpollCtl(ep, unix.EPOLL_CTL_MOD, s, &ev))
			w.wait("bound", w.srv, ep)
			w.must(w.cli.Connect(c, at))
			for i := range 2 {
				_, err = w.cli.Write(c, []byte("x"))
				w.must(err)
				w.wait(fmt.Sprint("datagram ", i), w.srv, ep)
				w.wait(fmt.Sprint("datagram still ", i), w.srv, ep)
			}
			for i := range 3 {
				n, _, err := w.srv.RecvFrom(s, make([]byte, 10))
				w.note("recvfrom", n, err)
				w.wait(fmt.Sprint("read ", i), w.srv, ep)
			}
			w.srv.Close(s)
			w.wait("closed", w.srv, ep)
			w.srv.Close(ep)
			// The other end's datagrams are refused from here on.
			ep, err = w.cli.EpollCreate()
			w.must(err)
			w.must(w.cli.EpollCtl(ep, unix.EPOLL_CTL_ADD, c, &ev))
			w.wait("client", w.cli, ep)
			_, err = w.cli.Write(c, []byte("x"))
			w.must(err)
			w.wait("refused", w.cli, ep)
			w.option("SO_ERROR", w.cli, c, unix.SOL_SOCKET, unix.SO_ERROR)
			w.wait("told", w.cli, ep)
			w.note("shutdown", w.cli.Shutdown(c, unix.SHUT_RD))
			w.wait("shut for reading", w.cli, ep)
			w.note("shutdown", w.cli.Shutdown(c, unix.SHUT_WR))
			w.wait("shut for both", w.cli, ep)
			w.cli.Close(c)
			w.cli.Close(ep)
		})
	}
}
