package sim

import (
	"fmt"
	"strings"
	"time"

	"ndpip/dpdk"
	"ndpip/stack"
	"ndpip/stack/link"
	"ndpip/tcp"
)

// Scenario is all that a run is made of.
type Scenario struct {
	Seed uint64
	A, B Host
	// AB and BA are what the wire does to frames. Between Down and Up it carries nothing; with Up 0 it never does again.
	AB, BA   link.Path
	Down, Up time.Duration
	Static   bool // neighbours are configured, so there is no ARP
	Conns    []Conn
	// Preempt is once in how many bursts the application's thread loses its CPU in the middle of a call, while workers
	// go on, or the worker's thread while the application goes on. 0: never.
	Preempt int
	Age     time.Duration // of the stacks when the first connection starts: it moves initial sequence numbers
	// Wrap, if not 0, is the initial sequence number of the first connection, or a little more: just below 2^31 or 2^32,
	// to see it through there. WrapB says that it is the one of who is connected to.
	Wrap  uint32
	WrapB bool
}

// Host is one end's port and stack.
type Host struct {
	Port  link.Port
	Stack stack.Config
	Gap   time.Duration // the least time between two turns
}

// Conn is a connection: when it is opened, by whom, and what both applications do.
type Conn struct {
	Start time.Duration
	FromB bool // B opens it
	A, B  Side
}

// Ending is how an application ends a connection.
type Ending uint8

// The ways.
const (
	Shutdown  Ending = iota // writes all, shuts down, reads to the end, closes
	AfterPeer               // writes all, reads to the end, closes
	AtOnce                  // writes all and closes, whatever the peer does
	Linger                  // writes all and closes with SO_LINGER 0
	Early                   // closes when it has read EndAt bytes
	Abort                   // aborts when it has written or read EndAt bytes
	Never                   // keeps the connection until the run is over for it
	numEndings
)

var endings = [numEndings]string{"shutdown", "after peer", "at once", "linger 0", "early", "abort", "never"}

func (e Ending) String() string { return endings[e] }

// Side is what one application does with a connection.
type Side struct {
	Opts       stack.Options
	Write      int           // bytes in all
	WriteMax   int           // bytes per call
	WriteEvery time.Duration // between two calls
	ZeroWrite  bool          // from buffers of the stack
	Blank      bool          // what it writes are zeros that nobody looks at, where only the speed counts
	ReadMax    int
	ReadEvery  time.Duration
	ZeroRead   bool
	Keep       time.Duration // how long it keeps received buffers (ZeroRead)
	StopAt     int           // bytes after which it does not read for StopFor
	StopFor    time.Duration
	End        Ending
	EndAt      int
}

func (s *Side) orderly(peer *Side) bool {
	switch s.End {
	case Shutdown, AfterPeer:
		return true
	case AtOnce:
		return peer.Write == 0
	case Linger, Early, Abort, Never, numEndings:
	}
	return false
}

// Orderly says whether both sides end the connection in order, so that both streams have to arrive whole.
func (c *Conn) Orderly() bool { return c.A.orderly(&c.B) && c.B.orderly(&c.A) }

// Cut says whether the wire is cut for good.
func (s *Scenario) Cut() bool { return s.Down > 0 && s.Up == 0 }

// Lossless says whether every frame arrives, in order and once, and without waiting for other frames.
func (s *Scenario) Lossless() bool {
	for _, p := range []*link.Path{&s.AB, &s.BA} {
		if p.Loss+p.Corrupt+p.Reorder+p.Duplicate > 0 || p.Queue > 0 || p.Rate > 0 {
			return false
		}
	}
	for _, h := range []*Host{&s.A, &s.B} {
		if h.Port.TxRing > 0 || h.Port.RxRing > 0 {
			return false
		}
	}
	return s.Down == 0 && s.Preempt == 0
}

