package api

import (
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"ndpip/stack/link"
)

// The same sequences of calls run on Linux, over the loopback interface of a network namespace of their own, and on two
// hosts; what each call returns is written down, and the two records have to be equal but for the differences that are
// on a list, with their reasons.

// calls is what Linux and a Host have in common.
type calls interface {
	Socket(domain, typ, protocol int) (int, error)
	Bind(fd int, a netip.AddrPort) error
	Listen(fd, backlog int) error
	Connect(fd int, a netip.AddrPort) error
	Accept(fd int) (int, netip.AddrPort, error)
	Close(fd int) error
	Shutdown(fd, how int) error
	Getsockname(fd int) (netip.AddrPort, error)
	Getpeername(fd int) (netip.AddrPort, error)
	SetSockOpt(fd, level, name int, value []byte) error
	GetSockOpt(fd, level, name int, value []byte) (int, error)
	SetNonblock(fd int, on bool) error
	Nonblock(fd int) (bool, error)
	Read(fd int, p []byte) (int, error)
	Write(fd int, p []byte) (int, error)
	Readv(fd int, p [][]byte) (int, error)
	Writev(fd int, p [][]byte) (int, error)
	SendTo(fd int, p []byte, to netip.AddrPort) (int, error)
	RecvFrom(fd int, p []byte) (int, netip.AddrPort, error)
	EpollCreate() (int, error)
	EpollCtl(epfd, op, fd int, ev *EpollEvent) error
	EpollWait(epfd int, evs []EpollEvent, msec int) (int, error)
}

var _ calls = (*Host)(nil)

// kernel is Linux.
type kernel struct{ do chan func() }

// newKernel gives a thread a network namespace. Without the right to do so, the one that we are in has to serve: its
// loopback interface is all that is used.
func newKernel(t testing.TB) *kernel {
	k := &kernel{make(chan func())}
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine, and the namespace with it
		if unix.Unshare(unix.CLONE_NEWNET) == nil {
			loopbackUp()
		} else if os.Getuid() == 0 {
			t.Log("no namespace of its own: the loopback interface of this one is used")
		}
		for f := range k.do {
			f()
		}
	}()
	t.Cleanup(func() { close(k.do) })
	return k
}

func loopbackUp() {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if r, err := unix.NewIfreq("lo"); err == nil {
		r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
		_ = unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, r)
	}
}

func (k *kernel) Socket(domain, typ, protocol int) (fd int, err error) {
	done := make(chan bool)
	k.do <- func() { fd, err = unix.Socket(domain, typ|unix.SOCK_CLOEXEC, protocol); close(done) }
	<-done
	return fd, err
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is6() {
		return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
	}
	if !a.Addr().IsValid() {
		return &unix.SockaddrInet4{Port: int(a.Port())}
	}
	return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
}

func fromSockaddr(sa unix.Sockaddr) netip.AddrPort {
	if s, ok := sa.(*unix.SockaddrInet4); ok {
		return netip.AddrPortFrom(netip.AddrFrom4(s.Addr), uint16(s.Port))
	}
	return netip.AddrPort{}
}

func (k *kernel) Bind(fd int, a netip.AddrPort) error    { return unix.Bind(fd, sockaddr(a)) }
func (k *kernel) Listen(fd, backlog int) error           { return unix.Listen(fd, backlog) }
func (k *kernel) Connect(fd int, a netip.AddrPort) error { return unix.Connect(fd, sockaddr(a)) }
func (k *kernel) Close(fd int) error                     { return unix.Close(fd) }
func (k *kernel) Shutdown(fd, how int) error             { return unix.Shutdown(fd, how) }
func (k *kernel) SetNonblock(fd int, on bool) error      { return unix.SetNonblock(fd, on) }

func (k *kernel) Nonblock(fd int) (bool, error) {
	f, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	return err == nil && f&unix.O_NONBLOCK != 0, err
}

func (k *kernel) Accept(fd int) (int, netip.AddrPort, error) {
	n, sa, err := unix.Accept(fd)
	return n, fromSockaddr(sa), err
}

