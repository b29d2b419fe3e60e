package api

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// slots is how many descriptors each side has at a time.
const slots = 5

// caller carries out a sequence of calls that is given as bytes: three for a call, which are what, by whom on which
// descriptor, and with what. A call depends on the bytes alone, not on what calls before it have returned.
type caller struct {
	*world
	fd        [2][slots]int
	epoll     [2][slots]bool // it is an epoll instance
	used      [2][slots]bool // it has been connected, or was to be, or has listened
	i         int            // the call's number in the sequence
	who, with byte           // its bytes
}

// mostCalls is the length of the longest sequence.
const mostCalls = 48

// run carries out a sequence and closes what it leaves open.
func (x *caller) run(data []byte) {
	x.log = nil
	for side := range x.fd {
		for i := range x.fd[side] {
			x.fd[side][i] = -1
		}
	}
	for x.i = 0; len(data) >= 3 && x.i < mostCalls; x.i++ {
		x.call(data[0], data[1], data[2])
		data = data[3:]
		x.settle()
	}
	for side := range x.fd {
		for i := range x.fd[side] {
			x.drop(side, i)
		}
	}
	x.settle()
}

// drop empties a slot. Connections are reset, lest they stay about.
func (x *caller) drop(side, i int) {
	if fd := x.fd[side][i]; fd >= 0 {
		c := x.side(side)
		_ = c.SetSockOpt(fd, unix.SOL_SOCKET, unix.SO_LINGER, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		_ = c.Close(fd)
		x.fd[side][i] = -1
	}
}

func (x *caller) side(side int) calls { return []calls{x.cli, x.srv}[side] }
func (x *caller) own(side int) netip.Addr {
	return []netip.Addr{x.cliAddr, x.addr}[side]
}

// keep puts a new descriptor into a slot.
func (x *caller) keep(side, i, fd int, err error) {
	if err != nil {
		return
	}
	x.drop(side, i)
	x.fd[side][i], x.epoll[side][i], x.used[side][i] = fd, false, false
	_ = x.side(side).SetNonblock(fd, true)
}

// portOf is the port of a descriptor; 0: it has none. That of a socket after use is a result to compare: a call with
// another port than on Linux is another call.
func (x *caller) portOf(side, i int) uint16 {
	a, err := x.side(side).Getsockname(x.fd[side][i])
	if x.used[side][i] {
		x.say("getsockname after use", a, err)
	}
	return a.Port()
}

// say writes down a result: which call, of which side's which slot, and with what argument.
func (x *caller) say(name string, values ...any) {
	x.note(fmt.Sprintf("%d, %s %d: %s (%d)", x.i, [2]string{"client", "server"}[x.who>>7], x.who&0x7f%slots, name, x.with), values...)
}

// fuzzOptions are those that are read and written.
var fuzzOptions = []struct {
	name      string
	level, id int
}{
	{"SO_TYPE", unix.SOL_SOCKET, unix.SO_TYPE}, {"SO_ACCEPTCONN", unix.SOL_SOCKET, unix.SO_ACCEPTCONN},
	{"SO_REUSEADDR", unix.SOL_SOCKET, unix.SO_REUSEADDR}, {"SO_KEEPALIVE", unix.SOL_SOCKET, unix.SO_KEEPALIVE},
	{"SO_LINGER", unix.SOL_SOCKET, unix.SO_LINGER}, {"SO_ERROR", unix.SOL_SOCKET, unix.SO_ERROR},
	{"SO_ERROR", unix.SOL_SOCKET, unix.SO_ERROR}, {"SO_RCVTIMEO", unix.SOL_SOCKET, unix.SO_RCVTIMEO},
	{"TCP_KEEPIDLE", unix.IPPROTO_TCP, unix.TCP_KEEPIDLE}, {"TCP_KEEPCNT", unix.IPPROTO_TCP, unix.TCP_KEEPCNT},
	{"TCP_USER_TIMEOUT", unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT}, {"IP_TTL", unix.IPPROTO_IP, unix.IP_TTL},
	{"IP_TOS", unix.IPPROTO_IP, unix.IP_TOS}, {"none", unix.SOL_SOCKET, 9999},
}

func (x *caller) call(what, who, with byte) {
	x.who, x.with = who, with
	side, i, arg := int(who>>7), int(who&0x7f)%slots, int(with)
	c, fd, j := x.side(side), x.fd[side][i], arg%slots
	switch what % 24 {
	case 0, 1:
		fd, err := c.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
		x.say("socket", err)
		x.keep(side, i, fd, err)
	case 2:
		fd, err := c.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK, 0)
		x.say("socket", err)
		x.keep(side, i, fd, err)
	case 3:
		domain := []int{unix.AF_INET, unix.AF_INET, 99, -1}[arg&3]
		typ := []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, 77, -1}[arg>>2&3]
		protocol := []int{unix.IPPROTO_TCP, unix.IPPROTO_UDP, 99, -1}[arg>>4&3]
		fd, err := c.Socket(domain, typ|unix.SOCK_NONBLOCK, protocol)
		x.say("socket of any kind", err)
		x.keep(side, i, fd, err)
	case 4:
		at := []netip.Addr{x.own(side), netip.IPv4Unspecified(), x.own(side), x.other, netip.IPv6LinkLocalAllNodes()}[arg>>4%5]
		port, name := uint16(0), x.afterUse("bind", side, i)
		if arg&8 != 0 {
			if port = x.portOf(side, j); x.used[side][j] && !x.used[side][i] {
				name = "bind to a used one's port"
			}
		}
		x.say(name, c.Bind(fd, netip.AddrPortFrom(at, port)))
	case 5:
		x.used[side][i] = true
		x.say("listen", c.Listen(fd, arg%8-1))
	case 6, 7, 8:
		port := x.portOf(1-side, j)
		if port == 0 {
			port = 9
		}
		x.used[side][i] = true
		x.say("connect", c.Connect(fd, netip.AddrPortFrom(x.own(1-side), port)))
	case 9, 10:
		n, _, err := c.Accept(fd)
		x.say("accept", err)
		x.keep(side, j, n, err)
		x.used[side][j] = x.used[side][j] || err == nil
	case 11:
		x.say("close", c.Close(fd))
		x.fd[side][i] = -1
	case 12:
		listens := make([]byte, 4)
		_, _ = c.GetSockOpt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN, listens)
		err := c.Shutdown(fd, arg%5-1)
		x.say("shutdown", err)
		// Linux has noted it all the same with ENOTCONN, and takes a listener's port away if it was not asked for by number.
		if err == unix.ENOTCONN || err == nil && listens[0] != 0 && arg%5-1 != unix.SHUT_WR {
			x.drop(side, i)
		}
	case 13:
		n, err := c.Read(fd, make([]byte, arg))
		x.say("read", n, err)
	case 14:
		n, err := c.Write(fd, make([]byte, arg))
		x.say("write", n, err)
		x.unaddressed(side, i, err)
	case 15:
		n, err := c.SendTo(fd, make([]byte, arg>>1), netip.AddrPort{})
		x.say("sendto nobody", n, err)
		x.unaddressed(side, i, err)
	case 16:
		port := x.portOf(1-side, j)
		n, err := c.SendTo(fd, make([]byte, arg>>1), netip.AddrPortFrom(x.own(1-side), port))
		x.say("sendto", n, err)
		x.unaddressed(side, i, err)
	case 17:
		n, from, err := c.RecvFrom(fd, make([]byte, arg))
		_ = from // of a stream it says nothing
		x.say("recvfrom", n, err)
	case 18:
		o := fuzzOptions[arg%len(fuzzOptions)]
		b := make([]byte, 32)
		n, err := c.GetSockOpt(fd, o.level, o.id, b)
		x.say("get "+o.name, b[:min(n, len(b))], err)
	case 19:
		o := fuzzOptions[arg%len(fuzzOptions)]
		value := []byte{byte(arg >> 4), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		x.say("set "+o.name, c.SetSockOpt(fd, o.level, o.id, value[:min(16, 4+arg>>5*4)]))
	case 20:
		if arg&1 != 0 {
			a, err := c.Getsockname(fd)
			x.say(x.afterUse("getsockname", side, i), a, err)
		} else {
			a, err := c.Getpeername(fd)
			x.say("getpeername", a, err)
		}
	case 21:
		fd, err := c.EpollCreate()
		x.say("epoll_create", err)
		x.keep(side, i, fd, err)
		x.epoll[side][i] = err == nil
	case 22:
		op := []int{unix.EPOLL_CTL_ADD, unix.EPOLL_CTL_ADD, unix.EPOLL_CTL_MOD, unix.EPOLL_CTL_DEL}[arg>>3&3]
		if x.epoll[side][j] && x.fd[side][j] >= 0 {
			return // instances do not nest
		}
		events := []uint32{unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP, unix.EPOLLIN, unix.EPOLLOUT, 0}[arg>>5&3]
		if arg>>7 != 0 {
			events |= unix.EPOLLET
		}
		x.say("epoll_ctl", c.EpollCtl(fd, op, x.fd[side][j], &EpollEvent{Events: events, Data: uint64(j)}))
	case 23:
		evs := make([]EpollEvent, 16)
		n, err := c.EpollWait(fd, evs, 0)
		var s []string
		for _, e := range evs[:n] {
			s = append(s, fmt.Sprintf("%d:%s", e.Data, eventNames(e.Events)))
		}
		slices.Sort(s)
		x.say("epoll_wait", strings.Join(s, " "), err)
	}
}

