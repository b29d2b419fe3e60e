package api

import (
	"net/netip"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"ndpip/stack"
	"ndpip/tcp"
	"ndpip/udp"
)

type kind uint8

const (
	kindTCP    kind = iota // a TCP socket, neither connected nor listening
	kindConn               // a TCP connection
	kindListen             // a TCP listener
	kindUDP                // a UDP socket
	kindEpoll              // an epoll instance
)

// sock is what a descriptor stands for. mu guards what control calls change; the data path reads kind and the pointers,
// which are set before kind is stored.
type sock struct {
	mu       sync.Mutex
	fd       int
	kind     atomic.Uint32
	nonblock atomic.Bool
	closed   atomic.Bool

	conn *tcp.Conn
	lis  *stack.Listener
	udp  *udp.Sock
	ep   *epoll

	opts            stack.Options
	linger          unix.Linger
	noDelay         bool
	keepAlive       bool
	keepIdle        int64 // TCP_KEEPIDLE in ns; 0: default
	bound           bool
	reserved, reuse bool   // the port is reserved for this socket (Bind), with SO_REUSEADDR
	laddr           uint32 // as bound; 0: any
	lport           uint16
	errGiven        atomic.Bool // the connection's error was reported (SO_ERROR, connect)
	rdShut          atomic.Bool

	epMu  sync.Mutex                   // guards changes of items
	items atomic.Pointer[[]*epollItem] // in which epoll instances, replaced as a whole
}

func (s *sock) is(k kind) bool { return kind(s.kind.Load()) == k }

// fdTable is the table of descriptors. Look-ups take no lock: the slice is replaced as a whole when it grows.
type fdTable struct {
	mu    sync.Mutex
	socks atomic.Pointer[[]atomic.Pointer[sock]]
	free  []int
	used  int
}

func (t *fdTable) get(fd int) *sock {
	s := t.socks.Load()
	if s == nil || uint(fd) >= uint(len(*s)) {
		return nil
	}
	return (*s)[fd].Load()
}

// add gives s a descriptor.
func (t *fdTable) add(s *sock) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.free); n > 0 {
		s.fd = t.free[n-1]
		t.free = t.free[:n-1]
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

// remove takes fd away from s; false if somebody else has done so.
func (t *fdTable) remove(s *sock) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := *t.socks.Load()
	if all[s.fd].Load() != s {
		return false
	}
	all[s.fd].Store(nil)
	t.free = append(t.free, s.fd)
	return true
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