func (k *kernel) Getsockname(fd int) (netip.AddrPort, error) {
	sa, err := unix.Getsockname(fd)
	return fromSockaddr(sa), err
}

func (k *kernel) Getpeername(fd int) (netip.AddrPort, error) {
	sa, err := unix.Getpeername(fd)
	return fromSockaddr(sa), err
}

func result(n uintptr, e unix.Errno) (int, error) {
	if e != 0 {
		return 0, e
	}
	return int(n), nil
}

func (k *kernel) SetSockOpt(fd, level, name int, v []byte) error {
	_, _, e := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name), uintptr(unsafe.Pointer(unsafe.SliceData(v))), uintptr(len(v)), 0)
	if e != 0 {
		return e
	}
	return nil
}

func (k *kernel) GetSockOpt(fd, level, name int, v []byte) (int, error) {
	n := uint32(len(v))
	_, _, e := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name), uintptr(unsafe.Pointer(unsafe.SliceData(v))), uintptr(unsafe.Pointer(&n)), 0)
	return result(uintptr(n), e)
}

func count(n int, err error) (int, error) { return max(n, 0), err }

func (k *kernel) Read(fd int, p []byte) (int, error)     { return count(unix.Read(fd, p)) }
func (k *kernel) Write(fd int, p []byte) (int, error)    { return count(unix.Write(fd, p)) }
func (k *kernel) Readv(fd int, p [][]byte) (int, error)  { return count(unix.Readv(fd, p)) }
func (k *kernel) Writev(fd int, p [][]byte) (int, error) { return count(unix.Writev(fd, p)) }
func (k *kernel) EpollCreate() (int, error)              { return unix.EpollCreate1(unix.EPOLL_CLOEXEC) }

func (k *kernel) SendTo(fd int, p []byte, to netip.AddrPort) (int, error) {
	if !to.IsValid() {
		return count(unix.SendmsgN(fd, p, nil, nil, unix.MSG_NOSIGNAL))
	}
	return count(unix.SendmsgN(fd, p, nil, sockaddr(to), unix.MSG_NOSIGNAL))
}

func (k *kernel) RecvFrom(fd int, p []byte) (int, netip.AddrPort, error) {
	n, sa, err := unix.Recvfrom(fd, p, 0)
	return max(n, 0), fromSockaddr(sa), err
}

func (k *kernel) EpollCtl(epfd, op, fd int, ev *EpollEvent) error {
	var e *unix.EpollEvent
	if ev != nil {
		e = &unix.EpollEvent{Events: ev.Events, Fd: int32(ev.Data), Pad: int32(ev.Data >> 32)}
	}
	return unix.EpollCtl(epfd, op, fd, e)
}

func (k *kernel) EpollWait(epfd int, evs []EpollEvent, msec int) (int, error) {
	if len(evs) == 0 {
		_, _, e := unix.Syscall6(unix.SYS_EPOLL_WAIT, uintptr(epfd), uintptr(unsafe.Pointer(&evs)), 0, uintptr(msec), 0, 0)
		return result(0, e)
	}
	es := make([]unix.EpollEvent, len(evs))
	n, err := unix.EpollWait(epfd, es, msec)
	for i := range es[:max(n, 0)] {
		evs[i] = EpollEvent{es[i].Events, uint64(uint32(es[i].Fd)) | uint64(uint32(es[i].Pad))<<32}
	}
	return count(n, err)
}

// world is where a sequence runs: a client's side and a server's, which on Linux are the same process.
type world struct {
	t        testing.TB
	cli, srv calls
	addr     netip.Addr // the server's
	cliAddr  netip.Addr
	other    netip.Addr // of nobody here
	linux    bool
	settle   func()        // lets the consequences of all calls so far come about
	patience time.Duration // how long that takes on Linux
	log      []string
}

// worlds makes Linux, and pairs of hosts with a worker each and without.
func worlds(t testing.TB) []*world {
	return worldsOf(t, Config{}, Config{Inline: true, Congestion: "cubic"}) // both profiles
}

