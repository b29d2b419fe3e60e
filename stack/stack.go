package stack

import (
	"math/bits"
	"sync/atomic"
	"time"

	"ndpip/dpdk"
	"ndpip/ring"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// Stack is one port with one IPv4 address: its connections, listeners, UDP sockets and neighbours.
//
// Everything belongs to the worker, the one thread that calls Turn, except what stands in app. The application's
// threads reach the worker through two rings: commands (control, in order) and attention (a connection has news).
type Stack struct {
	cfg   Config
	mac   MAC
	addr  uint32
	net   wire.Net
	sec   secret
	txSum sumMode
	rxSum bool // L4 checksums that the port does not know are computed

	w       dpdk.Lane
	now     int64  // ns since the stack was made
	tsc0    uint64 // clock at now = 0
	nsPerHz uint64 // ns per cycle, times 2^32
	ownTSC  bool   // the clock can be read without the port

	conns    conns
	table    *table
	wheel    *wheel
	waits    waits
	archive  archive
	ports    *ports
	udpPorts *ports
	neigh    *neighbours
	news     neighOut
	neighAt  int64 // when the neighbours' timers are looked at next
	moved    moves
	awaiting map[uint32][]uint32 // connections whose SYN waits for a next hop
	coalesce bool
	sure     bool    // ahead tells what the last connection's next segment looks like
	ahead    tcp.Run // see run
	flow     flow    // what the frames of the last segment's connection have in common
	lastKey  key     // the connection of the last segment: bursts come in runs
	last     *tcp.Conn
	behind   int // frames of the burst behind the one that is being looked at
	seg      tcp.Segment
	opts     tcp.Options // its options
	sackBuf  [wire.MaxSackOptions]byte
	touched  []*tcp.Conn // connections with something to be done at the end of this turn
	again    []*tcp.Conn // connections whose frames found no buffer: next turn
	stuck    bool        // the port took nothing more in this turn
	refused  bool        // frames of former turns wait for the port
	lateAcks bool        // some ACKs may wait
	late     ackQueue
	rxHeld   uint64 // payloads given to applications, ever; less app.consumed: not yet given back
	room     int    // payloads that may still be given to applications in this turn
	txBack   uint64 // buffers of applications' frames that were given back, ever; app.returned follows once a turn
	tight    int    // room from which on it is shared out

	listeners map[uint64]*Listener // by address and port
	byID      map[uint32]*Listener
	nextList  uint32
	udps      udpTable
	icmpAt    int64 // ICMP errors are counted from here
	icmpSent  int

	count  Counters // the worker's counters
	tap    Tap      // see SetTap; the worker's
	trace  *Trace   // see SetTrace
	tapped uint32
	turns  turnState
	rest   rest
	ctl    control

	rx, tx ring.Slab // memory of receive and transmit rings

	cmds *ring.SPSC[command]
	attn *ring.SPSC[uint32] // ids of connections; pushed under app.lock
	told told
	_    [64]byte
	app  appSide
}

// New makes a stack on two lanes of a port: worker has the receive queue, app sends what the application writes.
// Until Run is called, Turn may be called by hand.
func New(cfg Config, worker, app dpdk.Lane) *Stack {
	cfg.setDefaults()
	s := &Stack{cfg: cfg, mac: cfg.MAC, w: worker, listeners: map[uint64]*Listener{}, byID: map[uint32]*Listener{}, udps: udpTable{},
		awaiting: map[uint32][]uint32{}}
	s.net = wire.NewNet(cfg.Addr)
	s.addr = s.net.Addr
	if cfg.Seed != 0 {
		s.sec = secret{cfg.Seed, cfg.Seed ^ 0x9e3779b97f4a7c15, cfg.Seed * 3, cfg.Seed * 5}
	} else {
		s.sec = newSecret()
	}
	switch cfg.Checksum {
	case ChecksumOff:
		s.txSum = sumOff
	case ChecksumAuto:
		s.rxSum = true
		if cfg.Offload&dpdk.TxTCPSum != 0 {
			s.txSum = sumPort
		}
	case ChecksumSoftware:
		s.rxSum = true
	}
	s.coalesce = !cfg.NoCoalesce
	s.lateAcks = cfg.AckDelay != 0 || cfg.AckRide
	s.table = newTable(s.sec, 1024)
	s.wheel = newWheel(0)
	s.waits.due = never
	s.archive.init(cfg.Archive)
	s.ports = newPorts(s.sec, s.addr, s.table, portLow, portHigh)
	s.udpPorts = newPorts(s.sec, s.addr, nil, portLow, portHigh)
	s.cmds = ring.New[command](1024)
	s.attn = ring.New[uint32](4096)
	s.told.init()
	s.app.init(app, cfg.WorkerSends)
	hz := worker.Hz()
	s.nsPerHz = 1e9 << 32 / hz
	s.w.RxMax = uint32(cfg.Burst)
	s.w.Want = 64
	s.w.Exchange(dpdk.OpStock | dpdk.OpRx) // reads the clock; what is received is looked at by the first turn
	s.tsc0 = s.w.TSC
	s.now = s.clock(s.tsc0)
	s.ownTSC = hasTSC && s.w.OwnTSC()
	s.initNeighbours()
	return s
}

// clock turns cycles into ns since the stack was made. It starts at 1: as a time, 0 means never.
func (s *Stack) clock(tsc uint64) int64 {
	hi, lo := bits.Mul64(tsc-s.tsc0, s.nsPerHz)
	return int64(hi<<32|lo>>32) + 1
}

// Addr is the stack's own IPv4 address.
func (s *Stack) Addr() uint32 { return s.addr }

// Do runs f on the worker and returns when it is done.
func (s *Stack) Do(f func()) { s.do(f) }

// worker state, read by the application
type turnState struct {
	running atomic.Bool // a worker runs Turn: commands go through the ring
	stop    atomic.Bool
	done    chan struct{}
	observe func(busy bool) // see Observe
	clock   turnClock       // the worker's own
}

// Run is the worker: turns without end, until Stop. With yield the thread gives its CPU away when a turn had nothing
// to do. The caller has locked the goroutine to its thread, and pinned and registered that as it likes.
func (s *Stack) Run(yield bool) {
	op := dpdk.Op(0)
	var idle int64 // since when there was nothing to do; 0: there was
	for !s.turns.stop.Load() {
		busy := s.turn(op)
		if counting {
			s.timeTurn(busy)
		}
		if busy {
			op, idle = 0, 0
		} else if yield {
			op = dpdk.OpYield
		}
		if !busy && s.rest.after > 0 {
			if idle == 0 {
				idle = s.now
			} else if s.now-idle >= s.rest.after && s.sleep(s.now-idle) {
				idle = 0
			}
		}
		if s.turns.observe != nil {
			s.turns.observe(busy)
		}
	}
	s.turns.running.Store(false)
	close(s.turns.done)
}

// Start announces that Run is about to be called on another thread.
func (s *Stack) Start() {
	s.turns.done = make(chan struct{})
	s.turns.running.Store(true)
}

// Stop ends Run and waits for it.
func (s *Stack) Stop() {
	if !s.turns.running.Load() {
		return
	}
	s.turns.stop.Store(true)
	s.Kick()
	<-s.turns.done
	s.turns.stop.Store(false)
}

// Now is the worker's time, as of its last turn. Worker only.
func (s *Stack) Now() time.Duration { return time.Duration(s.now) }
