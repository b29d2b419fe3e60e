package stack_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"ndpip/dpdk"
	"ndpip/stack"
	"ndpip/stack/link"
	"ndpip/stack/wire"
)

// The tests of behaviour speak to a stack in frames: in state X, given these frames, expect exactly these and then
// nothing. The stack is at one end of a link in memory, the test at the other, and time is what the test makes it.
//
//	r := newRig(t)
//	f := r.accepted()           // a connection that the peer has opened, in ESTABLISHED
//	f.in("A", 1, 1, "hello")    // a segment from the peer: flags, sequence numbers from the ISNs on, payload
//	f.out("A", 1, 6)            // the next frame that the stack has sent
//	r.quiet()                   // and no more
//	r.after(time.Second)        // nothing for a second, then something: look at it with out

// The hosts of the tests.
var (
	ourMAC  = wire.MAC{2, 0, 0, 0, 0, 1}
	peerMAC = wire.MAC{2, 0, 0, 0, 0, 2}
)

const (
	ourIP  = 0x0a000001 // 10.0.0.1
	peerIP = 0x0a000002 // 10.0.0.2
)

// rig is a stack under test, and the test's end of its wire.
type rig struct {
	testing.TB
	*stack.Stack
	link        *link.Link
	peer        *link.Peer
	worker, app *dpdk.Lane
	got         []sent // what the stack has sent and the test has not looked at
	ports       uint16 // ports given to peers
	flows       []*flow
	unchecked   bool // do not look at each frame's headers: for tests of many
}

// sent is a frame of the stack's and when it came.
type sent struct {
	at    time.Duration
	frame []byte
}

// setup is what a rig is made with.
type setup struct {
	stack.Config
	link link.Config
}

// newRig makes a stack with a peer, whose MAC address it knows. At the end of the test all that the stack has borrowed
// from the port must be back.
func newRig(t testing.TB, change ...func(*setup)) *rig {
	t.Helper()
	u := setup{
		Config: stack.Config{
			MAC: ourMAC, Addr: netip.MustParsePrefix("10.0.0.1/24"), Seed: 1, RxBuffers: 768,
			Neighbours: map[netip.Addr]wire.MAC{netip.MustParseAddr("10.0.0.2"): peerMAC},
		},
		link: link.Config{A: link.Port{Buffers: 768, TxBuffers: 512}},
	}
	for _, f := range change {
		f(&u)
	}
	r := &rig{TB: t, link: link.New(u.link), ports: 40000}
	r.worker, r.app = r.link.A.NewLane(true), r.link.A.NewLane(false)
	r.Stack = stack.New(u.Config, *r.worker, *r.app)
	r.peer = r.link.B.Peer()
	t.Cleanup(r.finish)
	return r
}

// finish ends whatever the test has left and looks for leaks.
func (r *rig) finish() {
	if r.Failed() {
		return
	}
	r.AbortAll()
	r.run()
	r.link.A.FreeLane(r.worker)
	r.link.A.FreeLane(r.app)
	if n := r.link.A.InUse(); n != 0 {
		r.Errorf("%d buffers were not given back; %+v", n, r.Counters())
	}
	if u := r.Usage(); u != (stack.Usage{}) {
		r.Errorf("left: %+v", u)
	}
}

// run lets the stack take turns until it has nothing to do.
func (r *rig) run() {
	for n := 0; r.Turn() || r.waiting(); n++ {
		if n == 100000 {
			r.Fatal("the stack never comes to rest")
		}
	}
	r.collect()
}

// waiting says whether the stack has something left to do, for which there was no buffer.
func (r *rig) waiting() bool {
	at, ok := r.Deadline()
	return ok && at <= r.Now()
}

func (r *rig) collect() {
	for _, b := range r.peer.Sent() {
		if !r.unchecked {
			if err := wellFormed(b); err != nil {
				r.Fatalf("sent % x: %v", b, err)
			}
		}
		r.got = append(r.got, sent{r.link.Now(), b})
	}
}

// inject sends a frame to the stack and lets it work.
func (r *rig) inject(frame []byte) {
	r.peer.Inject(frame)
	r.run()
}

// advance lets time pass, and the stack work meanwhile.
func (r *rig) advance(d time.Duration) { r.advanceUntil(d, func() bool { return false }) }

