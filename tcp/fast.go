package tcp

// fast is C. Jin, D. X. Wei, S. H. Low, FAST TCP: motivation, architecture, algorithms, performance, INFOCOM 2004: it
// looks at the round trip, and keeps alpha segments of its own in the queues on the way. Each round trip
//
//	w ← min{2w, (1-γ)w + γ(baseRTT/RTT·w + α)}
//
// Before that is slow start, until a queue shows. At a loss it does as Reno.
type fast struct{}

const (
	fastGamma = 0.5
	fastAlpha = 200 // segments, as in the paper's experiments at 1 Gb/s
)

func (fast) Name() string { return "fast" }

func (fast) Acked(w *Window, n uint32, now int64) {
	if w.Cwnd < w.Ssthresh {
		if w.RTT == 0 || w.segments()*(1-float64(w.MinRTT)/float64(w.RTT)) < fastAlpha/2 {
			w.slowStart(n)
			return
		}
		w.Ssthresh = w.Cwnd
	}
	w.sum += w.RTT
	w.n++
	if w.epoch == 0 {
		w.epoch = now
	}
	if now-w.epoch < w.RTT {
		return
	}
	rtt := w.sum / w.n
	w.epoch, w.sum, w.n = now, 0, 0
	cwnd := w.segments()
	next := min(2*cwnd, (1-fastGamma)*cwnd+fastGamma*(float64(w.MinRTT)/float64(rtt)*cwnd+fastAlpha))
	w.Cwnd = uint32(min(max(next, 2)*float64(w.MSS), maxCwnd))
	w.Ssthresh = w.Cwnd
}

func (fast) Lost(w *Window, _ int64) {
	w.cut(0.5)
	w.epoch, w.sum, w.n = 0, 0, 0
}

func (c fast) Expired(w *Window, now int64) { c.Lost(w, now) }