// Draw makes the scenario of a seed. Decisions are taken from b first, which may be nil.
func Draw(seed uint64, b []byte) *Scenario {
	d := newSource(seed, b)
	s := &Scenario{Seed: seed}
	rate := int64(0)
	if d.one(3) {
		rate = int64(d.log(1e5, 100e9))
	}
	worst := d.drawPaths(s, rate)
	params := d.params(worst)
	sums := d.below(4)
	if worst.Corrupt > 0 && sums == 3 {
		sums = 0
	}
	mtu := pick(d, 1500, 1500, 576, 9000)
	s.A = d.host(params, sums, mtu)
	if d.one(3) {
		mtu = pick(d, 1500, 1280, 9000)
	}
	s.B = d.host(params, sums, mtu)
	s.AB.MTU = min(s.A.Stack.MTU, s.B.Stack.MTU)
	s.BA.MTU = s.AB.MTU
	s.Static = d.one(2)
	switch d.below(8) {
	case 0:
		s.Age = d.duration(time.Second, 4*time.Hour)
	case 1, 2:
		s.Wrap = pick(d, uint32(0), 1<<31) - 1 - uint32(d.below(3000))
		s.WrapB = d.one(2)
	}
	if d.one(3) {
		s.Preempt = pick(d, 4, 32)
	}
	n := pick(d, 1, 1, 1, 2, 3, 8)
	if d.one(20) {
		n = 24
	}
	for range n {
		s.Conns = append(s.Conns, d.conn(d.bytes8(n, rate, worst)))
	}
	switch {
	case d.one(20):
		s.Down = d.duration(time.Microsecond, 5*time.Second)
	case d.one(8):
		s.Down = d.duration(time.Microsecond, 5*time.Second)
		s.Up = s.Down + d.duration(time.Millisecond, 30*time.Second)
	}
	s.A.Stack.WorkerSends, s.B.Stack.WorkerSends = d.one(3), d.one(3)
	s.A.Stack.NoCoalesce, s.B.Stack.NoCoalesce = d.one(4), d.one(4)
	return s
}

// drawPaths draws what the wire does, and returns the worse of the two directions.
func (d *source) drawPaths(s *Scenario, rate int64) link.Path {
	delay := time.Duration(0)
	if !d.one(4) {
		delay = d.duration(time.Microsecond, time.Second)
	}
	prob := func() float64 {
		if !d.one(3) {
			return 0
		}
		return float64(d.log(1, 1000)) / 10000
	}
	draw := func() link.Path {
		p := link.Path{Rate: rate, Delay: delay, Loss: prob(), Duplicate: prob(), Corrupt: prob(), Reorder: prob(),
			ReorderBy: d.duration(time.Microsecond, 100*time.Millisecond)}
		if rate > 0 && d.one(3) {
			p.Queue = d.log(16, 1000)
		}
		return p
	}
	if d.one(2) {
		s.AB = link.Path{Rate: rate, Delay: delay}
		s.BA = s.AB
		return s.AB
	}
	s.AB, s.BA = draw(), draw()
	return link.Path{Loss: max(s.AB.Loss, s.BA.Loss), Corrupt: max(s.AB.Corrupt, s.BA.Corrupt),
		Reorder: max(s.AB.Reorder, s.BA.Reorder), Delay: delay}
}

// params draws the protocol's times. On a bad wire both ends are given more patience, so that a connection that gives
// up is a fault.
func (d *source) params(worst link.Path) tcp.Params {
	p := tcp.DefaultParams()
	if d.one(2) {
		p.MinRTO = int64(d.duration(time.Millisecond, 200*time.Millisecond))
		p.InitRTO = pick(d, p.InitRTO, int64(200*time.Millisecond))
		p.MaxRTO = pick(d, p.MaxRTO, int64(5*time.Second))
		p.TimeWait = pick(d, p.TimeWait, int64(time.Second))
		p.FinWait2 = pick(d, p.FinWait2, int64(time.Second))
	}
	if bad := worst.Loss + worst.Corrupt + worst.Reorder; bad > 0.01 {
		p.SynRetries, p.SynAckRetries, p.Retries, p.OrphanRetries = 20, 20, 30, 30
	}
	// Where times are short, more tries are needed to wait as long.
	if p.MinRTO < int64(100*time.Millisecond) {
		p.Retries, p.OrphanRetries = max(p.Retries, 20), max(p.OrphanRetries, 20)
	}
	if p.InitRTO < int64(time.Second) {
		p.SynRetries, p.SynAckRetries = 20, 20
	}
	if rtt := int64(2 * worst.Delay); p.MaxRTO < 4*rtt {
		p.MaxRTO = 60e9
	}
	return p
}

const offload = dpdk.TxTCPSum | dpdk.TxUDPSum

// host draws an end. sums says who computes checksums: nobody in software is left to say but 3, where nobody does.
func (d *source) host(params tcp.Params, sums, mtu int) Host {
	h := Host{}
	h.Port = link.Port{Buffers: d.log(256, 2048), TxBuffers: d.log(256, 2048), Hold: d.one(2)}
	if mtu > 2000 {
		h.Port.BufSize = mtu + 14 + 128 + 64
	}
	if d.one(4) {
		h.Port.Pad = pick(d, 60, 200)
	}
	if d.one(5) {
		h.Port.TxRing = d.log(16, 512)
	}
	if d.one(5) {
		h.Port.RxRing = d.log(64, 512)
	}
	c := stack.Config{MTU: mtu, TCP: params, Burst: pick(d, 1, 4, 32, 32, 256), Seed: uint64(d.below(1<<30)) + 1}
	switch sums {
	case 0:
		c.Checksum = stack.ChecksumAuto
	case 1:
		c.Checksum, h.Port.RxChecksum = stack.ChecksumAuto, true
		h.Port.TxChecksum, c.Offload = true, offload
	case 2:
		c.Checksum = stack.ChecksumSoftware
	case 3:
		c.Checksum = stack.ChecksumOff
	}
	if d.one(4) {
		c.MSS = d.between(48, mtu-40)
	}
	c.RcvBuf, c.SndBuf = d.log(2048, 1<<20), d.log(2048, 1<<20)
	if d.one(10) {
		c.RcvBuf = d.log(100, 4096)
	}
	if d.one(4) {
		c.WinScale = d.between(0, 14)
	}
	c.MaxRing = pick(d, 0, 0, 64, 512)
	c.RxBuffers, c.TxBuffers = h.Port.Buffers, h.Port.TxBuffers
	h.Stack = c
	if d.one(2) {
		h.Gap = d.duration(time.Microsecond, 10*time.Millisecond)
		if c.Burst < 32 {
			h.Gap /= 100 // a few frames now and then would be no host, but a queue that never ends
		}
	}
	return h
}

