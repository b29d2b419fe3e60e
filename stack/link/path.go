package link

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"time"

	"ndpip/dpdk"
)

// Path is what happens to frames in one direction, in the order of the fields. Probabilities are from 0 to 1. The zero
// Path delivers each frame at once.
type Path struct {
	// Filter sees each frame before all else and decides about it. It may change the frame, which is the wire's copy,
	// but not keep it. It runs inside the link and must not call it.
	Filter func(frame []byte) Verdict

	MTU int // longest IP packet; longer ones are dropped; 0: no limit

	// Rate is that of the wire in bits per second. A frame occupies it for its length, at least 60 bytes, and 24 more
	// for checksum, preamble and gap. 0: no time at all.
	Rate int64
	// Queue is how many frames may wait for the wire, or be on it; more are dropped. 0: no limit. See Port.TxRing for a
	// port that refuses instead.
	Queue int

	Loss        float64 // of a frame not to arrive
	Corrupt     float64 // of a frame to have bits flipped
	CorruptBits int     // how many; 0: one, which every checksum over it notices
	Reorder     float64 // of a frame to arrive later than those behind it
	ReorderBy   time.Duration
	Duplicate   float64 // of a frame to arrive twice

	Delay time.Duration // of every frame, from its last bit sent
}

// Verdict is what a filter decides about a frame.
type Verdict struct {
	Drop   bool
	Copies int           // how many more of it
	Delay  time.Duration // in addition to the path's
}

// Pass and Drop are the usual verdicts.
var (
	Pass = Verdict{}
	Drop = Verdict{Drop: true}
)

// What a frame occupies the wire for besides its bytes: checksum 4, preamble 8, gap 12.
const (
	wireOverhead = 24
	wireMin      = 60
	etherHeader  = 14
)

func (p *Path) check() {
	for _, v := range []float64{p.Loss, p.Corrupt, p.Reorder, p.Duplicate} {
		if !(v >= 0 && v <= 1) {
			panic(fmt.Sprintf("link: probability %v is not between 0 and 1", v))
		}
	}
	if p.Reorder > 0 && p.ReorderBy <= 0 {
		panic("link: Reorder needs ReorderBy, by how much a frame is late")
	}
	if p.Rate < 0 || p.Delay < 0 || p.MTU < 0 || p.Queue < 0 {
		panic("link: a negative rate, delay, MTU or queue")
	}
}

// flight is a frame on its way.
type flight struct {
	at   time.Duration // when it arrives
	seq  uint64        // frames that arrive at the same time do so in the order they were sent
	data []byte
	hold *hold
	lost bool // does not arrive; is here to give its buffer back in time
}

// done gives back what the flight holds of the sender's.
func (f *flight) done() {
	if f.hold != nil {
		f.hold.done()
	}
}

// hold is a port's reference to a buffer whose frame is on its way (Port.Hold).
type hold struct {
	pool   *pool
	handle dpdk.Handle
	mem    []byte
	sum    uint64 // of mem when the port took it
	n      int    // flights
}

// maxSpare is how many frames' memory a path keeps.
const maxSpare = 4096

var holdSeed = maphash.MakeSeed()

func (h *hold) done() {
	if maphash.Bytes(holdSeed, h.mem) != h.sum {
		panic(fmt.Sprintf("link: buffer %d of the %s was changed while its frame was on the way",
			h.pool.index(h.handle, "arrival"), h.pool.name))
	}
	if h.n--; h.n == 0 {
		h.pool.release(h.handle, "arrival")
	}
}

// path is one direction of the wire.
type path struct {
	Path
	from, to *End
	rnd      *rand.Rand

	seq     uint64
	flights flights
	ready   fifo[flight] // arrived, in the receive ring
	spare   [][]byte     // memory of frames that have been received

	busy    time.Duration       // when the wire is free again
	rest    int64               // and what is left of a nanosecond, in units of 1/Rate
	leaving fifo[time.Duration] // when each frame that waits for the wire, or is on it, has left; ascending
	refused bool                // the sender waits for room in the transmit ring
}

func newPath(p Path, from, to *End, rnd *rand.Rand) *path {
	p.check()
	return &path{Path: p, from: from, to: to, rnd: rnd}
}

// waiting is how many frames have not left for the wire completely.
func (p *path) waiting(now time.Duration) int {
	for p.leaving.len() > 0 && *p.leaving.first() <= now {
		p.leaving.pop()
	}
	return p.leaving.len()
}

