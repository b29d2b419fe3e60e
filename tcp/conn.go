package tcp

import (
	"sync/atomic"

	"ndpip/ring"
)

// Conn is a connection's transmission control block (RFC 9293 3.3.1), laid out by who writes it: each 64-byte line
// has one writer, so that the two cores pass a line only when there is news on it. It holds no Go pointer: a million
// connections cost the garbage collector nothing. Buffers and rings are named by numbers.
//
// Who owns what:
//   - transmit ring: the application pushes sent segments, the worker takes them off once acknowledged;
//   - receive ring: the worker pushes payloads, the application takes them off once read;
//   - all else of the protocol is the worker's, who publishes what the application needs in line 2.
type Conn struct {
	// Line 0: written by the worker while the connection is being opened, then read by both.
	//
	// Of Hdr, word 0 changes if the peer's MAC does, and words 1 to 3 with SetService, while no other thread may write
	// headers.
	Hdr      [7]uint64 // the headers of a frame, 54 bytes and 2 of padding
	SndMSS   uint16    // largest payload of a segment that we send
	SndShift uint8     // Snd.Wind.Shift (RFC 7323 2.2): scale of the windows that the peer advertises
	RcvShift uint8     // Rcv.Wind.Shift: scale of the windows that we advertise
	Stream   uint32    // the application's name for this connection (its descriptor), for the ready list

	// Line 1: written by the application.
	//
	// snd is SND.NXT (high half) and the transmit ring's producer index. Stored before the frames go to the port, so
	// that no acknowledgement can arrive for what the worker does not know.
	snd atomic.Uint64
	// usr is the sequence number up to which the application has read (high half) and the receive ring's consumer
	// index. Stored after the payloads were copied out: the worker may then count their room as free.
	usr atomic.Uint64
	// held says that units from heldFrom on are queued but were never sent, for want of window: a FIN, or the byte
	// that probes a closed window. Stored after heldFrom and before snd.
	held     atomic.Uint32
	heldFrom atomic.Uint32
	fin      atomic.Uint32 // 1: the unit at finSeq is a FIN. Stored after finSeq and before snd
	Watch    atomic.Uint32 // events that the application waits for; the worker skips the ready list when it is 0
	Attn     atomic.Uint32 // 1: this connection is in the attention ring already
	RxOff    uint32        // bytes read of the entry at the head of the receive ring
	TxSeen   uint32        // last known consumer index of the transmit ring
	told     atomic.Uint32 // the acknowledgement that the last frames of the application's carried
	txBase   uintptr
	ending   atomic.Uint32 // lingerZero, readShut
	finSeq   atomic.Uint32

	// Line 2: written by the worker, read by the application.
	//
	// edge is SND.UNA (high half) and the right edge of what may be sent. ack is RCV.NXT (high half), and the window
	// field that goes with it. A frame that the application sends carries both halves of ack as they are.
	edge   atomic.Uint64
	ack    atomic.Uint64
	rxTail atomic.Uint32 // receive ring's producer index; stored after the entries were written
	txHead atomic.Uint32 // transmit ring's consumer index; stored after the entries were read
	status atomic.Uint32 // state, reason and end of stream; stored after rxTail, so that all data are seen before the end
	Ready  atomic.Uint32 // 1: this connection is in the ready list already; cleared by the application
	maxWnd atomic.Uint32 // largest send window seen (for the sender's silly window avoidance)
	rxMask uint32
	rxBase uintptr
	RcvBuf uint32        // SO_RCVBUF in bytes
	TxWant uint32        // entries of the transmit ring, which is made with the first write
	staged atomic.Uint32 // 1: a gathering buffer waits for the application to make room; see stage.go
	Pair   uint32        // the stack's name for what connections of this pair of hosts have in common; 0: none

	// Line 3 and 4: the worker's own.
	sndUna     Seq    // SND.UNA
	sndWnd     uint32 // SND.WND, scaled
	wl1, wl2   Seq    // SND.WL1, SND.WL2
	iss, irs   Seq    // ISS, IRS
	rcvNxt     Seq    // RCV.NXT
	rcvAdv     Seq    // RCV.NXT + RCV.WND as last advertised: the right edge, which never moves left
	rxNext     uint32 // receive ring's producer index before it is published
	txNext     uint32 // transmit ring's consumer index before it is published
	txSeq      Seq    // sequence number of the transmit ring's entry at txNext
	pend       Pend   // what is to be done once the burst is through
	state      State
	reason     Reason
	flags      flagBits
	retries    uint8 // retransmissions since the last progress
	rcvMSS     uint16
	challenges uint8  // challenge ACKs sent since challengeAt
	quick      bool   // ESTABLISHED, and nothing to be looked at but the fast path's: not so in the lossy profile
	gaps       uint8  // segments beyond RCV.NXT since the last ACK, at most 3; in the lossy profile 255
	soft       Reason // what ICMP last said of a segment that is not acknowledged; see SoftError

	rtxNxt, rtxEnd Seq // go-back-N: next to resend, and SND.NXT when the resending began; see out.go, too
	rtxSeq         Seq // sequence number of the transmit ring's entry at rtxIdx
	rtxIdx         uint32
	timed          Seq // the acknowledgement of more than this gives a round-trip sample
	RxWant         uint32

	timedAt     int64   // when the unit at timed was sent, or a little before; 0: none is being timed
	rtoAt       int64   // when the retransmission or persist timer expires; 0: off
	ageAt       int64   // when TIME-WAIT or FIN-WAIT-2 ends; 0: off
	failSince   int64   // when the oldest unacknowledged data was first found missing; 0: none is
	srtt        int64   // SRTT in ns; 0: no sample yet
	rttvar      int64   // RTTVAR
	rto         int64   // RTO, without backoff
	lossy       uintptr // the lossy profile's state; 0: the lossless profile
	UserTimeout int64   // TCP_USER_TIMEOUT in ns; 0: by the number of retries

	stageHandle uintptr // the gathering buffer; 0: none
	stageAddr   uintptr
	stageLen    uint16 // bytes gathered in it
	stageCap    uint16
	cwnd        uint32 // what congestion control lets lie beyond SND.UNA; noBound without it

	ID       uint32 // place in the stack's table of connections
	PortRef  uint32 // the stack's name for the chosen local port; 0: it was not chosen
	Parent   uint32 // the listener that it belongs to until it is accepted; 0: none
	NextHop  uint32 // IPv4 address whose MAC stands in Hdr
	NeighRef uint32 // the stack's name for the next hop's entry, to note its use
	Laddr    uint32
	Raddr    uint32
	Lport    uint16
	Rport    uint16
	Linked   uint8 // the stack's marks: in the table, in this burst's list
	KeepCnt  uint8
	backoff  uint8 // timeouts since the last sample, or since the window was closed
	KeepMax  uint8 // TCP_KEEPCNT: probes without an answer that end the connection; 0: keepProbes
	newNxt   Seq   // of what was held: sent up to here,
	newEnd   Seq   // and queued up to here; it is the worker who sends that

	challengeAt uint32 // in units of 2^20 ns
	KeepGap     int64  // TCP_KEEPINTVL: ns between probes; 0: by KeepIdle
	KeepIdle    int64  // SO_KEEPALIVE, TCP_KEEPIDLE: ns of silence before a probe; 0: off
	heardAt     int64  // when the peer was last heard (kept only with KeepIdle)
	TimerAt     int64  // when the stack's wheel calls Timer; 0: not armed. It may be early: Timer looks for itself
}

