package stack

import "ndpip/stack/wire"

// Drop is why a frame was dropped although its headers are well formed; for those that are not, see wire.Drop.
type Drop uint8

// The reasons.
const (
	DropChained      Drop = iota // spread over more than one buffer
	DropNotOurs                  // another station's
	DropStray                    // no connection, listener or socket
	DropUnacceptable             // out of window, out of order, bad ACK
	DropBacklog                  // SYN to a listener whose backlog is full
	DropNoBuffer                 // unread data hold the receive pool
	DropQueueFull                // UDP socket's receive queue
	DropNeighbour                // sent by us: the next hop does not answer
	NumDrops
)

var dropNames = [NumDrops]string{"chained", "not_ours", "stray", "unacceptable", "backlog", "no_buffer", "queue_full",
	"neighbour"}

func (d Drop) String() string { return dropNames[d] }

// ParseOK is the index in Counters.Parse that stands for no fault.
const ParseOK = int(wire.OK)

// Counters of one stack. Each has one writer; Stack.Counters gives a consistent copy.
type Counters struct {
	RxFrames, RxBytes  uint64
	TxFrames           uint64
	RxSegments, RxData uint64 // TCP segments; those whose payload was taken
	TxSegments         uint64 // TCP segments with payload sent by the application
	RxPayload          uint64 // bytes read by applications
	TxPayload          uint64 // bytes written by applications
	Acks               uint64 // pure ACKs sent
	Retransmits        uint64 // segments sent again
	Probes             uint64
	Resets             uint64 // RSTs sent
	Opened, Accepted   uint64 // connections that came up by connect, by accept
	CookiesSent        uint64 // SYNs answered by a cookie
	CookiesTaken       uint64 // connections that came up by one
	Closed             uint64 // connections released
	NoBuffer           uint64 // times a frame of the stack's own found no buffer
	TxDropped          uint64 // frames of the stack's own dropped because the port did not take them
	EchoReplies        uint64
	RxDatagrams        uint64
	TxDatagrams        uint64
	Connections        uint64 // connections that exist now
	Drop               [NumDrops]uint64
	Parse              [wire.NumDrops]uint64 // frames dropped by the parser, by its reason
}

// Counters gives a copy of all counters, taken between two turns.
func (s *Stack) Counters() (n Counters) {
	s.do(func() {
		n = s.count
		n.Connections = uint64(s.conns.used + s.waits.n)
		n.TxFrames = s.w.TxSent
	})
	s.app.lock.lock()
	n.TxSegments, n.TxPayload = s.app.txSegments, s.app.txPayload
	n.TxDatagrams = s.app.txDatagrams
	n.TxFrames += s.app.lane.TxSent
	s.app.lock.unlock()
	n.RxPayload = s.app.rxPayload.Load()
	return n
}
