package stack

import (
	"sync/atomic"

	"ndpip/ring"
	"ndpip/tcp"
)

// told is how the worker tells the application's threads about sockets: a list of their names (Stream), and a call for
// those that sleep.
//
// A socket has two words for it. Watch is the application's: what it waits for (tcp.Pend bits), and WatchSleep when a
// thread sleeps until it comes. Ready is what has happened since the application last took it: the worker adds bits, and
// the name goes on the list with the first; the application swaps it for 0 when it has taken the name off, and only then
// looks at the socket.
//
// Nothing is lost. The application sets Watch and then looks; the worker publishes and then reads Watch: either the
// application sees the change, or the worker sees that somebody waits. Bits that are added while the name is on the list
// are taken together with it. All of these are atomics, whose order Go keeps.
type told struct {
	list *ring.SPSC[uint32] // one producer, the worker; one consumer at a time, see Ready
	// overflow is 1 when the list was full: some sockets have bits in Ready and are not on it. Stored after Ready.
	overflow atomic.Uint32
	parked   atomic.Int32 // threads that sleep until there is news of any socket
	waker    func()       // wakes those who sleep; may be called without need
}

// WatchSleep in a socket's Watch says that a thread sleeps: news are followed by a call of the waker.
const WatchSleep = 1 << 31

// maxNews is how many names the list holds; beyond that all sockets are looked at.
const maxNews = 1 << 14

func (n *told) init() {
	n.list = ring.New[uint32](maxNews)
	n.waker = func() {}
}

// SetWaker sets what the worker calls when there is news for those who sleep (WatchSleep, Park). It runs on the worker's
// thread: it must not block. Before Start.
func (s *Stack) SetWaker(f func()) { s.told.waker = f }

// tell puts a socket on the list with what has happened, as far as watch asks for it; PendOpen is news to anybody.
func (s *Stack) tell(ready *atomic.Uint32, stream, watch uint32, what tcp.Pend) {
	n := &s.told
	bits := uint32(what & (tcp.Pend(watch) | tcp.PendOpen))
	if bits == 0 {
		return
	}
	if ready.Load()&bits != bits && ready.Or(bits) == 0 && !n.list.Push(stream) {
		n.overflow.Store(1)
	}
	if watch&WatchSleep != 0 || n.parked.Load() > 0 {
		n.waker()
	}
}

// HasNews says whether Ready would give anything.
func (s *Stack) HasNews() bool { return s.told.list.Len() > 0 || s.told.overflow.Load() != 0 }

// Ready takes the names of sockets with news off the list. all says that names were lost: whatever has bits in its Ready
// word has news. One thread at a time.
func (s *Stack) Ready(names []uint32) (n int, all bool) {
	if s.told.overflow.Load() != 0 {
		s.told.overflow.Store(0)
		all = true
	}
	return s.told.list.PopBulk(names), all
}

// Park and Unpark enclose the sleep of a thread that waits for news of any socket: between them each is followed by a
// call of the waker. Whoever parks takes what is on the list once more before it sleeps.
func (s *Stack) Park() { s.told.parked.Add(1) }

// Unpark ends what Park began.
func (s *Stack) Unpark() { s.told.parked.Add(-1) }