type flagBits uint8

const (
	rtxOn    flagBits = 1 << iota // resending from rtxNxt to rtxEnd
	finRcvd                       // the peer's FIN was taken: end of stream
	orphan                        // the application has closed: nobody reads, nobody asks for the state
	active                        // opened by connect
	noScale                       // the peer did not offer window scaling
	copied                        // copies were sent of what lies before rtxEnd; see Copied
	squeezed                      // the stack is short of buffers: the peer sees a closed window
	outs                          // the worker sends all; see out.go
)

// Pend is a set of things to do for a connection once the burst is through.
type Pend uint16

// The things.
const (
	PendAck     Pend = 1 << iota // send a pure ACK
	PendSyn                      // send the SYN, or the SYN and ACK
	PendRst                      // send an RST at SND.NXT
	PendRtx                      // resend from the transmit ring
	PendProbe                    // send a window or keep-alive probe
	PendAcked                    // take acknowledged entries off the transmit ring
	PendRead                     // the application has something new to read
	PendWrite                    // the application has new room to write
	PendOpen                     // the connection was opened: hand it to who waits
	PendGone                     // the connection is CLOSED: release it once the application has let go
	pendPublish                  // publish line 2
	PendTimer                    // arm the timer at NextTimer
	PendSend                     // send what the application has queued; see out.go
)

