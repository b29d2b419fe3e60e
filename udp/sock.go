// Package udp is the user datagram protocol (RFC 768) between the stack and the application: a socket is a queue of
// received datagrams and the peer that it is connected to. Headers are the stack's business.
package udp

import (
	"sync/atomic"

	"ndpip/ring"
)

// Sock is a UDP socket. The worker pushes datagrams, the application takes them off.
type Sock struct {
	Laddr  uint32 // 0: any; written by the worker before the socket is known
	Lport  uint16
	Reuse  bool   // SO_REUSEADDR when it was bound
	Stream uint32 // the application's name for it
	ID     uint32

	// remote is the peer that the socket is connected to, address << 16 | port; 0: none. Written by the worker when
	// the application connects; the application reads it back.
	remote atomic.Uint64
	// Err is the errno of an ICMP error for a connected socket, to be reported once. Written by the worker; the
	// application swaps it for 0.
	Err   atomic.Uint32
	Watch atomic.Uint32 // events that the application waits for
	// Service is the type of service, << 8, and the time to live (0: the default) of what is sent.
	Service atomic.Uint32
	Ready   atomic.Uint32 // 1: in the ready list already

	Dropped atomic.Uint64 // datagrams that found the queue full; written by the worker
	bytes   atomic.Int64  // payload in the queue
	limit   int64
	queue   *ring.SPSC[ring.Entry]
}

// New makes a socket whose queue holds at most limit bytes of payload in at most entries datagrams.
func New(limit, entries int) *Sock {
	return &Sock{limit: int64(limit), queue: ring.New[ring.Entry](entries)}
}

// Remote is the peer's address and port; 0, 0: not connected.
func (s *Sock) Remote() (addr uint32, port uint16) {
	r := s.remote.Load()
	return uint32(r >> 16), uint16(r)
}

// SetRemote connects the socket.
func (s *Sock) SetRemote(addr uint32, port uint16) { s.remote.Store(uint64(addr)<<16 | uint64(port)) }

// From says whether a datagram of this source is for the socket: any for one that is not connected.
func (s *Sock) From(addr uint32, port uint16) bool {
	r := s.remote.Load()
	return r == 0 || r == uint64(addr)<<16|uint64(port)
}

// Deliver queues a datagram. It returns false, and takes nothing, when the queue is full. Worker only.
func (s *Sock) Deliver(e ring.Entry) bool {
	if s.bytes.Load()+int64(e.Len()) > s.limit && s.queue.Len() > 0 || !s.queue.Push(e) {
		s.Dropped.Add(1)
		return false
	}
	s.bytes.Add(int64(e.Len()))
	return true
}

// Take takes the oldest datagram off. Application only.
func (s *Sock) Take() (e ring.Entry, ok bool) {
	if e, ok = s.queue.Pop(); ok {
		s.bytes.Add(-int64(e.Len()))
	}
	return e, ok
}

// Len is how many datagrams wait.
func (s *Sock) Len() int { return s.queue.Len() }

// Readable says whether there is a datagram.
func (s *Sock) Readable() bool { return s.queue.Len() > 0 }

// Bytes is how much payload waits.
func (s *Sock) Bytes() int { return int(s.bytes.Load()) }
