package tcp

import (
	"unsafe"

	"ndpip/ring"
)

// The lossy profile, for links that lose or reorder: duplicate ACKs and selective acknowledgements tell of a loss, only what
// is missing is sent again, the receiver keeps what comes early, and a congestion control says how much may be under way.
// RFCs to read first: 5681, 6582, 2018, 6675, 3042, 6928; docs/links.md says when to choose it.
//
// Its state lies in memory of its own, which Conn.lossy names. A connection without it never comes here: its segments take
// the fast path, or find lossy to be 0 where something rare has happened. What the window of the congestion control allows
// stands in Conn.cwnd, beside SND.WND, and has no bound in the lossless profile.
//
//	lossy.go        the sender's phases, what may be under way, what is sent again
//	lossy_ack.go    what acknowledgements tell of losses
//	lossy_queue.go  the receiver's queue, and what ACKs tell of it
//	congestion.go   the window, and the controls: reno.go, cubic.go …
type lossy struct {
	win     Window
	control uint8
	phase   phase
	sackOK  bool // both ends have offered selective acknowledgements
	force   bool // what lies at SND.UNA is sent again, whatever is under way

	// The sender.
	recover Seq         // SND.NXT when the repair began (RFC 6582)
	repNxt  Seq         // what is missing below was sent again, or is about to be sent once more (HighRxt of RFC 6675)
	repMax  Seq         // the highest of it
	skip    span        // what lies in it was sent again before this round of repairs
	lostEnd Seq         // what is missing below is lost
	rounds  [8]progress // of this round of repairs, a few moments
	nrounds uint8
	dups    uint32       // duplicate ACKs since SND.UNA moved, without selective acknowledgements
	sacked  uint32       // bytes in spans
	out     uint32       // bytes that were sent again, and of which nothing was heard
	lost    uint32       // bytes below lostEnd that are missing
	spans   sorted[span] // what has arrived beyond SND.UNA
	idleAt  bool         // Conn.ageAt is when the connection has been idle for long

	// The receiver.
	queue   sorted[held] // what came early; it does not overlap
	fin     Seq          // where the peer's FIN is, if it came early
	finHeld bool
	recent  [16]span // what was queued last comes first, as ACKs tell it (RFC 2018 4)
	nrecent uint8
	untold  uint8 // of these, those that no ACK has told
	memory  uintptr
	want    uint32 // entries of it
	txWant  uint32 // Conn.TxWant in the beginning
}

// progress is a moment of a repair: what is missing below rep was sent again when SND.NXT was nxt, or earlier.
type progress struct{ rep, nxt Seq }

// phase is what the sender is doing.
type phase uint8

const (
	steady phase = iota
	repair       // fast recovery, until recover is acknowledged
	goBack       // go-back-N, after the timer has expired, until recover is acknowledged
)

// LossyEntries is the memory of the profile's state, in entries of a ring.Slab.
const LossyEntries = uint32((unsafe.Sizeof(lossy{}) + ring.EntrySize - 1) / ring.EntrySize)

func (c *Conn) loss() *lossy { return ring.As[lossy](c.lossy) }

// noBound is the congestion window of the lossless profile.
const noBound = ^uint32(0)

// setLossy gives the connection the lossy profile, with memory for its state; 0: the lossless one.
func (c *Conn) setLossy(memory uintptr, control uint8) {
	c.lossy, c.cwnd = memory, noBound
	if memory == 0 {
		return
	}
	l := c.loss()
	*l = lossy{control: control, want: queueEntries(c.RxWant, c.TxWant), txWant: c.TxWant}
}

// DropLossy takes the profile's memory away from a connection that needs no buffers any more; 0: it has none.
func (c *Conn) DropLossy() (state, queue uintptr, entries uint32) {
	if c.lossy == 0 {
		return 0, 0, 0
	}
	l := c.loss()
	state, queue, entries = c.lossy, l.memory, l.want
	c.lossy, c.cwnd = 0, noBound
	return state, queue, entries
}

// beginLossy is the start of a connection that has come up: the round trip of the SYN is known, if it was timed.
func (c *Conn) beginLossy() {
	l := c.loss()
	if c.srtt != 0 {
		l.win.trip(c.srtt)
	}
	l.win.begin(uint32(c.SndMSS))
	if c.retries > 1 { // a SYN was lost more than once: RFC 6928 2, as Linux reads it
		l.win.Cwnd = uint32(c.SndMSS)
	}
	l.recover, l.repNxt, l.repMax, l.lostEnd = c.sndUna, c.sndUna, c.sndUna, c.sndUna
	c.setCwnd(l)
}

