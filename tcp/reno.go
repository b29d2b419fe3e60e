package tcp

// reno is the control of RFC 5681: a segment more for each window that is acknowledged, half the window at a loss.
type reno struct{}

func (reno) Name() string { return "reno" }

func (reno) Acked(w *Window, n uint32, _ int64) {
	if n = w.slowStart(n); n > 0 {
		w.add(n, float64(w.MSS), float64(w.Cwnd))
	}
}

func (reno) Lost(w *Window, _ int64)    { w.cut(0.5) }
func (reno) Expired(w *Window, _ int64) { w.cut(0.5) }