// Params are what all connections of a stack have in common. Times are in ns.
type Params struct {
	InitRTO       int64 // before the first sample (RFC 6298 2.1)
	MinRTO        int64 // floor
	MaxRTO        int64 // cap, of the persist timer too
	TimeWait      int64 // 2 MSL
	FinWait2      int64 // how long an orphan waits for the peer's FIN
	SynRetries    uint8 // resends of a SYN before giving up: together at least 3 minutes (RFC 9293 3.8.3, MUST-23)
	SynAckRetries uint8 // resends of a SYN and ACK; fewer, as each half-open connection takes a place of the backlog
	Retries       uint8 // resends of data before giving up (R2, RFC 9293 3.8.3)
	OrphanRetries uint8 // the same once the application has closed
}

// DefaultParams are the defaults. The floor of the RTO is Linux's: a peer may delay its ACK by 40 ms.
func DefaultParams() Params {
	const s = int64(1e9)
	return Params{InitRTO: s, MinRTO: s / 5, MaxRTO: 60 * s, TimeWait: 60 * s, FinWait2: 60 * s,
		SynRetries: 7, SynAckRetries: 6, Retries: 15, OrphanRetries: 8}
}

// status word: state, reason << 8, end of stream.
const statusEOF = 1 << 16

func (c *Conn) sndNxt() Seq { return Seq(c.snd.Load() >> 32) }

// Pending is what is to be done.
func (c *Conn) Pending() Pend { return c.pend }

// Want adds things to do. Worker only.
func (c *Conn) Want(p Pend) { c.pend |= p }

// Clear takes things off the list. Worker only.
func (c *Conn) Clear(p Pend) { c.pend &^= p }

// outstanding is how many units are sent (or held) and not acknowledged.
func (c *Conn) outstanding() uint32 { return uint32(c.sndUna.Size(c.sndNxt())) }

func pack(hi Seq, lo uint32) uint64 { return uint64(hi)<<32 | uint64(lo) }

// SetRxRing and SetTxRing give the connection its rings (entries: a power of two). The receive ring is set by the
// worker before the first payload, the transmit ring by the application before the first write.
func (c *Conn) SetRxRing(base uintptr, entries uint32) { c.rxBase, c.rxMask = base, entries-1 }

// SetTxRing is described with SetRxRing.
func (c *Conn) SetTxRing(base uintptr, entries uint32) { c.txBase, c.TxWant = base, entries }

// RxRing gives the receive ring's memory; base 0: none yet.
func (c *Conn) RxRing() (base uintptr, entries uint32) { return c.rxBase, c.rxMask + 1 }

// TxRing gives the transmit ring's memory; base 0: none yet.
func (c *Conn) TxRing() (base uintptr, entries uint32) { return c.txBase, c.TxWant }

func (c *Conn) rxAt(i uint32) *ring.Entry { return ring.At(c.rxBase, c.rxMask, i) }
func (c *Conn) txAt(i uint32) *ring.Entry { return ring.At(c.txBase, c.TxWant-1, i) }

// Reset makes the block empty again for a new connection.
func (c *Conn) Reset(id uint32) {
	*c = Conn{}
	c.ID = id
}

// Reuse is Reset for a block whose next connection has rings of the same size: they stay, and nothing else does.
func (c *Conn) Reuse(id uint32) {
	rx, mask, tx, n := c.rxBase, c.rxMask, c.txBase, c.TxWant
	*c = Conn{}
	c.ID, c.rxBase, c.rxMask, c.txBase, c.TxWant = id, rx, mask, tx, n
}