// arrived is how many bytes beyond SND.UNA the peer has.
func (l *lossy) arrived() uint32 {
	if l.sackOK {
		return l.sacked
	}
	return l.dups * l.win.MSS
}

// dupThresh is DupThresh of RFC 6675: so many segments behind a gap tell that it is a loss.
const dupThresh = 3

// setCwnd computes what may lie between SND.UNA and the right edge: what the congestion control lets be under way, and
// what of it is not on the way any more.
func (c *Conn) setCwnd(l *lossy) {
	w := l.win.Cwnd
	switch l.phase {
	case steady:
		w += min(l.arrived(), 2*l.win.MSS) // limited transmit (RFC 3042)
	case repair:
		w += l.arrived() + l.lost
		w -= min(l.out, w)
		if n := c.outstanding(); w > n && l.holes(c) {
			w = n // what is missing goes first
		}
	case goBack:
		w += l.sacked
	}
	w = max(min(w, maxCwnd), l.win.MSS)
	if w != c.cwnd {
		c.cwnd = w
		c.pend |= pendPublish | PendWrite
		if c.flags&rtxOn != 0 {
			c.pend |= PendRtx
		}
	}
}

// holes says whether something is known to be lost that was not sent again.
func (l *lossy) holes(c *Conn) bool {
	return l.phase == repair && (l.force || l.nextHole(c).Less(l.lostEnd))
}

// nextHole is where what is to be sent again next begins.
func (l *lossy) nextHole(c *Conn) Seq {
	seq := l.gap(maxSeq(l.repNxt, c.sndUna))
	if l.skip.start.LessEq(seq) && seq.Less(l.skip.end) {
		seq = l.gap(l.skip.end)
	}
	return seq
}

// gap is the first byte from seq on that the peer is not known to have.
func (l *lossy) gap(seq Seq) Seq {
	if i := find(&l.spans, seq); i < l.spans.n {
		if s := l.spans.at(i); s.start.LessEq(seq) {
			return s.end // spans do not touch
		}
	}
	return seq
}

// missing is how many bytes from seq on, n at most, the peer is not known to have.
func (l *lossy) missing(seq Seq, n int) int {
	if i := find(&l.spans, seq); i < l.spans.n {
		n = min(n, int(max(seq.Size(l.spans.at(i).start), 0)))
	}
	return n
}

func maxSeq(a, b Seq) Seq {
	if a.Less(b) {
		return b
	}
	return a
}

// inflight is what is on the way (pipe of RFC 6675).
func (l *lossy) inflight(c *Conn) uint32 {
	n := c.outstanding() + l.out
	return n - min(l.arrived()+l.lost, n)
}

// resendAt is where the next segment lies that is sent again, and how much of it at most.
func (l *lossy) resendAt(c *Conn) (seq Seq, most int, ok bool) {
	if c.flags&rtxOn == 0 {
		return l.repairAt(c)
	}
	seq = l.gap(maxSeq(c.rtxNxt, c.sndUna))
	most = int(seq.Size(c.sndUna + Seq(c.cwnd)))
	if most <= 0 || most < int(l.win.MSS) && seq != c.sndUna {
		return 0, 0, false
	}
	return seq, l.missing(seq, most), true
}

// repairAt is where the next segment lies that a repair sends again.
func (l *lossy) repairAt(c *Conn) (seq Seq, most int, ok bool) {
	if l.phase != repair {
		return 0, 0, false
	}
	mss := int(l.win.MSS)
	if l.force {
		n := l.missing(c.sndUna, mss)
		return c.sndUna, n, n > 0
	}
	seq = l.nextHole(c)
	if !seq.Less(l.lostEnd) || l.inflight(c)+l.win.MSS > l.win.Cwnd {
		return 0, 0, false
	}
	return seq, l.missing(seq, mss), true
}

