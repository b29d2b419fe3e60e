package sim

import (
	"testing"
	"time"

	"ndpip/stack"
	"ndpip/stack/link"
	"ndpip/tcp"
)

// TestLongPathMargin exchanges single bytes on a long path with even round trips. Now and then the peer is 40 ms late
// with its ACK, as peers are that delay it: nothing is sent again.
func TestLongPathMargin(t *testing.T) {
	host := Host{Port: link.Port{}, Stack: stack.Config{MTU: 1500, RcvBuf: 1 << 16, SndBuf: 1 << 16, Seed: 1, TCP: tcp.DefaultParams()}}
	path := link.Path{Delay: 150 * time.Millisecond}
	const every = 700 * time.Millisecond
	s := &Scenario{A: host, B: host, AB: path, BA: path, Static: true, Conns: []Conn{{
		A: Side{WriteMax: 1, ReadMax: 1, End: Never, Write: 1000, WriteEvery: every}, B: Side{WriteMax: 1, ReadMax: 10, End: Never}}}}
	w := newWorld(s)
	w.build(Options{})
	for w.sides[0].phase != open {
		w.until(w.link.Now() + time.Millisecond)
	}
	begin := w.link.Now()
	for i := range 100 {
		w.until(begin + time.Duration(i)*every + 149*time.Millisecond)
		if i > 30 && i%10 == 0 {
			w.b.at = w.link.Now() + 40*time.Millisecond
		}
	}
	if n := w.a.Counters().Retransmits; n > 0 || w.sides[1].read < 90 {
		t.Errorf("%d bytes arrived, %d segments were sent again", w.sides[1].read, n)
	}
	for _, e := range w.errors {
		t.Error(e)
	}
}
