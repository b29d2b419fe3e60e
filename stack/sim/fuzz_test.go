package sim

import (
	"encoding/binary"
	"testing"

	"ndpip/stack/link"
)

// FuzzPair lets the fuzzer take the decisions that a scenario is made of: how the wire, the ports, the stacks and the
// applications are. What the bytes do not decide follows from the seed; an odd one
// gives them the lossy profile.
func FuzzPair(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed, []byte(nil))
		var b [64]byte
		for i := 0; i < len(b); i += 8 {
			binary.LittleEndian.PutUint64(b[i:], mix(seed, uint64(i)))
		}
		f.Add(seed, b[:])
	}
	f.Fuzz(func(t *testing.T, seed uint64, b []byte) {
		if len(b) > 1000 {
			t.Skip("no scenario has so many decisions")
		}
		s := Draw(seed, b)
		if seed%2 == 1 {
			s = lossy(s)
		}
		r := Run(s, Options{})
		for _, e := range r.Errors {
			t.Error(e)
		}
		if len(r.Errors) > 0 {
			t.Log(s)
		}
	})
}

// TestRepeats holds the simulator to its promise: everything follows from the seed.
func TestRepeats(t *testing.T) {
	for seed := range uint64(20) {
		a, b := Run(Draw(seed, nil), Options{}), Run(Draw(seed, nil), Options{})
		if a.Hash != b.Hash || a.Time != b.Time || a.Frames != b.Frames {
			t.Errorf("seed %d: %d frames until %v, hash %x; again: %d frames until %v, hash %x", seed, a.Frames, a.Time, a.Hash,
				b.Frames, b.Time, b.Hash)
		}
	}
}

// TestWraps checks that sequence numbers are where Wrap wants them.
func TestWraps(t *testing.T) {
	for i, wrap := range []uint32{0xffffff00, 0x7fffff00} {
		s := Draw(3, nil)
		s.AB, s.BA, s.Down = link.Path{}, link.Path{}, 0
		s.Wrap, s.WrapB = wrap, i == 1
		w := newWorld(s.wrapped())
		w.build(Options{})
		w.run()
		if len(w.check.isns) < 2 || w.check.isns[i]-wrap > 1000 {
			t.Errorf("initial sequence numbers %x, want number %d at %x", w.check.isns, i, wrap)
		}
	}
}
