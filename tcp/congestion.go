package tcp

// Control is a congestion control: what the lossy profile asks how much may be under way. It is pure, like all of this
// package: it sees acknowledgements and losses and changes the window, and all that it remembers stands there, so one value
// serves all connections.
//
// Sizes are in bytes. Controls are described in segments by their sources; what they add for each acknowledged segment
// is added here for each SMSS bytes (RFC 3465 without its limit, as Linux does it: a receiver that acknowledges bursts would
// slow the sender down otherwise).
type Control interface {
	Name() string
	// Acked sees n bytes acknowledged that the window had kept from being more: not called in a recovery, nor when the
	// application, or the peer's window, is the limit.
	Acked(w *Window, n uint32, now int64)
	// Lost sees a loss that duplicate ACKs have told of, once per window: it sets Ssthresh and Cwnd.
	Lost(w *Window, now int64)
	// Expired sees the first expiry of the timer for a window: it sets Ssthresh. Cwnd is one segment afterwards.
	Expired(w *Window, now int64)
}

// Window is a sender's congestion window with all that its control remembers.
type Window struct {
	Cwnd     uint32 // bytes that may be under way
	Ssthresh uint32 // below it is slow start
	MSS      uint32
	part     uint32 // what the last additions have left, less than a unit of theirs

	RTT    int64 // the last round trip, ns; 0: none yet
	MinRTT int64 // the shortest

	epoch  int64   // CUBIC: when this growth began; FAST: when the window was updated last. 0: not yet
	origin float64 // CUBIC: W_max, in segments; FAST: the window aimed at
	k      float64 // CUBIC: K, in s
	est    float64 // CUBIC: W_est, in segments
	prior  float64 // CUBIC: cwnd_prior, in segments
	sum    int64   // FAST: round trips since epoch, added up
	n      int64   // FAST: how many
}

// maxCwnd keeps sums within 31 bits; no window of a peer is larger (RFC 7323 2.3).
const maxCwnd = 1 << 30

// The controls, by number. 0 is none, which is the lossless profile.
var controls = [...]Control{nil, cubic{}, reno{}, highspeed{}, scalable{}, fast{}}

// DefaultControl is the lossy profile's if none is named.
const DefaultControl uint8 = 1

// ControlNamed finds a control by its name, in Linux's spelling where it has it.
func ControlNamed(name string) (id uint8, ok bool) {
	for i, c := range controls {
		if c != nil && c.Name() == name {
			return uint8(i), true
		}
	}
	return 0, false
}

// ControlName is the name of a control; "none" in the lossless profile.
func ControlName(id uint8) string {
	if id == 0 || int(id) >= len(controls) {
		return "none"
	}
	return controls[id].Name()
}

// ControlNames are all names, the default first.
func ControlNames() (names []string) {
	for _, c := range controls[1:] {
		names = append(names, c.Name())
	}
	return names
}

// begin is the state of a connection that has come up.
func (w *Window) begin(mss uint32) {
	*w = Window{Cwnd: initialWindow(mss), Ssthresh: maxCwnd, MSS: mss, RTT: w.RTT, MinRTT: w.MinRTT}
}

// initialWindow is IW (RFC 6928 2).
func initialWindow(mss uint32) uint32 { return min(10*mss, max(2*mss, 14600)) }

// idle is the restart after a time in which nothing was sent, so that nothing is known of the path any more (RFC 5681 4.1):
// slow start leads back to three quarters of what it was (RFC 2861).
func (w *Window) idle() {
	if iw := initialWindow(w.MSS); w.Cwnd > iw {
		w.Ssthresh = max(w.Ssthresh, w.Cwnd/4*3)
		w.Cwnd = iw
	}
	w.epoch, w.sum, w.n = 0, 0, 0
}

// trip takes a round trip.
func (w *Window) trip(ns int64) {
	w.RTT = max(ns, 1)
	if w.MinRTT == 0 || w.RTT < w.MinRTT {
		w.MinRTT = w.RTT
	}
}

// queued says whether the last round trip tells of a queue on the way: it took an eighth longer than the shortest.
func (w *Window) queued() bool { return w.RTT == 0 || w.RTT > w.MinRTT+w.MinRTT/8 }

// slowStart grows the window by what was acknowledged, up to Ssthresh, and returns what is left of it (RFC 5681 3.1).
func (w *Window) slowStart(n uint32) (left uint32) {
	if w.Cwnd >= w.Ssthresh {
		return n
	}
	k := min(n, w.Ssthresh-w.Cwnd)
	w.grow(k)
	return n - k
}

func (w *Window) grow(n uint32) { w.Cwnd = min(w.Cwnd+n, maxCwnd) }

// add grows the window by num bytes for each den bytes acknowledged, of which there are n now.
func (w *Window) add(n uint32, num, den float64) {
	k := float64(n)*num/den + float64(w.part)/(1<<16)
	whole := uint32(min(k, maxCwnd))
	w.part = uint32((k - float64(whole)) * (1 << 16))
	w.grow(whole)
}

// cut makes Ssthresh and Cwnd a part of the window, two segments at least (RFC 5681 3.1).
func (w *Window) cut(part float64) {
	w.Ssthresh = max(uint32(float64(w.Cwnd)*part), 2*w.MSS)
	w.Cwnd = w.Ssthresh
	w.part = 0
}

// segments is the window in segments, as the sources of the controls count.
func (w *Window) segments() float64 { return float64(w.Cwnd) / float64(w.MSS) }
