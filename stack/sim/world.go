package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"runtime/debug"
	"time"

	"ndpip/dpdk"
	"ndpip/stack"
	"ndpip/stack/link"
	"ndpip/stack/pcap"
)

// Options are what a run does besides checking.
type Options struct {
	PcapA, PcapB io.Writer // captures of what passes each end; nil: none
}

// Result is what came out of a run.
type Result struct {
	Errors      []string // nil: all properties held
	Time        time.Duration
	Frames      int    // sent by both ends
	Bytes       uint64 // read by both applications
	Retransmits uint64
	Hash        uint64 // of all frames and times: two runs of a scenario give the same
}

const (
	addrA, addrB = 0x0a000001, 0x0a000002
	firstPort    = 1000 // the listener of connection i has port firstPort + i
	maxErrors    = 10

	// patience is the virtual time that a connection has. It is far more than any needs that is not cut off.
	patience = 6 * time.Hour
	// keptUp is how long an application with the ending Never keeps its connection.
	keptUp = 20 * time.Minute
)

// world is one run.
type world struct {
	*Scenario
	rnd     *rand.Rand
	link    *link.Link
	a, b    *host
	sides   []*side
	check   *checker
	errors  []string
	frames  int
	hash    uint64
	start   time.Duration // on the link's clock: when the first connection may start
	nested  bool          // some thread runs in the middle of another's call
	poll    time.Duration // how long to wait when nothing is known of the next event
	still   int           // rounds without time moving
	rounds  int
	endless bool // there is no limit to the number of rounds
}

// host is one end: its port, its stack, and the lanes of its two threads.
type host struct {
	*stack.Stack
	w           *world
	name        string
	plan        *Host
	end         *link.End
	worker, app *dpdk.Lane
	zero        time.Duration // on the link's clock: where the stack's own begins
	at          time.Duration // on the link's clock: the next turn is not before
	turning     bool
	sides       []*side
}

// Run runs a scenario to its end.
func Run(s *Scenario, o Options) (r Result) {
	if s.Wrap != 0 {
		s = s.wrapped()
	}
	w := newWorld(s)
	defer func() {
		if p := recover(); p != nil {
			w.errors = append(w.errors, fmt.Sprintf("panic: %v\n%s", p, debug.Stack()))
		}
		r.Errors, r.Frames, r.Hash = w.errors, w.frames, w.hash
	}()
	w.build(o)
	w.run()
	w.finish()
	r.Time = w.link.Now()
	for _, x := range w.sides {
		r.Bytes += x.read
	}
	r.Retransmits = w.a.Counters().Retransmits + w.b.Counters().Retransmits
	return r
}

// wrapped is the scenario with the Age that gives it the sequence numbers which Wrap asks for: they go with the time, a
// unit each 4 µs (RFC 6528). What they are at some time is seen by trying.
func (s *Scenario) wrapped() *Scenario {
	c := *s
	c.Wrap = 0
	w := newWorld(&c)
	w.build(Options{})
	want := 1
	if s.WrapB {
		want = 2
	}
	for end := w.start + time.Minute; len(w.check.isns) < want && w.link.Now() < end && len(w.errors) == 0; {
		w.until(w.link.Now() + time.Millisecond)
	}
	if len(w.check.isns) >= want {
		c.Age = time.Duration(s.Wrap-w.check.isns[want-1]) * 4 * time.Microsecond
	}
	return &c
}

func newWorld(s *Scenario) *world {
	return &world{Scenario: s, rnd: rand.New(rand.NewPCG(s.Seed, 0xa1))}
}

func (w *world) fail(format string, args ...any) {
	if len(w.errors) < maxErrors {
		w.errors = append(w.errors, fmt.Sprintf("%v: ", w.link.Now())+fmt.Sprintf(format, args...))
	}
}

func (w *world) build(o Options) {
	ab, ba := w.AB, w.BA
	if w.Down > 0 {
		outage := func([]byte) link.Verdict {
			if t := w.link.Now() - w.start; t >= w.Down && (w.Up == 0 || t < w.Up) {
				return link.Drop
			}
			return link.Pass
		}
		ab.Filter, ba.Filter = outage, outage
	}
	w.link = link.New(link.Config{Seed: w.Seed, A: w.A.Port, B: w.B.Port, AB: ab, BA: ba})
	w.check = newChecker(w)
	w.a, w.b = w.host("A", &w.A, w.link.A, addrA, o.PcapA), w.host("B", &w.B, w.link.B, addrB, o.PcapB)
	w.start = w.link.Now() + w.Age
	for i := range w.Conns {
		c := &w.Conns[i]
		x, y := newSide(w.a, c, i, &c.A, !c.FromB), newSide(w.b, c, i, &c.B, c.FromB)
		x.peer, y.peer = y, x
		w.sides = append(w.sides, x, y)
		w.a.sides, w.b.sides = append(w.a.sides, x), append(w.b.sides, y)
	}
	if w.Age > 0 {
		w.link.Advance(w.Age)
	}
}