// knownCalls are the differences that are meant to be, by call and results. Behind one the two worlds have gone different
// ways, and what follows is not compared.
var knownCalls = func() map[string][]difference {
	const (
		dead = "a socket whose connection is over, or was refused, cannot be bound again, nor can one that has listened"
		port = "when a connection could not be opened and the caller has been told, the port goes"
		kept = "but if bind has given it, as any free one, it stays until the socket is closed"
	)
	return map[string][]difference{
		"bind after use":        {{"ok", "EINVAL", dead}, {"EADDRINUSE", "EINVAL", dead}},
		"getsockname after use": {{"any:port ok", "any:0 ok", port}},

		"bind to a used one's port": {{"ok", "EADDRINUSE", kept}},
	}
}()

// afterUse is the name of a call on a socket that is not new.
func (x *caller) afterUse(name string, side, i int) string {
	if x.used[side][i] {
		return name + " after use"
	}
	return name
}

// unaddressed drops a UDP socket that was told to send to nowhere: Linux has bound it before it saw that.
func (x *caller) unaddressed(side, i int, err error) {
	if err == unix.EDESTADDRREQ || err == unix.EINVAL {
		x.drop(side, i)
	}
}

// compareCalls runs a sequence on Linux and on a pair of hosts, and says where they differ.
func compareCalls(linux, ours *world, data []byte) (fault string) {
	(&caller{world: ours}).run(data)
	for _, linux.patience = range []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 30 * time.Millisecond} {
		(&caller{world: linux}).run(data)
		if fault = firstDifference(linux.log, ours.log); fault == "" {
			return ""
		}
	}
	return fault
}

