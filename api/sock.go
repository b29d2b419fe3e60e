package api

import (
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/stack"
)

type kind uint8

const (
	kindTCP    kind = iota // a TCP socket, neither connected nor listening
	kindConn               // a TCP connection
	kindListen             // a TCP listener
	kindUDP                // a UDP socket, with a port or (udp is nil) still without
	kindEpoll              // an epoll instance
)

// side is a direction of a socket. Each has its own gate, waiters, deadline and timeout.
type side uint8

const (
	reading side = iota
	writing
)

// sock is what a descriptor stands for.
//
// Who may touch the stack's part (conn, lis, udp)? Control calls hold mu. Reading and writing pass a gate each. Epoll
// instances hold their own lock and have the socket among their items; who takes news holds Host.news. Whoever takes
// the part away (Close, a connection that failed and may be opened again) stores nil, marks the socket closed or of
// another kind, and then passes all of these once (Host.detach): afterwards nobody has it any more.
type sock struct {
	fd   int
	kind atomic.Uint32
	conn atomic.Pointer[stack.Conn] // stored before kind
	lis  atomic.Pointer[stack.Listener]
	udp  atomic.Pointer[stack.UDP]
	ep   *epoll

	gates    [2]gate
	nonblock atomic.Bool
	closed   atomic.Bool
	err      atomic.Uint32   // an errno to be reported once, of a socket that is no connection any more
	errGiven atomic.Bool     // the connection's error was reported, which is done once (SO_ERROR)
	shut     [2]atomic.Bool  // SHUT_RD; SHUT_WR of a UDP socket
	noSpace  atomic.Bool     // a write found no room, or epoll found none: EPOLLOUT is news when there is some again
	limit    [2]atomic.Int64 // deadlines, on the clock of now; 0: none
	timeout  [2]atomic.Int64 // SO_RCVTIMEO, SO_SNDTIMEO in ns; 0: none
	ended    bool            // the peer's FIN was told to who waits; under Host.news
	users    users           // in debug builds: who reads and who writes

	mu              sync.Mutex // control calls; guards what follows
	opts            stack.Options
	linger          unix.Linger
	keepAlive       bool
	keep            keepTimes
	connecting      bool // connect has begun, and no later call of it has told how it went
	bound           bool
	reserved, reuse bool   // the port is reserved for this socket (Bind), with SO_REUSEADDR
	laddr           uint32 // as bound; 0: any
	lport           uint16

	obs     sync.Mutex                   // guards waiters, changes of items, and what Watch is set to
	waiters [2]*waiter                   // goroutines that sleep until the socket is ready
	asleep  atomic.Int32                 // how many; stored before Watch
	items   atomic.Pointer[[]*epollItem] // in which epoll instances, replaced as a whole
}

func (s *sock) is(k kind) bool { return kind(s.kind.Load()) == k }

// gate lets one goroutine at a time into the stack's calls for one direction of a socket. It is held for the length of
// one call into the stack, which does not block, and never while waiting; so passing it costs one atomic exchange.
type gate struct{ v atomic.Uint32 }

func (g *gate) enter() {
	if !g.v.CompareAndSwap(0, 1) {
		g.queue()
	}
}

func (g *gate) queue() {
	for i := 0; !g.v.CompareAndSwap(0, 1); i++ {
		if i < 100 {
			runtime.Gosched()
		} else {
			time.Sleep(10 * time.Microsecond) // its holder has lost its CPU
		}
	}
}

func (g *gate) leave() { g.v.Store(0) }

// began is the zero of the clock that deadlines are on.
var began = time.Now()

// now is the time in ns since the program began. It is never 0.
func now() int64 { return int64(time.Since(began)) + 1 }

// fdTable is the table of descriptors. Look-ups take no lock: the slice is replaced as a whole when it grows.
type fdTable struct {
	mu    sync.Mutex
	socks atomic.Pointer[[]atomic.Pointer[sock]]
	free  fdHeap
	used  int
}

func (t *fdTable) get(fd int) *sock {
	s := t.socks.Load()
	if s == nil || uint(fd) >= uint(len(*s)) {
		return nil
	}
	return (*s)[fd].Load()
}

// add gives s the lowest free descriptor, as POSIX wants.
func (t *fdTable) add(s *sock) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.free) > 0 {
		s.fd = t.free.pop()
	} else {
		s.fd = t.used
		t.used++
	}
	old := t.socks.Load()
	if old == nil || s.fd >= len(*old) {
		n := 64
		if old != nil {
			n = 2 * len(*old)
		}
		grown := make([]atomic.Pointer[sock], n)
		if old != nil {
			for i := range *old {
				grown[i].Store((*old)[i].Load())
			}
		}
		t.socks.Store(&grown)
		old = &grown
	}
	(*old)[s.fd].Store(s)
}

// remove takes its descriptor away from s.
func (t *fdTable) remove(s *sock) {
	t.mu.Lock()
	defer t.mu.Unlock()
	(*t.socks.Load())[s.fd].Store(nil)
	t.free.push(s.fd)
}

// each calls f for every open socket.
func (t *fdTable) each(f func(*sock)) {
	if all := t.socks.Load(); all != nil {
		for i := range *all {
			if s := (*all)[i].Load(); s != nil {
				f(s)
			}
		}
	}
}

// fdHeap is a binary heap of free descriptors, the lowest on top.
type fdHeap []int

func (h *fdHeap) push(fd int) {
	a := append(*h, fd)
	*h = a
	for i := len(a) - 1; i > 0; {
		up := (i - 1) / 2
		if a[up] <= a[i] {
			return
		}
		a[up], a[i] = a[i], a[up]
		i = up
	}
}

func (h *fdHeap) pop() int {
	a := *h
	top, last := a[0], len(a)-1
	a[0] = a[last]
	a = a[:last]
	*h = a
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < last; c++ {
			if a[c] < a[least] {
				least = c
			}
		}
		if least == i {
			return top
		}
		a[i], a[least] = a[least], a[i]
		i = least
	}
}

// addr4 is an IPv4 address as a number; the zero Addr is 0.0.0.0.
func addr4(a netip.Addr) (uint32, bool) {
	a = a.Unmap()
	if !a.IsValid() {
		return 0, true
	}
	if !a.Is4() {
		return 0, false
	}
	b := a.As4()
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3]), true
}

func addrPort(a uint32, p uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{byte(a >> 24), byte(a >> 16), byte(a >> 8), byte(a)}), p)
}