// repaired notes that n units from seq on were sent again.
func (l *lossy) repaired(c *Conn, seq Seq, n uint32) {
	if c.flags&copied == 0 || c.rtxEnd.Less(seq+Seq(n)) {
		c.flags |= copied
		c.rtxEnd = seq + Seq(n)
	}
	l.force = false
	end := seq + Seq(n)
	l.out += n
	l.repNxt, l.repMax = maxSeq(l.repNxt, end), maxSeq(l.repMax, end)
	l.noteProgress(progress{l.repNxt, c.sndNxt()})
	if !l.sackOK {
		l.lostEnd = maxSeq(l.lostEnd, end)
		l.lost = min(uint32(c.sndUna.Size(l.lostEnd)), c.outstanding())
	}
	c.setCwnd(l)
}

// noteProgress keeps a moment of the repair: each eighth of a window, and the last.
func (l *lossy) noteProgress(p progress) {
	n := l.nrounds
	if n < 2 || uint32(l.rounds[n-2].nxt.Size(p.nxt)) > l.win.Cwnd/8 {
		if int(n) == len(l.rounds) {
			copy(l.rounds[:], l.rounds[1:])
			n--
		}
		n++
	}
	l.rounds[n-1], l.nrounds = p, n
}

// lostAgain finds what was sent again and lost once more: what was sent after it has arrived. All of it begins a new round
// of repairs, or a receiver that has dropped many would get one in each round trip.
func (l *lossy) lostAgain(c *Conn) {
	top := l.spans.at(l.spans.n - 1).end
	for i := l.nrounds; i > 0; i-- {
		p := l.rounds[i-1]
		if p.nxt.Size(top) <= (dupThresh-1)*int32(l.win.MSS) {
			continue
		}
		if first := l.gap(c.sndUna); first.Less(p.rep) {
			l.out -= min(l.between(c.sndUna, p.rep), l.out)
			l.repNxt, l.skip, l.force = c.sndUna, span{p.rep, l.repMax}, true
			l.nrounds = 0
		}
		return
	}
}

// between is how many bytes from one number to another are missing.
func (l *lossy) between(from, to Seq) (n uint32) {
	for from.Less(to) {
		from = l.gap(from)
		k := l.missing(from, int(max(from.Size(to), 0)))
		n += uint32(k)
		if from += Seq(k); k == 0 {
			break
		}
	}
	return n
}

// startRepair begins a fast recovery: a segment is lost.
func (c *Conn) startRepair(l *lossy, now int64) {
	controls[l.control].Lost(&l.win, now)
	l.phase, l.force = repair, true
	l.recover, l.repNxt, l.repMax, l.out = c.sndNxt(), c.sndUna, c.sndUna, 0
	l.skip, l.nrounds = span{}, 0
	c.rtxIdx, c.rtxSeq = c.txNext, c.txSeq
	c.timedAt = 0 // an acknowledgement of what follows waits for the repair
	c.pend |= PendRtx
}

// expire is the retransmission timer's expiry, before go-back-N begins. first: of the data at SND.UNA.
func (c *Conn) expire(now int64, first bool) {
	l := c.loss()
	if first && l.phase == steady {
		controls[l.control].Expired(&l.win, now)
	}
	l.win.Cwnd, l.win.part = l.win.MSS, 0
	l.spans.n, l.sacked = 0, 0 // the receiver may have dropped what it had (RFC 2018 8)
}

// goBackFrom is the beginning of go-back-N, whatever the reason.
func (c *Conn) goBackFrom() {
	l := c.loss()
	l.phase, l.force = goBack, false
	l.recover = c.sndNxt()
	l.dups, l.out, l.lost = 0, 0, 0
	l.repNxt, l.repMax, l.lostEnd = c.sndUna, c.sndUna, c.sndUna
	c.setCwnd(l)
}

// rest starts to wait for the connection's having been idle for an RTO.
func (c *Conn) rest(l *lossy, now int64) {
	if c.state == Established || c.state == CloseWait {
		l.idleAt = true
		c.ageAt = now + c.rto
		c.pend |= PendTimer
	}
}

// rested is the expiry of that time. It returns false if Conn.ageAt is something else.
func (c *Conn) rested() bool {
	l := c.loss()
	if !l.idleAt {
		return false
	}
	l.idleAt = false
	if c.outstanding() == 0 {
		l.win.idle()
		c.setCwnd(l)
	}
	return true
}

// PublishEdge shows the application the right edge after a repair has sent what goes before anything new.
func (c *Conn) PublishEdge() {
	if c.lossy != 0 && c.pend&pendPublish != 0 {
		c.publishEdge()
	}
}