// bytes8 draws the most that one side writes, such that a run stays short whatever the wire is like.
func (d *source) bytes8(conns int, rate int64, worst link.Path) int {
	most := pick(d, 1<<10, 1<<14, 1<<16, 1<<18)
	if d.one(20) {
		most = 2 << 20
	}
	most /= min(conns, 8)
	if rate > 0 {
		most = min(most, int(rate))
	}
	if bad := worst.Loss + worst.Corrupt + worst.Reorder; bad > 0 {
		most = min(most, int(20/bad)*1000)
	}
	return most
}

func (d *source) conn(most int) Conn {
	c := Conn{FromB: d.one(3)}
	if d.one(2) {
		c.Start = d.duration(time.Microsecond, 2*time.Second)
	}
	c.A, c.B = d.side(most), d.side(most)
	if d.one(2) {
		c.B.Write = 0 // a stream in one direction
	} else if d.one(3) {
		c.A.Write = 0
	}
	for _, x := range [...]struct{ reader, writer *Side }{{&c.A, &c.B}, {&c.B, &c.A}} {
		if x.reader.ReadMax == 1 && x.writer.Write > 20000 {
			x.reader.ReadMax = 100
		}
	}
	if c.A.End == AfterPeer && c.B.End == AfterPeer {
		c.B.End = Shutdown // or each waits for the other
	}
	return c
}

func (d *source) side(most int) Side {
	s := Side{Write: d.log(1, most), ZeroWrite: d.one(3), ZeroRead: d.one(3)}
	s.WriteMax = pick(d, 1, 100, 1000, 4096, 65536, 1<<18)
	if s.WriteMax == 1 {
		s.Write = min(s.Write, 3000)
	}
	if d.one(4) {
		s.WriteEvery = d.duration(time.Microsecond, 100*time.Millisecond)
		s.Write = min(s.Write, 500*s.WriteMax)
	}
	s.ReadMax = pick(d, 1, 100, 1460, 16384, 1<<20)
	if d.one(4) {
		s.ReadEvery = d.duration(time.Microsecond, 100*time.Millisecond)
		s.ReadMax = max(s.ReadMax, most/500)
	}
	if s.ZeroRead && d.one(2) {
		s.Keep = d.duration(time.Microsecond, time.Second)
	}
	if d.one(6) {
		s.StopAt, s.StopFor = d.between(0, most), d.duration(time.Millisecond, 10*time.Second)
	}
	s.End = pick(d, Shutdown, Shutdown, Shutdown, AfterPeer, AfterPeer, AtOnce, AtOnce, Linger, Early, Abort)
	if d.one(50) {
		s.End = Never
	}
	s.EndAt = d.below(most)
	if d.one(4) {
		s.Opts.RcvBuf = d.log(300, 1<<20)
	}
	if d.one(4) {
		s.Opts.SndBuf = d.log(300, 1<<20)
	}
	if d.one(6) {
		s.Opts.MaxRxSeg = d.between(48, 1460)
	}
	if d.one(6) {
		s.Opts.MaxTxSeg = d.between(16, 1460)
	}
	if d.one(6) {
		s.Opts.WinScale = d.between(1, 15)
	}
	return s
}

// String describes the scenario, for those who look into a failure.
func (s *Scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: static %v, preempt 1/%d, age %v, wrap %#x, down %v up %v\n", s.Seed, s.Static, s.Preempt, s.Age, s.Wrap, s.Down, s.Up)
	fmt.Fprintf(&b, "  A→B %+v\n  B→A %+v\n  A %+v\n  B %+v\n", s.AB, s.BA, s.A, s.B)
	for i, c := range s.Conns {
		fmt.Fprintf(&b, "  connection %d: start %v, B opens %v\n    A %+v\n    B %+v\n", i, c.Start, c.FromB, c.A, c.B)
	}
	return b.String()
}