// put takes a frame from the sender: mem is copied. h is nil, or the port's reference to the sender's buffer.
func (p *path) put(mem []byte, flags dpdk.Flags, h *hold) {
	now := p.from.link.Now()
	st := &p.from.stats
	if h != nil {
		h.sum = maphash.Bytes(holdSeed, mem)
	}
	var data []byte
	if n := len(p.spare); n > 0 {
		data, p.spare = p.spare[n-1][:0], p.spare[:n-1]
	}
	data = append(data, mem...)
	complete(data, flags)
	st.Sent++
	st.SentBytes += uint64(len(data))
	p.from.record(now, true, data)

	// The same numbers are drawn for each frame, needed or not, so that changing one fault leaves the others where
	// they were.
	lose, corrupt, reorder, dup := p.rnd.Float64(), p.rnd.Float64(), p.rnd.Float64(), p.rnd.Float64()
	bits := p.rnd.Uint64()

	var v Verdict
	if p.Filter != nil {
		v = p.Filter(data)
	}
	f := flight{at: now, data: data, hold: h}
	switch {
	case v.Drop:
		st.Filtered++
		f.lost = true
	case p.MTU > 0 && len(data) > p.MTU+etherHeader:
		st.TooLong++
		f.lost = true
	case p.Queue > 0 && p.waiting(now) >= p.Queue:
		st.QueueFull++
		f.lost = true
	}
	if f.lost {
		p.fly(f)
		return
	}
	if p.Rate > 0 {
		if p.busy < now {
			p.busy, p.rest = now, 0
		}
		size := int64(max(len(data), wireMin)+wireOverhead)*8*int64(time.Second) + p.rest
		p.busy += time.Duration(size / p.Rate)
		p.rest = size % p.Rate // or a fast wire would be some percent faster
		f.at = p.busy
		p.waiting(now) // forgets those that have left
		p.leaving.push(f.at)
	}
	f.at += p.Delay + v.Delay
	if lose < p.Loss {
		st.Lost++
		f.lost = true
		p.fly(f)
		return
	}
	if corrupt < p.Corrupt {
		st.Corrupted++
		flip(data, max(p.CorruptBits, 1), bits)
	}
	if reorder < p.Reorder {
		st.Reordered++
		f.at += p.ReorderBy
	}
	p.fly(f)
	copies := v.Copies
	if dup < p.Duplicate {
		copies++
	}
	st.Duplicated += uint64(copies)
	for range copies {
		f.data = bytes.Clone(data)
		p.fly(f)
	}
}

// flip flips n different bits, which ones follows from seed.
func flip(data []byte, n int, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	flipped := map[int]bool{}
	for len(flipped) < min(n, 8*len(data)) {
		if i := r.IntN(8 * len(data)); !flipped[i] {
			flipped[i] = true
			data[i/8] ^= 1 << (i % 8)
		}
	}
}

func (p *path) fly(f flight) {
	if f.lost && f.hold == nil {
		p.recycle(f.data)
		return
	}
	if f.hold != nil {
		f.hold.n++
	}
	p.seq++
	f.seq = p.seq
	p.flights.push(f)
}

// settle moves the frames that have arrived by now into the receive ring. As frames leave the ring only when someone
// receives, it comes to the same whether this is done at each arrival or when someone looks.
func (p *path) settle(now time.Duration) {
	for len(p.flights) > 0 && p.flights[0].at <= now {
		f := p.flights.pop()
		if !f.lost && p.to.port.RxRing > 0 && p.ready.len() >= p.to.port.RxRing {
			p.to.stats.Missed++
			f.lost = true
		}
		if f.lost {
			f.done()
			p.recycle(f.data)
			continue
		}
		p.ready.push(f)
	}
}

// take gives the next frame that has arrived. Its data are valid as long as the link's lock is held.
func (p *path) take(now time.Duration) (f flight, ok bool) {
	p.settle(now)
	if p.ready.len() == 0 {
		return f, false
	}
	f = p.ready.pop()
	p.recycle(f.data)
	return f, true
}

// recycle keeps the memory of a frame for later ones.
func (p *path) recycle(data []byte) {
	if len(p.spare) < maxSpare {
		p.spare = append(p.spare, data)
	}
}

// arrival is when the next frame can be received.
func (p *path) arrival() (at time.Duration, ok bool) {
	if p.ready.len() > 0 {
		return p.ready.first().at, true
	}
	if len(p.flights) > 0 {
		return p.flights[0].at, true
	}
	return 0, false
}

// room is when a transmit ring that refused frames has room again.
func (p *path) room(now time.Duration) (at time.Duration, ok bool) {
	if p.refused && p.waiting(now) >= p.from.port.TxRing {
		return *p.leaving.first(), true
	}
	return 0, false
}