func mac(addr uint32) stack.MAC { return stack.MAC{2, 0, 0, 0, 0, byte(addr)} }

func (w *world) host(name string, plan *Host, end *link.End, addr uint32, capture io.Writer) *host {
	h := &host{w: w, name: name, plan: plan, end: end}
	if capture != nil {
		end.Tap(pcap.New(capture))
	}
	end.Watch(func(at time.Duration, sent bool, frame []byte) { w.saw(h, at, sent, frame) })
	cfg := plan.Stack
	cfg.MAC = mac(addr)
	ip := func(a uint32) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 0, byte(a)}) }
	cfg.Addr = netip.PrefixFrom(ip(addr), 24)
	if w.Static {
		other := addr ^ addrA ^ addrB
		cfg.Neighbours = map[netip.Addr]stack.MAC{ip(other): mac(other)}
	}
	h.worker, h.app = end.NewLane(true), end.NewLane(false)
	hook := func(l *dpdk.Lane, f func(h *host, op dpdk.Op, after bool)) dpdk.Lane {
		return dpdk.NewLane(l.Block, &hooked{l, func(op dpdk.Op, after bool) { f(h, op, after) }})
	}
	h.Stack = stack.New(cfg, hook(h.worker, w.inWorker), hook(h.app, w.inApp))
	h.zero = w.link.Now() - h.Now()
	return h
}

// hooked is a lane's driver that calls the world before and after each exchange.
type hooked struct {
	lane *dpdk.Lane
	f    func(op dpdk.Op, after bool)
}

func (d *hooked) Hz() uint64 { return d.lane.Hz() }

func (d *hooked) Exchange(_ *dpdk.Block, op dpdk.Op) {
	d.f(op, false)
	d.lane.Exchange(op)
	d.f(op, true)
}

// inApp may take the CPU from the application's thread: what it has made known is not on the wire yet, or is on the
// wire and it has not come back from the call. Meanwhile the workers go on, and time may pass.
func (w *world) inApp(h *host, op dpdk.Op, _ bool) {
	if w.Preempt == 0 || op&dpdk.OpTx == 0 || w.nested || h.turning || w.rnd.IntN(w.Preempt) != 0 {
		return
	}
	w.nested = true
	defer func() { w.nested = false }()
	pause := [...]time.Duration{0, 0, 0, 50 * time.Microsecond, 5 * time.Millisecond, 700 * time.Millisecond}[w.rnd.IntN(6)]
	until := w.link.Now() + pause
	for range 8 {
		w.a.turn()
		w.b.turn()
		t, ok := w.link.NextArrival()
		if !ok || t > until {
			t = until
		}
		w.link.AdvanceTo(t)
	}
}

// inWorker lets the application go on while the worker is in the middle of its turn.
func (w *world) inWorker(h *host, op dpdk.Op, after bool) {
	if w.Preempt == 0 || !h.turning || w.nested || !after || w.rnd.IntN(w.Preempt) != 0 {
		return
	}
	w.nested = true
	defer func() { w.nested = false }()
	for _, x := range h.sides {
		x.step(true)
	}
}

func (h *host) turn() bool {
	h.turning = true
	defer func() { h.turning = false }()
	return h.Turn()
}

// run goes from event to event until everything is over.
func (w *world) run() {
	w.until(1 << 62)
	if len(w.errors) > 0 {
		w.dump()
	}
}

// maxRounds is how often everybody gets a turn. A run has some thousand rounds.
const maxRounds = 500_000

// until goes on until the link's clock shows end, or all is over, or something is wrong.
func (w *world) until(end time.Duration) {
	for len(w.errors) == 0 {
		if w.rounds++; w.rounds > maxRounds && !w.endless {
			w.fail("no end of events")
		}
		busy := false
		now := w.link.Now()
		first, second := w.a, w.b
		if w.rnd.IntN(2) == 0 {
			first, second = second, first
		}
		for _, h := range [...]*host{first, second} {
			if now >= h.at && h.turn() {
				busy = true
				h.at = now + h.plan.Gap
			}
		}
		for _, x := range w.sides {
			if x.step(false) {
				busy = true
			}
		}
		w.a.Flush()
		w.b.Flush()
		if busy {
			w.poll = 0
			if w.still++; w.still > 1_000_000 {
				w.fail("no end of work while time stands still")
			}
			continue
		}
		w.still = 0
		if w.over() {
			return
		}
		t, ok := w.next()
		switch {
		case !ok && w.giveUp():
		case !ok:
			w.fail("nothing will ever happen any more")
		case t > end:
			w.link.AdvanceTo(end)
			return
		case t-w.start > 3*patience:
			w.fail("no end in sight")
		default:
			w.link.AdvanceTo(t)
		}
	}
}

