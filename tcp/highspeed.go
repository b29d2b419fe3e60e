package tcp

import "math"

// highspeed is HighSpeed TCP, RFC 3649: up to 38 segments it is Reno; above, it grows faster and gives way less the
// larger the window, such that it is 83,000 segments at a loss rate of 10^-7.
type highspeed struct{}

// RFC 3649 5: the response function's two ends, and the decrease at the upper one.
const (
	hsLow      = 38
	hsHigh     = 83000
	hsLowP     = 1e-3
	hsHighP    = 1e-7
	hsDecrease = 0.1
)

func (highspeed) Name() string { return "highspeed" }

// highspeedBA are b(w) and a(w) of RFC 3649 5.
func highspeedBA(w float64) (b, a float64) {
	if w <= hsLow {
		return 0.5, 1
	}
	x := (math.Log(w) - math.Log(hsLow)) / (math.Log(hsHigh) - math.Log(hsLow))
	b = (hsDecrease-0.5)*x + 0.5
	p := math.Exp(x*(math.Log(hsHighP)-math.Log(hsLowP)) + math.Log(hsLowP))
	return b, max(w*w*p*2*b/(2-b), 1)
}

func (highspeed) Acked(w *Window, n uint32, _ int64) {
	if n = w.slowStart(n); n > 0 {
		_, a := highspeedBA(w.segments())
		w.add(n, a*float64(w.MSS), float64(w.Cwnd))
	}
}

func (highspeed) Lost(w *Window, _ int64) {
	b, _ := highspeedBA(w.segments())
	w.cut(1 - b)
}

func (c highspeed) Expired(w *Window, now int64) { c.Lost(w, now) }
