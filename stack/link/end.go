package link

import (
	"fmt"
	"time"

	"ndpip/dpdk"
	"ndpip/stack/pcap"
)

// Port is what the port at one end is like. The zero Port is one with 1024 buffers that does everything at once.
type Port struct {
	Buffers   int // in the pool that frames are received into; 0: 1024
	TxBuffers int // in the pool that empty buffers to send from come from; 0: it is the same pool
	BufSize   int // bytes of a buffer, headroom included; 0: 2176, as with DPDK
	Headroom  int // bytes in front of a frame; 0: 128, as with DPDK; -1: none

	// TxRing is how many frames the port holds that wait for the wire or are on it (see Path.Rate). When it is full, the
	// port takes no more and leaves the rest to the sender. 0: no limit.
	TxRing int
	// RxRing is how many frames the port holds that were not received yet; more are lost, and counted as Missed. 0: no
	// limit.
	RxRing int

	// TxChecksum: the port fills in checksums (dpdk.TxIPSum, TxTCPSum, TxUDPSum). Without it, asking is a misuse.
	TxChecksum bool
	// RxChecksum: the port checks checksums, and sets the flags dpdk.RxIPGood and so on.
	RxChecksum bool

	// Pad lengthens received frames to this many bytes with random ones: Ethernet pads to 60, and drivers were seen to
	// leave more behind a frame than its IP length says.
	Pad int

	// Hold: the port keeps its reference to a frame's buffer until the frame has arrived, as a ring between two ports
	// does, and not only until Exchange returns. A sender that changes the frame in the meantime gets a panic.
	Hold bool

	// Trusted: what is written to a buffer that was given back goes unnoticed. Long runs of what is tested elsewhere take a
	// third less time, and no memory for buffers that are never used.
	Trusted bool
}

// Stats counts what happened at an end and to the frames that it sent.
type Stats struct {
	Sent      uint64 // frames that the port took
	SentBytes uint64
	Refused   uint64 // exchanges in which the transmit ring was full

	// What became of the frames that the port took.
	Filtered   uint64 // dropped by Path.Filter
	TooLong    uint64 // dropped, being longer than Path.MTU allows
	QueueFull  uint64 // dropped at the end of a full queue
	Lost       uint64 // dropped by Path.Loss
	Corrupted  uint64 // delivered with bits flipped
	Reordered  uint64 // delivered late
	Duplicated uint64 // delivered twice

	Received      uint64 // frames that lanes and peers of this end received
	ReceivedBytes uint64
	Missed        uint64 // dropped for want of room in this end's receive ring
	NoBuffer      uint64 // dropped for want of a buffer in this end's pool
}

// End is one end of a link: a port with its pools and its two queues.
type End struct {
	link *Link
	name string
	port Port

	out, in *path // frames to and from the other end
	rx, tx  *pool // may be the same
	tap     *pcap.Writer
	watch   func(at time.Duration, sent bool, frame []byte)
	stats   Stats
}

func newEnd(l *Link, name string, p Port) *End {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&p.Buffers, 1024)
	def(&p.BufSize, 2176)
	def(&p.Headroom, 128)
	p.Headroom = max(p.Headroom, 0)
	e := &End{link: l, name: name, port: p}
	e.rx = newPool("receive pool of end "+name, p.Buffers, p.BufSize, p.Headroom, p.Trusted)
	e.tx = e.rx
	if p.TxBuffers > 0 {
		e.tx = newPool("transmit pool of end "+name, p.TxBuffers, p.BufSize, p.Headroom, p.Trusted)
	}
	return e
}

// String is "A" or "B".
func (e *End) String() string { return e.name }

// InUse is how many buffers are not in the pools of this end: held by a stack or an application, in a lane's stock, or
// on the wire (Port.Hold). A test that looks for leaks compares it with what it was in the beginning, or with 0 after
// FreeLane.
func (e *End) InUse() int {
	e.link.mu.Lock()
	defer e.link.mu.Unlock()
	n := e.rx.inUse()
	if e.tx != e.rx {
		n += e.tx.inUse()
	}
	return n
}

// Stats gives the counters.
func (e *End) Stats() Stats {
	e.link.mu.Lock()
	defer e.link.mu.Unlock()
	return e.stats
}

// SetPath changes what happens to the frames that this end sends from now on.
func (e *End) SetPath(p Path) {
	e.link.mu.Lock()
	defer e.link.mu.Unlock()
	p.check()
	e.out.Path = p
}

// Tap records what passes this end from now on, as a capture on its port would: frames sent, before anything happens
// to them on the way, and frames received. nil ends it. What goes wrong in writing is kept in p.
func (e *End) Tap(p *pcap.Writer) {
	e.link.mu.Lock()
	defer e.link.mu.Unlock()
	e.tap = p
}

// Watch calls f with what passes this end from now on, as Tap records it: each frame that is sent (before anything
// happens to it on the way) or received. f runs inside the link: it must not call it, nor keep or change the frame.
// nil ends it.
func (e *End) Watch(f func(at time.Duration, sent bool, frame []byte)) {
	e.link.mu.Lock()
	defer e.link.mu.Unlock()
	e.watch = f
}

func (e *End) record(at time.Duration, sent bool, frame []byte) {
	if e.tap != nil {
		e.tap.Write(at, frame)
	}
	if e.watch != nil {
		e.watch(at, sent, frame)
	}
}

// pool finds the pool that a handle is from.
func (e *End) pool(h dpdk.Handle, what string) *pool {
	switch tagOf(h) {
	case e.rx.tag:
		return e.rx
	case e.tx.tag:
		return e.tx
	}
	panic(fmt.Sprintf("link: %s at end %s: handle %#x is not of this end", what, e.name, uintptr(h)))
}

// received counts and records a frame that was received at this end.
func (e *End) received(data []byte) {
	e.stats.Received++
	e.stats.ReceivedBytes += uint64(len(data))
	e.record(e.link.Now(), false, data)
}