// over says whether all applications are done and both stacks have let go of every connection.
func (w *world) over() bool {
	for _, x := range w.sides {
		if !x.over() {
			return false
		}
	}
	return w.a.Usage().Connections == 0 && w.b.Usage().Connections == 0
}

// next is when something may happen next.
func (w *world) next() (t time.Duration, ok bool) {
	now := w.link.Now()
	add := func(at time.Duration) {
		if !ok || at < t {
			t, ok = at, true
		}
	}
	// What is due already waits for a host's turn, or for something that is not known here: then it is polled for.
	poll := false
	due := func(h *host, at time.Duration) {
		if at = max(at, h.at); at > now {
			add(at)
		} else {
			poll = true
		}
	}
	for _, h := range [...]*host{w.a, w.b} {
		if at, any := h.end.NextArrival(); any {
			due(h, at)
		}
		if at, any := h.Deadline(); any {
			due(h, h.zero+at)
		}
	}
	for _, x := range w.sides {
		if at, any := x.wake(); any {
			add(max(at, now+1))
		}
	}
	if poll {
		w.poll = min(max(2*w.poll, 10*time.Microsecond), 50*time.Millisecond)
		add(now + w.poll)
	}
	return t, ok
}

// giveUp ends what waits for ever, where that is no fault: a peer whose reset was lost, or a wire that is cut.
func (w *world) giveUp() (any bool) {
	for _, x := range w.sides {
		if !x.over() && (w.Cut() || !x.conn.Orderly()) {
			any = x.giveUp() || any
		}
	}
	return any
}

// finish checks what is left once all is over.
func (w *world) finish() {
	if len(w.errors) > 0 {
		return
	}
	for _, x := range w.sides {
		x.verdict()
	}
	w.check.finish()
	if n := w.check.again; n > 0 && w.quick() {
		w.fail("%d retransmissions on a wire without loss", n)
	}
	// What is on the wire still holds buffers.
	for {
		at, ok := w.link.NextArrival()
		if !ok {
			break
		}
		w.link.AdvanceTo(at)
		w.a.turn()
		w.b.turn()
	}
	for _, h := range [...]*host{w.a, w.b} {
		h.Flush()
		if u := h.Usage(); u != (stack.Usage{}) {
			w.fail("%s: all is over, and still in use: %+v", h.name, u)
		}
		if st := h.end.Stats(); st.TooLong > 0 {
			w.fail("%s: %d frames longer than the MTU", h.name, st.TooLong)
		}
		h.end.FreeLane(h.worker)
		h.end.FreeLane(h.app)
		if n := h.end.InUse(); n != 0 {
			w.fail("%s: %d buffers have not come back", h.name, n)
		}
	}
}

// quick says whether no frame is lost and every answer comes before any timer could expire.
func (w *world) quick() bool {
	rtt := w.AB.Delay + w.BA.Delay
	return w.Lossless() && w.A.Gap+w.B.Gap == 0 && 3*rtt < time.Duration(min(w.A.Stack.TCP.MinRTO, w.A.Stack.TCP.InitRTO)) && w.dropped() == 0
}

// dropped is how many frames or payloads the hosts dropped for want of buffers, and how often they probed a window.
func (w *world) dropped() (n uint64) {
	for _, h := range [...]*host{w.a, w.b} {
		c := h.Counters()
		n += c.Probes + h.end.Stats().NoBuffer + c.Drop[stack.DropNoBuffer] + c.NoBuffer + c.TxDropped + h.end.Stats().Missed
	}
	return n
}

// saw is each frame that passes an end.
func (w *world) saw(h *host, at time.Duration, sent bool, frame []byte) {
	if sent {
		w.frames++
	}
	w.hash = mix(w.hash^uint64(at), uint64(len(frame)))
	for i := 0; i+8 <= len(frame); i += 8 {
		w.hash = w.hash*31 + uint64(frame[i]) + uint64(frame[i+4])<<8
	}
	w.check.frame(h, sent, frame)
}

func (w *world) dump() {
	for _, x := range w.sides {
		if !x.over() || len(w.sides) == 2 {
			w.errors = append(w.errors, x.String())
		}
	}
	for _, h := range [...]*host{w.a, w.b} {
		w.errors = append(w.errors, fmt.Sprintf("%s: %+v %+v %+v", h.name, h.Usage(), h.Counters(), h.end.Stats()))
	}
}
