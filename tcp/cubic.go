package tcp

import "math"

// cubic is the control of RFC 9438: after a loss the window grows along a cubic of the time since, which is flat where the
// window was at the loss, so that long round trips cost nothing; and it is never less than what Reno's would be on the
// average.
//
// One thing is not in it. A loss while the round trip shows no queue says little of congestion, so the window gives way by
// 0.85 then instead of 0.7, which is what RFC 8511 has for CUBIC where the signal tells that the queue is short. At the
// round trips of a data centre CUBIC is no more than Reno otherwise, and one loss in a thousand halves the rate of a link
// that has room for more.
type cubic struct{}

// RFC 9438 4.1 and 4.6: C in segments per s³, beta; alpha makes Reno's growth as fast as with its own beta of 1/2 (4.3).
const (
	cubicC     = 0.4
	cubicBeta  = 0.7
	cubicMild  = 0.85 // RFC 8511 3.1
	cubicAlpha = 3 * (1 - cubicBeta) / (1 + cubicBeta)
)

func (cubic) Name() string { return "cubic" }

func (cubic) Acked(w *Window, n uint32, now int64) {
	if n = w.slowStart(n); n == 0 {
		return
	}
	cwnd := w.segments()
	if w.epoch == 0 {
		w.epoch = now
		w.est = cwnd
		if w.origin <= cwnd {
			w.origin, w.k = cwnd, 0
		} else {
			w.k = math.Cbrt((w.origin - cwnd) / cubicC)
		}
	}
	alpha := cubicAlpha
	if w.est >= w.prior {
		alpha = 1
	}
	w.est += alpha * float64(n) / float64(w.Cwnd)
	at := func(t float64) float64 { return cubicC*(t-w.k)*(t-w.k)*(t-w.k) + w.origin }
	t := float64(now-w.epoch) / 1e9
	if at(t) < w.est { // the region where Reno would be ahead
		w.grow(uint32(max(w.est-cwnd, 0) * float64(w.MSS)))
		return
	}
	target := min(max(at(t+float64(w.RTT)/1e9), cwnd), 1.5*cwnd)
	w.add(n, (target-cwnd)*float64(w.MSS), float64(w.Cwnd))
}

func (cubic) Lost(w *Window, _ int64) {
	cwnd := w.segments()
	w.prior = cwnd
	if cwnd < w.origin { // fast convergence (4.7): someone else is growing
		w.origin = cwnd * (1 + cubicBeta) / 2
	} else {
		w.origin = cwnd
	}
	w.epoch = 0
	if w.queued() {
		w.cut(cubicBeta)
	} else {
		w.cut(cubicMild)
	}
}

func (c cubic) Expired(w *Window, now int64) {
	w.RTT = 0 // nothing is known of it
	c.Lost(w, now)
}
