package stack_test

import (
	"testing"
	"time"

	"ndpip/stack"
	"ndpip/stack/link"
)

// A port whose ring is full for a while costs time, not frames: a crowd that connects at once is answered to the last
// one, without anybody's timer.
func TestPortRefuses(t *testing.T) {
	crowd := 3000
	if testing.Short() {
		crowd = 300
	}
	p := newPair(t, link.Config{A: link.Port{TxRing: 8, Buffers: 1 << 14, TxBuffers: 1 << 13}, B: link.Port{TxRing: 8, Buffers: 1 << 14, TxBuffers: 1 << 13},
		AB: link.Path{Rate: 1e8, Delay: 10 * time.Microsecond}, BA: link.Path{Rate: 1e8, Delay: 10 * time.Microsecond}})
	l, e := p.b.Listen(0, 80, crowd, stack.Options{}, 0)
	if e != 0 {
		t.Fatal(e)
	}
	for range crowd {
		if _, e := p.a.Connect(0, peerIP, 80, stack.Options{}, 0); e != 0 {
			t.Fatal(e)
		}
	}
	accepted := 0
	// 3000 SYNs of 62 bytes and what a frame takes besides: 21 ms each way.
	p.run(60*time.Millisecond, func() bool {
		for p.b.Accept(l) != nil {
			accepted++
		}
		return accepted == crowd
	})
	if accepted != crowd {
		t.Errorf("%d of %d connections came up", accepted, crowd)
	}
	for _, s := range []*side{p.a, p.b} {
		if c := s.Counters(); c.TxDropped != 0 || c.Drop[stack.DropBacklog] != 0 {
			t.Errorf("%v: %d frames dropped, %d SYNs", s.end, c.TxDropped, c.Drop[stack.DropBacklog])
		}
	}
	p.b.Unlisten(l)
}
