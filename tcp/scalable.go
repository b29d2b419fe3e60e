package tcp

// scalable is T. Kelly, Scalable TCP: improving performance in highspeed wide area networks, CCR 33 (2), 2003: growth in
// proportion to the window, so that it recovers from a loss in the same number of round trips whatever it was. Up to
// scalableLow it is Reno, as the paper has it for fairness where Reno does well.
type scalable struct{}

const (
	scalableA   = 0.01  // a: segments more for each that is acknowledged
	scalableB   = 0.125 // b: of the window, less at a loss
	scalableLow = 16    // legacy window, in segments
)

func (scalable) Name() string { return "scalable" }

func (scalable) Acked(w *Window, n uint32, now int64) {
	if w.segments() <= scalableLow {
		reno{}.Acked(w, n, now)
	} else if n = w.slowStart(n); n > 0 {
		w.add(n, scalableA, 1)
	}
}

func (scalable) Lost(w *Window, now int64) {
	if w.segments() <= scalableLow {
		reno{}.Lost(w, now)
		return
	}
	w.cut(1 - scalableB)
}

func (c scalable) Expired(w *Window, now int64) { c.Lost(w, now) }