func worldsOf(t testing.TB, cfgs ...Config) []*world {
	k := newKernel(t)
	lo := netip.MustParseAddr("127.0.0.1")
	linux := &world{t: t, cli: k, srv: k, addr: lo, cliAddr: lo, other: netip.MustParseAddr("192.0.2.1"), linux: true}
	linux.settle = func() { time.Sleep(linux.patience) }
	all := []*world{linux}
	for _, cfg := range cfgs {
		a, b := linkHosts(t, cfg, link.Config{})
		for _, h := range []*Host{a, b} { // Linux has no limit on the loopback
			h.st.Do(func() { h.st.Config().ICMPErrors = 1 << 30 })
		}
		all = append(all, &world{t: t, cli: a, srv: b, addr: b.Addr(), cliAddr: a.Addr(), other: netip.MustParseAddr("192.0.2.1"),
			settle: func() {
				for range 10 { // the answers to answers, too
					for _, h := range []*Host{a, b} {
						if h.cfg.Inline {
							h.st.Poll()
						} else {
							h.st.Do(func() {})
						}
					}
				}
			}})
	}
	return all
}

// note writes down what a call has returned.
func (w *world) note(label string, values ...any) {
	var s []string
	for _, v := range values {
		s = append(s, w.text(v))
	}
	w.log = append(w.log, label+" = "+strings.Join(s, " "))
}

func (w *world) text(v any) string {
	switch v := v.(type) {
	case nil:
		return "ok"
	case unix.Errno:
		return unix.ErrnoName(v)
	case error:
		return v.Error()
	case netip.AddrPort:
		name := map[netip.Addr]string{w.addr: "server", w.cliAddr: "client", netip.IPv4Unspecified(): "any"}[v.Addr()]
		if w.linux && v.Addr() == w.addr {
			name = "host"
		} else if name == "server" || name == "client" {
			name = "host"
		}
		if v.Port() == 0 {
			return name + ":0"
		}
		return name + ":port"
	case []byte:
		return fmt.Sprintf("% x", v)
	}
	return fmt.Sprint(v)
}

// must is for what the sequence needs and does not test.
func (w *world) must(err error) {
	w.t.Helper()
	if err != nil && err != unix.EINPROGRESS {
		w.t.Helper()
		w.t.Fatalf("linux %v: %v", w.linux, err)
	}
}

// difference is one between Linux and us that is meant to be.
type difference struct{ linux, ours, why string }

// compare runs a sequence in all worlds and compares the records. known maps labels to differences. What we do comes
// about in a known number of turns; Linux needs time, on a busy machine at times more than others: when the records
// differ it gets a second chance, and a third.
func compare(t *testing.T, all []*world, name string, known map[string]difference, run func(w *world)) {
	t.Run(name, func(t *testing.T) {
		for _, w := range all[1:] {
			w.record(t, run)
		}
		var faults []string
		for _, patience := range []time.Duration{time.Millisecond, 5 * time.Millisecond, 50 * time.Millisecond} {
			all[0].patience = patience
			all[0].record(t, run)
			if faults = differences(all, name, known); len(faults) == 0 {
				return
			}
		}
		for _, f := range faults {
			t.Error(f)
		}
	})
}

func (w *world) record(t testing.TB, run func(w *world)) {
	w.t, w.log = t, nil
	run(w)
}

// differences are those between the worlds' records that are not on the list, and those on the list that are not met.
func differences(all []*world, name string, known map[string]difference) (faults []string) {
	say := func(format string, a ...any) { faults = append(faults, fmt.Sprintf(format, a...)) }
	want := all[0].log
	met := map[string]bool{}
	for i, w := range all[1:] {
		if len(w.log) != len(want) {
			say("world %d: %d results, Linux has %d:\n%s\n---\n%s", i+1, len(w.log), len(want), strings.Join(w.log, "\n"), strings.Join(want, "\n"))
			return faults
		}
		for j, line := range w.log {
			label, ours, _ := strings.Cut(line, " = ")
			_, linux, _ := strings.Cut(want[j], " = ")
			full := name + ": " + label
			d, listed := known[full]
			switch {
			case listed && d.linux == linux && d.ours == ours:
				met[full] = true
			case listed && linux != ours:
				say("world %d: %s: Linux says %s, we say %s; the list of differences has %s and %s", i+1, full, linux, ours, d.linux, d.ours)
				met[full] = true
			case linux != ours:
				say("world %d: %s: Linux says %s, we say %s", i+1, full, linux, ours)
			}
		}
	}
	for full := range known {
		if strings.HasPrefix(full, name+": ") && !met[full] {
			say("%s: this difference is on the list, and was not met", full)
		}
	}
	return faults
}