// grain is how late a timer of the stack may be.
const grain = time.Millisecond

// advanceUntil goes from one of the stack's deadlines to the next.
func (r *rig) advanceUntil(d time.Duration, stop func() bool) {
	for end := r.link.Now() + d; r.link.Now() < end; {
		step := end - r.link.Now()
		if at, ok := r.Deadline(); ok {
			step = min(step, max(at-r.Now(), time.Microsecond))
		}
		r.link.Advance(step)
		r.run()
		if stop() {
			return
		}
	}
}

// after demands that nothing is sent before d has passed, and something then. The timers of the stack are up to a
// quarter of a millisecond late, and the test looks each millisecond.
func (r *rig) after(d time.Duration) {
	r.Helper()
	r.quiet()
	start := r.link.Now()
	r.advanceUntil(d+2*grain, func() bool { return len(r.got) > 0 })
	switch took := r.link.Now() - start; {
	case len(r.got) == 0:
		r.Fatalf("nothing was sent within %v", d+2*grain)
	case took < d-grain: // the one before may have been late
		r.Fatalf("sent after %v already, want %v: %s", took, d, r.show(r.got[0].frame))
	}
}

// silence demands that nothing is sent for a time.
func (r *rig) silence(d time.Duration) {
	r.Helper()
	r.quiet()
	r.advanceUntil(d, func() bool { return len(r.got) > 0 })
	r.quiet()
}

// quiet demands that all that was sent has been looked at.
func (r *rig) quiet() {
	r.Helper()
	if len(r.got) == 0 {
		return
	}
	text := ""
	for _, s := range r.got[:min(len(r.got), 10)] {
		text += fmt.Sprintf("\n%v: %s", s.at, r.show(s.frame))
	}
	r.Fatalf("sent %d frames that nobody asked for:%s", len(r.got), text)
}

// next takes the next frame that was sent.
func (r *rig) next() []byte {
	r.Helper()
	if len(r.got) == 0 {
		r.Fatal("nothing was sent")
	}
	b := r.got[0].frame
	r.got = slices.Delete(r.got, 0, 1)
	return b
}

// drops is how often a frame was dropped for a reason.
func (r *rig) drops(why stack.Drop) uint64 { return r.Counters().Drop[why] }

// wellFormed checks what is true of every frame that the stack sends.
func wellFormed(b []byte) error {
	typ, drop := wire.ParseEthernet(b)
	if drop != wire.OK {
		return fmt.Errorf("Ethernet: %v", drop)
	}
	if wire.EthSrc(b) != ourMAC {
		return fmt.Errorf("sent from %v", wire.EthSrc(b))
	}
	if typ == wire.TypeARP {
		_, drop := wire.ParseARP(b[wire.EthLen:])
		if drop != wire.OK {
			return fmt.Errorf("ARP: %v", drop)
		}
		return nil
	}
	h, drop := wire.ParseIPv4(b[wire.EthLen:], true)
	if drop != wire.OK {
		return fmt.Errorf("IPv4: %v", drop)
	}
	if len(b) != wire.EthLen+h.Len() || h.Src() != ourIP || h[8] != wire.TTL {
		return fmt.Errorf("IPv4: %d bytes of %d, source %#x, TTL %d", h.Len(), len(b), h.Src(), h[8])
	}
	l4 := b[wire.EthLen+wire.IPv4Len:]
	switch h.Proto() {
	case wire.ProtoTCP:
		if _, drop := wire.ParseTCP(l4); drop != wire.OK || !wire.TCPGood(l4, h.Src(), h.Dst()) {
			return fmt.Errorf("TCP: %v, checksum %v", drop, wire.TCPGood(l4, h.Src(), h.Dst()))
		}
	case wire.ProtoUDP:
		if _, drop := wire.ParseUDP(l4); drop != wire.OK || !wire.UDPGood(l4, h.Src(), h.Dst()) {
			return fmt.Errorf("UDP: %v", drop)
		}
	case wire.ProtoICMP:
		if _, drop := wire.ParseICMP(l4); drop != wire.OK {
			return fmt.Errorf("ICMP: %v", drop)
		}
	}
	return nil
}
