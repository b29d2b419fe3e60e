package stack

import (
	"math/bits"

	"ndpip/tcp"
)

// Tally is what the counters say of how the work goes: segments by kind, stalls, marks and the worker's time. A peak is
// the most that there ever was.
type Tally struct {
	RxAcks uint64 `help:"TCP segments received without payload"`
	RxSyns uint64 `help:"SYNs received"`
	RxFins uint64 `help:"FINs received"`
	RxRsts uint64 `help:"RSTs received"`
	TxSyns uint64 `help:"SYNs sent, with and without ACK"`
	TxFins uint64 `help:"FINs sent, resent ones not counted"`

	Runs      uint64 `help:"runs of segments that were taken as one, behind the first of each"`
	Coalesced uint64 `help:"segments in these runs"`

	Timeouts      uint64 `help:"retransmission timers that expired"`
	SynTimeouts   uint64 `help:"of these, those of SYNs"`
	ZeroWindows   uint64 `help:"ACKs sent that closed the window to the peer"`
	WindowStalls  uint64 `help:"sends that took nothing because the peer's window was used up"`
	RingStalls    uint64 `help:"sends that took nothing for want of room in the transmit ring or of buffers"`
	PortStalls    uint64 `help:"bursts of which the port did not take all"`
	Gathered      uint64 `help:"segments copied together because their receive ring was half full"`
	UnreachSent   uint64 `help:"ICMP errors sent"`
	Turns         uint64 `help:"turns of the worker"`
	BusyTurns     uint64 `help:"of these, those that found something to do"`
	RxHeld        uint64 `help:"received buffers that applications have not given back" kind:"gauge"`
	RxHeldPeak    uint64 `help:"most of these" kind:"gauge"`
	TxHeld        uint64 `help:"buffers taken to send that are not acknowledged" kind:"gauge"`
	TxHeldPeak    uint64 `help:"most of these" kind:"gauge"`
	AttentionPeak uint64 `help:"most connections that applications announced to one turn" kind:"gauge"`
	CommandPeak   uint64 `help:"most commands of applications in one turn" kind:"gauge"`
	TouchedPeak   uint64 `help:"most connections with something to do in one turn" kind:"gauge"`
	Listeners     uint64 `help:"listening sockets" kind:"gauge"`
	UDPSockets    uint64 `help:"UDP sockets" kind:"gauge"`
	Timers        uint64 `help:"armed timers" kind:"gauge"`
	Neighbours    uint64 `help:"neighbours known or asked for" kind:"gauge"`
	NeighbourWait uint64 `help:"datagrams that wait for a neighbour" kind:"gauge"`
	RxRingBytes   uint64 `help:"memory of receive rings" kind:"gauge"`
	TxRingBytes   uint64 `help:"memory of transmit rings" kind:"gauge"`

	Turn TurnTimes `name:"turn_seconds" help:"time of busy turns, as far as there is a worker" kind:"histogram"`
}

// TurnTimes is a histogram of times: Count[i] of them were shorter than TurnBound(i) and not shorter than the bound before.
type TurnTimes struct {
	Count [turnSteps]uint64
	Sum   uint64 // ns
}

const (
	turnSteps = 16
	turnShift = 9 // the first step ends at 512 ns, each further one at double that
)

// TurnBound is where step i ends, in ns; the last one has no end.
func TurnBound(i int) uint64 { return 1 << (turnShift + i) }

func (t *TurnTimes) add(ns int64) {
	t.Count[min(bits.Len64(uint64(ns)>>turnShift), turnSteps-1)]++
	t.Sum += uint64(ns)
}

// Quantile is the time in ns that a share q of the turns took less than, as far as the steps tell; 0 without turns.
func (t *TurnTimes) Quantile(q float64) uint64 {
	all := uint64(0)
	for _, n := range t.Count {
		all += n
	}
	if all == 0 {
		return 0
	}
	seen := uint64(0)
	for i, n := range t.Count {
		if seen += n; float64(seen) >= q*float64(all) {
			return TurnBound(i)
		}
	}
	return TurnBound(turnSteps - 1)
}

// turnClock tells how long the worker's turns take: from one receive to the next, as a busy turn is followed by another
// at once. The time is read once per turn anyway.
type turnClock struct {
	at   int64
	busy bool // the turn that began then had something to do
}

// timeTurn is called after each turn of Run.
func (s *Stack) timeTurn(busy bool) {
	c := &s.turns.clock
	if c.busy {
		s.count.Turn.add(s.now - c.at)
	}
	c.at, c.busy = s.now, busy
}

// count adds to a counter of the data path.
func count(total *uint64, n uint64) {
	if counting {
		*total += n
	}
}

// peak raises a high-water mark.
func peak(mark *uint64, n uint64) {
	if counting && n > *mark {
		*mark = n
	}
}

// countKind counts a segment that is more or less than text and ACK.
func (s *Stack) countKind(flags uint8, n uint32) {
	if !counting {
		return
	}
	t := &s.count.Tally
	if n == 0 {
		t.RxAcks++
	}
	if flags&(tcp.SYN|tcp.FIN|tcp.RST) == 0 {
		return
	}
	switch {
	case flags&tcp.RST != 0:
		t.RxRsts++
	case flags&tcp.SYN != 0:
		t.RxSyns++
	default:
		t.RxFins++
	}
}

// countTimeout counts a timer that has expired with something to be sent again.
func (s *Stack) countTimeout(p tcp.Pend) {
	if p&(tcp.PendRtx|tcp.PendSyn) != 0 {
		s.count.Timeouts++
	}
	if p&tcp.PendSyn != 0 {
		s.count.SynTimeouts++
	}
}

// appTally is what the application's threads count, under their lock.
type appTally struct {
	windowStalls, ringStalls, fins, held uint64
}

func (t *appTally) add(n *Counters, a *appSide) {
	n.WindowStalls, n.RingStalls = t.windowStalls, t.ringStalls
	n.TxFins += t.fins
	n.TxHeld, n.TxHeldPeak = a.taken-a.returned.Load(), t.held
	n.PortStalls += a.lane.TxRefuse
}

// countRead counts bytes that an application has read. Any thread may come, without the lock.
func (a *appSide) countRead(n uint64) {
	if counting {
		a.rxPayload.Add(n)
	}
}

// countStall counts a call that has sent nothing, of segments of which the transmit ring had room for entries.
func (s *Stack) countStall(room uint32, segments, entries int) {
	switch {
	case entries == 0 && segments > 0:
		s.app.tally.ringStalls++
	case room == 0:
		s.app.tally.windowStalls++
	}
}

// tallyNow fills in what is looked up when somebody asks. Worker only.
func (s *Stack) tallyNow(n *Counters) {
	n.PortStalls = s.w.TxRefuse
	n.RxHeld = s.rxHeld - s.app.consumed.Load()
	n.Listeners = uint64(len(s.byID))
	for _, l := range s.udps {
		n.UDPSockets += uint64(len(l))
	}
	n.Timers = uint64(s.wheel.count)
	n.ARP = s.neigh.count
	n.Neighbours = uint64(len(s.neigh.index))
	n.NeighbourWait = uint64(s.neigh.heldN)
	n.RxRingBytes, n.TxRingBytes = s.rx.Stats().InUse, s.tx.Stats().InUse
}
