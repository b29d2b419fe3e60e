package stack_test

import (
	"hash/maphash"
	"testing"

	"github.com/stretchr/testify/require"

	"ndpip/stack"
)

// TestArchiveNothingLeaks lets connections of one pair of hosts follow each other, each left in another way, with other
// options, and with state that a next one must not see: with the archive every frame is as it is without, to the byte.
func TestArchiveNothingLeaks(t *testing.T) {
	seed := maphash.MakeSeed()
	run := func(archive int) (sums []uint64, taken uint64) {
		v := newLives(t, 3, archive, func(f []byte) { sums = append(sums, maphash.Bytes(seed, f)) })
		for i := range 300 {
			v.round(t, i%2 == 1)
			v.odd(t, i)
		}
		a, b := v.a.Counters(), v.b.Counters()
		return sums, min(a.ArchiveTaken, b.ArchiveTaken)
	}
	with, taken := run(0)
	without, none := run(-1)
	require.Zero(t, none)
	require.Greater(t, taken, uint64(200))
	require.Equal(t, len(without), len(with), "frames")
	for i := range with {
		if with[i] != without[i] {
			t.Fatalf("frame %d of %d differs", i, len(with))
		}
	}
}

// odd opens a connection and leaves it in one of several ways.
func (v *lives) odd(t *testing.T, i int) {
	o := stack.Options{}
	switch i % 5 {
	case 1:
		o.MaxTxSeg, o.MaxRxSeg = 100, 200
	case 2:
		o.KeepIdle, o.UserTimeout = 1e9, 5e9
	case 3:
		o.TOS, o.TTL = 8, 3
	case 4:
		o.RcvBuf, o.SndBuf = 3000, 3000
	}
	x, e := v.a.Connect(0, v.b.Addr(), 80, o, 9)
	require.Zero(t, e)
	v.turns()
	y := v.b.Accept(v.l)
	require.NotNil(t, y)
	_, e = v.a.Send(x, pattern(i, 700)) // nobody reads it all
	require.Zero(t, e)
	_, e = v.b.Send(y, pattern(i, 5000))
	require.Zero(t, e)
	v.turns()
	switch i % 7 {
	case 0: // with unread text at both ends: RST
	case 1:
		v.a.SetService(x, stack.Service{TOS: 4, TTL: 99})
		v.a.Shutdown(x)
	case 2:
		x.SetLinger0(true)
	case 3:
		x.ShutRead()
		v.b.Shutdown(y)
	case 4:
		v.a.SetKeepAlive(x, 1e9, 1e9, 2)
		x.Watch.Store(uint32(stack.WatchRead))
	case 5:
		v.b.Abort(y)
		y = nil
	case 6:
		for n := 1; n > 0; {
			n, _ = v.a.Recv(x, v.in)
			v.turns()
		}
	}
	v.turns()
	v.a.Close(x)
	if y != nil {
		v.b.Close(y)
	}
	v.turns()
	v.turns()
	if u := v.b.Usage(); u.RingBytes != 0 || u.Unread != 0 {
		t.Fatalf("after connection %d: %+v", i, u)
	}
}

// TestArchiveBounds: so many blocks are kept, for so long, and none if it is off.
func TestArchiveBounds(t *testing.T) {
	for _, c := range []struct{ config, want int }{{-1, 0}, {4, 4}, {0, 32}} {
		v := newLives(t, 32, c.config, nil)
		for range 10 {
			v.round(t, false)
		}
		for _, s := range []*stack.Stack{v.a, v.b} {
			n := s.Counters()
			if n.Archived != uint64(c.want) || (c.want == 32) != (n.ArchiveTaken >= 9*32) || (c.want == 4) != (n.ArchiveDropped > 0) {
				t.Errorf("Archive %d: %d archived, %d taken, %d dropped", c.config, n.Archived, n.ArchiveTaken, n.ArchiveDropped)
			}
		}
		*v.tsc += 11e9
		v.turns()
		for _, s := range []*stack.Stack{v.a, v.b} {
			if n := s.Counters(); n.Archived != 0 || c.want == 32 && n.ArchiveDropped != 32 {
				t.Errorf("Archive %d: after 11 s %d archived, %d dropped", c.config, n.Archived, n.ArchiveDropped)
			}
			if u := s.Usage(); u.RingBytes != 0 {
				t.Errorf("Archive %d: after 11 s %d bytes of rings", c.config, u.RingBytes)
			}
		}
	}
}
