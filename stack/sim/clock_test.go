package sim

import (
	"testing"
	"time"
)

// TestCallAfterPause connects after a long time without a turn: the SYN's timer starts with the call, and not with the
// clock of the last turn.
func TestCallAfterPause(t *testing.T) {
	v := newLive(t, 1)
	v.link.Advance(10 * time.Second)
	v.connect()
	syns := func() uint64 { return v.Counters().TxFrames }
	v.turn()
	v.link.Advance(500 * time.Millisecond)
	v.turn()
	if n := syns(); n != 1 {
		t.Errorf("%d SYNs in half a second", n)
	}
	v.link.Advance(600 * time.Millisecond)
	v.turn()
	if n := syns(); n != 2 {
		t.Errorf("%d SYNs in a little more than a second", n)
	}
	v.end()
}
