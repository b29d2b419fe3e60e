package sim

import (
	"testing"
	"time"

	"ndpip/stack"
	"ndpip/stack/link"
)

// TestFillsLink sends one stream over a long fat link and over one of a data centre. From when it is under way it fills
// them, but for what headers take, and nothing is ever sent twice.
func TestFillsLink(t *testing.T) {
	t.Parallel()
	if underRace {
		t.Skip("one thread")
	}
	for _, c := range []struct {
		name        string
		rate        int64
		rtt         time.Duration
		window      int
		start, stop time.Duration // of what is measured
	}{
		{"622 Mb/s, 200 ms", 622e6, 200 * time.Millisecond, 16 << 20, time.Second, 2500 * time.Millisecond},
		{"400 Gb/s, 10 µs", 400e9, 10 * time.Microsecond, 1 << 20, 100 * time.Microsecond, 2 * time.Millisecond},
		{"25 Gb/s, 50 µs", 25e9, 50 * time.Microsecond, 1 << 20, time.Millisecond, 10 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			const mss = 1460
			host := Host{
				Port: link.Port{Buffers: 2048, TxBuffers: 2 * c.window / mss, TxChecksum: true, RxChecksum: true},
				Stack: stack.Config{RcvBuf: c.window, SndBuf: c.window, MTU: 1500, TxBuffers: 2 * c.window / mss,
					RxBuffers: 2048, Seed: 1, Offload: offload},
			}
			path := link.Path{Rate: c.rate, Delay: c.rtt / 2}
			s := &Scenario{Seed: 1, A: host, B: host, AB: path, BA: path, Static: true, Conns: []Conn{{
				A: Side{Write: 1 << 30, WriteMax: 1 << 12, ReadMax: 1, End: Never}, B: Side{WriteMax: 1, ReadMax: 1 << 16, End: Never}}}}
			w := newWorld(s)
			w.endless = true
			w.build(Options{})
			w.until(w.start + c.start)
			before := w.sides[1].read
			w.until(w.start + c.stop)
			got := float64(w.sides[1].read-before) * 8 / (c.stop - c.start).Seconds()
			for _, e := range w.errors {
				t.Error(e)
			}
			most := float64(c.rate) * mss / (mss + 54 + 24)
			t.Logf("%.1f %% of %.0f Mb/s, %d frames", 100*got/most, most/1e6, w.frames)
			if got < 0.95*most {
				t.Error("less than 95 %")
			}
			if n := w.check.again; n > 0 || w.a.Counters().Retransmits > 0 {
				t.Errorf("%d segments were sent again (%d counted)", n, w.a.Counters().Retransmits)
			}
		})
	}
}
