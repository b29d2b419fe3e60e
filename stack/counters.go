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

// Counters of one stack. Each has one writer, and is a plain number to it; Stack.Counters gives a consistent copy. What
// they are called elsewhere, and what they mean, see Metrics.
type Counters struct {
	RxFrames       uint64 `help:"frames received"`
	RxBytes        uint64 `help:"bytes of them"`
	TxFrames       uint64 `help:"frames that the port took"`
	RxSegments     uint64 `help:"TCP segments received"`
	RxData         uint64 `help:"TCP segments whose payload was taken"`
	TxSegments     uint64 `help:"TCP segments with payload that applications sent"`
	RxPayload      uint64 `help:"bytes read by applications"`
	TxPayload      uint64 `help:"bytes written by applications"`
	Acks           uint64 `help:"pure ACKs sent"`
	Retransmits    uint64 `help:"segments sent again"`
	Probes         uint64 `help:"window and keep-alive probes sent"`
	Resets         uint64 `help:"RSTs sent"`
	Opened         uint64 `help:"connections that came up by connect"`
	Accepted       uint64 `help:"connections that came up by accept"`
	CookiesSent    uint64 `help:"SYNs answered by a cookie"`
	CookiesTaken   uint64 `help:"connections that came up by a cookie"`
	Closed         uint64 `help:"connections released"`
	Archived       uint64 `help:"blocks of closed connections in the archive now" kind:"gauge"`
	ArchiveTaken   uint64 `help:"blocks that connections have taken from the archive"`
	ArchiveDropped uint64 `help:"blocks that left the archive for their age, or for want of room"`
	NoBuffer       uint64 `help:"times a frame of the stack's own found no buffer"`
	TxDropped      uint64 `help:"frames of the stack's own dropped because the port did not take them"`
	EchoReplies    uint64 `help:"pings answered"`
	RxDatagrams    uint64 `help:"datagrams received"`
	TxDatagrams    uint64 `help:"datagrams sent"`
	Connections    uint64 `help:"connections that exist now" kind:"gauge"`
	Tally
	ARP   NeighbourCounters     `name:"arp"`
	Drop  [NumDrops]uint64      `name:"dropped" label:"reason" help:"frames dropped although their headers are well formed"`
	Parse [wire.NumDrops]uint64 `name:"malformed" label:"reason" help:"frames that the parser dropped"`
}

// Counters gives a copy of all counters, taken between two turns.
func (s *Stack) Counters() (n Counters) {
	s.do(func() {
		n = s.count
		n.Connections = uint64(s.conns.used + s.waits.n)
		n.Archived = uint64(s.archive.n)
		n.TxFrames = s.w.TxSent
		s.tallyNow(&n)
	})
	s.app.lock.lock()
	n.TxSegments, n.TxPayload = s.app.txSegments, s.app.txPayload
	n.TxDatagrams = s.app.txDatagrams
	n.TxFrames += s.app.lane.TxSent
	s.app.tally.add(&n, &s.app)
	s.app.lock.unlock()
	n.RxPayload = s.app.rxPayload.Load()
	return n
}
