package tcp

import (
	"math"
	"testing"
)

const ms = int64(1e6)

func window(segments float64) *Window {
	w := &Window{RTT: 100 * ms, MinRTT: 100 * ms}
	w.begin(1000)
	w.Cwnd = uint32(segments * 1000)
	w.Ssthresh = w.Cwnd
	return w
}

// round acknowledges a window, segment by segment, within a round trip.
func round(c Control, w *Window, now *int64) {
	for n := w.Cwnd; n > 0; n -= min(n, w.MSS) {
		*now += w.RTT * int64(w.MSS) / int64(w.Cwnd)
		c.Acked(w, min(n, w.MSS), *now)
	}
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within*want {
		t.Errorf("%s: %.2f, want %.2f", what, got, want)
	}
}

func TestSlowStart(t *testing.T) {
	for _, c := range controls[1:] {
		w, now := window(10), int64(1)
		w.Ssthresh = 80000
		for range 3 {
			round(c, w, &now)
		}
		near(t, c.Name()+": three round trips of slow start", w.segments(), 80, 0.1)
	}
}

// Growth in a round trip from 1000 segments, and what is left after a loss, by the sources.
func TestControls(t *testing.T) {
	b, a := highspeedBA(1000)
	for _, x := range []struct {
		name        string
		grow, after float64
	}{
		{"reno", 1, 500},
		{"scalable", 10, 875},
		{"highspeed", a, 1000 * (1 - b)},
		{"fast", 100, 500}, // γα, where there is no queue
	} {
		id, ok := ControlNamed(x.name)
		if !ok {
			t.Fatal(x.name)
		}
		c := controls[id]
		w, now := window(1000), int64(1)
		w.RTT += w.RTT / 2 // a queue: so there is none for cubic to be mild
		if x.name == "fast" {
			w.RTT = w.MinRTT
			c.Acked(w, 1, now)
		}
		round(c, w, &now)
		near(t, x.name+": growth", w.segments()-1000, x.grow, 0.1)
		w = window(1000)
		c.Lost(w, now)
		near(t, x.name+": after a loss", w.segments(), x.after, 0.001)
		if w.Ssthresh != w.Cwnd {
			t.Errorf("%s: ssthresh %d, cwnd %d", x.name, w.Ssthresh, w.Cwnd)
		}
		w = window(1)
		if c.Lost(w, now); w.Cwnd != 2*w.MSS {
			t.Errorf("%s: %d bytes are left of one segment, want two segments", x.name, w.Cwnd)
		}
	}
}

// The table of RFC 3649, appendix B: a(w) and b(w).
func TestHighSpeedTable(t *testing.T) {
	for _, x := range []struct{ w, a, b float64 }{
		{38, 1, 0.50}, {118, 2, 0.44}, {1058, 8, 0.33}, {10661, 30, 0.21}, {83981, 70, 0.10},
	} {
		b, a := highspeedBA(x.w)
		near(t, "a", a, x.a, 0.12)
		near(t, "b", b, x.b, 0.03)
	}
}

// CUBIC comes back to the window at the loss after K, and is flat there (RFC 9438 4.2).
func TestCubic(t *testing.T) {
	w, now := window(1000), int64(1)
	w.RTT = 200 * ms // a queue
	cubic{}.Lost(w, now)
	near(t, "after a loss", w.segments(), 700, 0.001)
	k := int64(math.Cbrt(300/cubicC) * 1e9)
	for start := now; now < start+k/2; {
		round(cubic{}, w, &now)
	}
	near(t, "at K/2", w.segments(), 1000-300.0/8, 0.02)
	for now < k {
		round(cubic{}, w, &now)
	}
	near(t, "at K", w.segments(), 1000, 0.01)
	for now < 2*k {
		round(cubic{}, w, &now)
	}
	near(t, "at 2K", w.segments(), 1300, 0.05)

	w.RTT = 100 * ms // no queue
	had := w.segments()
	cubic{}.Lost(w, now)
	near(t, "after a loss without a queue", w.segments(), 0.85*had, 0.001)
	w.RTT = 200 * ms
	had = w.segments()
	cubic{}.Lost(w, now)
	near(t, "fast convergence", w.origin, had*0.85, 0.001)

	// On a short path Reno would be ahead, and the window is what Reno's would be on the average.
	w, now = window(20), 1
	w.RTT, w.MinRTT = ms/10, ms/20
	cubic{}.Lost(w, now)
	for range 100 {
		round(cubic{}, w, &now)
	}
	if grown := w.segments() - 14; grown < 50 || grown > 101 {
		t.Errorf("%.1f segments more in 100 round trips", grown)
	}
}

// FAST comes to rest where alpha segments of its own are queued.
func TestFast(t *testing.T) {
	w, now := window(10), int64(1)
	w.Ssthresh = maxCwnd
	const pipe = 2000 // segments in a round trip without a queue
	for range 200 {
		w.trip(max(int64(w.segments()/pipe*float64(100*ms)), 100*ms))
		round(fast{}, w, &now)
	}
	near(t, "at rest", w.segments(), pipe+fastAlpha, 0.02)
}

func TestInitialWindow(t *testing.T) {
	for _, x := range []struct{ mss, iw uint32 }{{500, 5000}, {1460, 14600}, {2000, 14600}, {8960, 17920}} {
		if got := initialWindow(x.mss); got != x.iw {
			t.Errorf("MSS %d: %d, want %d", x.mss, got, x.iw)
		}
	}
}
