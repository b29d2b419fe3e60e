package stack

import (
	"ndpip/tcp"
	"ndpip/udp"
)

// Socket is a socket as somebody sees it who looks at the stack from outside.
type Socket struct {
	Kind         SocketKind
	Laddr, Raddr uint32
	Lport, Rport uint16
	Conn         tcp.Info // of a connection
	Look         tcp.Look
	Wanted       bool   // the application has not closed it
	Queue        int    // listener: connections that wait to be accepted; UDP: datagrams that wait to be read
	Half         int    // listener: connections that are coming up
	Backlog      int    // listener
	Bytes        int    // UDP: payload that waits to be read
	Dropped      uint64 // UDP: datagrams that found the queue full
}

// SocketKind is what a Socket is.
type SocketKind uint8

// The kinds.
const (
	SocketConn SocketKind = iota
	SocketListen
	SocketUDP
)

// Sockets calls each for every socket, on the caller's thread. It looks at a few hundred at a time, between two turns, so
// that the worker is never kept for long; what changes meanwhile may be missed.
func (s *Stack) Sockets(each func(*Socket)) {
	var part []Socket
	hand := func() {
		for i := range part {
			each(&part[i])
		}
		part = part[:0]
	}
	s.do(func() {
		for _, l := range s.byID {
			part = append(part, Socket{Kind: SocketListen, Laddr: l.Laddr, Lport: l.Lport, Queue: l.queue.Load().Len(), Half: l.half,
				Backlog: l.backlog, Wanted: true})
		}
		for _, us := range s.udps {
			for _, u := range us {
				part = append(part, udpSocket(u))
			}
		}
	})
	hand()
	for i, more := 0, true; more; i++ {
		s.do(func() {
			if more = i < len(s.conns.chunks); !more {
				return
			}
			for j := range s.conns.chunks[i] {
				if c := &s.conns.chunks[i][j]; c.ID != 0 {
					look := c.Look(s.now)
					part = append(part, Socket{Laddr: c.Laddr, Raddr: c.Raddr, Lport: c.Lport, Rport: c.Rport, Conn: c.Info(),
						Look: look, Wanted: !look.Orphan})
				}
			}
		})
		hand()
	}
}

func udpSocket(u *udp.Sock) Socket {
	o := Socket{Kind: SocketUDP, Laddr: u.Laddr, Lport: u.Lport, Queue: u.Len(), Bytes: u.Bytes(), Dropped: u.Dropped.Load(), Wanted: true}
	o.Raddr, o.Rport = u.Remote()
	return o
}

// Neighbour is an entry of the neighbour cache.
type Neighbour struct {
	Addr  uint32
	MAC   MAC
	State string
	Age   int64 // ns until what is known is to be confirmed; 0: it is due, or never
}

var neighNames = [...]string{"unused", "incomplete", "known", "probing", "failed", "static"}

// Neighbours are the entries of the neighbour cache.
func (s *Stack) Neighbours() (all []Neighbour) {
	s.do(func() {
		all = make([]Neighbour, 0, len(s.neigh.index))
		for _, i := range s.neigh.index {
			e := &s.neigh.entry[i]
			n := Neighbour{Addr: e.ip, MAC: e.mac, State: neighNames[e.state]}
			if e.state == neighKnown {
				n.Age = max(e.until-s.now, 0)
			}
			all = append(all, n)
		}
	})
	return all
}