// Sockets in the states that matter.

func (w *world) listener(backlog int) (fd int, at netip.AddrPort) {
	fd, err := w.srv.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	w.must(err)
	w.must(w.srv.Bind(fd, netip.AddrPortFrom(w.addr, 0)))
	w.must(w.srv.Listen(fd, backlog))
	at, err = w.srv.Getsockname(fd)
	w.must(err)
	return fd, at
}

func (w *world) tcp(c calls) int {
	fd, err := c.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	w.must(err)
	return fd
}

func (w *world) udp(c calls) int {
	fd, err := c.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
	w.must(err)
	return fd
}

// pair is a connection: the client's end and the server's.
func (w *world) pair() (c, s int) {
	l, at := w.listener(16)
	defer w.srv.Close(l)
	c = w.tcp(w.cli)
	w.must(w.cli.Connect(c, at))
	w.settle()
	s, _, err := w.srv.Accept(l)
	w.must(err)
	w.must(w.srv.SetNonblock(s, true))
	w.settle()
	return c, s
}

// reset makes the server's end reset the connection.
func (w *world) reset(s int) {
	w.must(w.srv.SetSockOpt(s, unix.SOL_SOCKET, unix.SO_LINGER, []byte{1, 0, 0, 0, 0, 0, 0, 0}))
	w.must(w.srv.Close(s))
	w.settle()
}

// connecting is a socket whose SYN is not answered: the listener's backlog is full.
func (w *world) connecting() (fd int, cleanup func()) {
	l, at := w.listener(0)
	var fillers []int
	for range 4 {
		f := w.tcp(w.cli)
		w.must(w.cli.Connect(f, at))
		fillers = append(fillers, f)
		w.settle()
	}
	fd = w.tcp(w.cli)
	w.must(w.cli.Connect(fd, at))
	w.settle()
	return fd, func() {
		for _, f := range fillers {
			w.cli.Close(f)
		}
		w.srv.Close(l)
	}
}

// eventNames turns EPOLL bits into text.
func eventNames(m uint32) string {
	var s []string
	for _, e := range []struct {
		bit  uint32
		name string
	}{{unix.EPOLLIN, "IN"}, {unix.EPOLLOUT, "OUT"}, {unix.EPOLLPRI, "PRI"}, {unix.EPOLLERR, "ERR"}, {unix.EPOLLHUP, "HUP"},
		{unix.EPOLLRDHUP, "RDHUP"}, {unix.EPOLLRDNORM, "RDNORM"}, {unix.EPOLLWRNORM, "WRNORM"}} {
		if m&e.bit != 0 {
			s = append(s, e.name)
			m &^= e.bit
		}
	}
	if m != 0 {
		s = append(s, fmt.Sprintf("%#x", m))
	}
	return strings.Join(s, "|")
}

// wait writes down the events that there are now, by their data.
func (w *world) wait(label string, c calls, ep int) {
	w.settle()
	evs := make([]EpollEvent, 8)
	n, err := c.EpollWait(ep, evs, 0)
	evs = evs[:n]
	slices.SortFunc(evs, func(a, b EpollEvent) int { return int(a.Data) - int(b.Data) })
	var s []string
	for _, e := range evs {
		s = append(s, fmt.Sprintf("%d:%s", e.Data, eventNames(e.Events)))
	}
	if err != nil {
		s = append(s, w.text(err))
	}
	w.note(label, strings.Join(s, " "))
}
