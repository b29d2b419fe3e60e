package sim

import (
	"syscall"
	"testing"

	"ndpip/stack"
	"ndpip/stack/link"
)

// TestCrowded fills a window with segments of sizes that are unkind to the receiver's ring, while nobody reads. All
// that was offered is taken: nothing is dropped, and so nothing is sent again.
func TestCrowded(t *testing.T) {
	for name, size := range map[string]func(i int) int{
		"of one byte":              func(int) int { return 1 },
		"small, then as it comes":  func(i int) int { return []int{1, 1 + i*331%1460}[min(i/64, 1)] },
		"small, then by turns":     func(i int) int { return []int{1, 1, 1, 1025}[i%2+2*min(i/64, 1)] },
		"small, then nearly whole": func(i int) int { return []int{1, 1023, 1, 1460}[i%2+2*min(i/64, 1)] },
	} {
		const window = 64 << 10
		host := Host{Port: link.Port{Buffers: 1024, TxBuffers: 1024},
			Stack: stack.Config{MTU: 1500, RcvBuf: window, SndBuf: window, Seed: 1}}
		s := &Scenario{A: host, B: host, Static: true, Conns: []Conn{{A: Side{WriteMax: 1, ReadMax: 1, End: Never, Write: 1},
			B: Side{WriteMax: 1, ReadMax: window, End: Never}}}}
		w := newWorld(s)
		w.build(Options{})
		a, b := w.sides[0], w.sides[1]
		for a.phase != open || b.phase != open {
			b.step(false)
			a.begin()
			w.b.turn()
			w.a.turn()
		}
		for i, full := 0, 0; full < 3; i++ {
			p := make([]byte, size(i))
			fill(p, a.outKey, a.wrote)
			n, e := w.a.Send(a.c, p)
			a.wrote += uint64(n)
			if full++; e != syscall.EAGAIN {
				full = 0
			}
			w.b.turn()
			w.a.turn()
		}
		for b.receive() && b.read < a.wrote {
			w.b.turn()
			w.a.turn()
		}
		drops := w.b.Counters().Drop[stack.DropUnacceptable]
		if a.wrote < window-1460 || b.read != a.wrote || drops > 1 || w.check.again > 0 {
			t.Errorf("segments %s: wrote %d, read %d; %d dropped, %d sent again", name, a.wrote, b.read, drops, w.check.again)
		}
		for _, e := range w.errors {
			t.Errorf("segments %s: %s", name, e)
		}
	}
}