func firstDifference(linux, ours []string) string {
	for i := range min(len(linux), len(ours)) {
		if linux[i] == ours[i] {
			continue
		}
		label, want, _ := strings.Cut(linux[i], " = ")
		_, got, _ := strings.Cut(ours[i], " = ")
		_, name, _ := strings.Cut(label, ": ")
		name, _, _ = strings.Cut(name, " (")
		if slices.ContainsFunc(knownCalls[name], func(d difference) bool { return d.linux == want && d.ours == got }) {
			return ""
		}
		return fmt.Sprintf("%s: Linux says %s, we say %s, after\n%s", label, want, got, strings.Join(linux[:i], "\n"))
	}
	return ""
}

// callWorlds are Linux and a pair of hosts without workers: what they do follows from the calls alone.
func callWorlds(t testing.TB) (linux, ours *world) {
	all := worlds(t)
	return all[0], all[2]
}

// FuzzCalls compares sequences of calls with Linux.
func FuzzCalls(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(likely(seed))
	}
	linux, ours := callWorlds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		linux.t, ours.t = t, t
		if fault := compareCalls(linux, ours, data); fault != "" {
			t.Error(fault)
		}
	})
}

// TestCallsAtRandom is FuzzCalls with sequences that are likely to get somewhere: two sides that open connections and use
// them.
func TestCallsAtRandom(t *testing.T) {
	linux, ours := callWorlds(t)
	seeds := uint64(3000)
	if testing.Short() {
		seeds = 300
	}
	failed := 0
	for seed := range seeds {
		if fault := compareCalls(linux, ours, likely(seed)); fault != "" {
			t.Errorf("seed %d: %s", seed, fault)
			if failed++; failed == 10 {
				break
			}
		}
	}
}

// likely is a sequence in which the server's slot 0 listens and the client's slot 0 connects to it, with other calls
// about and in between.
func likely(seed uint64) (data []byte) {
	r := rand.New(rand.NewPCG(seed, 1))
	any := func() {
		what := byte(r.IntN(24))
		if r.IntN(2) == 0 {
			what = []byte{11, 12, 13, 14, 18, 22, 23}[r.IntN(7)]
		}
		data = append(data, what, byte(r.IntN(2)<<7|r.IntN(3)), byte(r.Uint32()))
	}
	steps := [][]byte{{0, 0x80, 0}, {4, 0x80, 0}, {5, 0x80, 7}, {0, 0, 0}, {6, 0, 0}, {9, 0x80, 1}}
	if r.IntN(4) == 0 { // UDP
		steps = [][]byte{{2, 0x80, 0}, {4, 0x80, 0}, {2, 0, 0}, {6, 0, 0}, {14, 0, 9}}
	}
	if r.IntN(2) == 0 {
		steps = append([][]byte{{21, 0, 2}, {21, 0x82, 0}}, steps...)
	}
	for _, s := range steps {
		if r.IntN(12) == 0 {
			any()
		}
		data = append(data, s...)
	}
	for len(data) < 3*(8+r.IntN(30)) {
		any()
	}
	return data
}
