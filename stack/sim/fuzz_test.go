package sim

import (
	"encoding/binary"
	"testing"
)

// FuzzPair lets the fuzzer take the decisions that a scenario is made of: how the wire, the ports, the stacks and the
// applications are. What the bytes do not decide follows from the seed.
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
