package main

import (
	"bytes"
	"math/rand/v2"
)

// period is the length after which the pattern that send makes repeats. It is a prime, so that a segment that is lost,
// doubled or moved does not fit by chance whatever its length; and the pattern stays in a CPU's second-level cache.
const period = 65521

// pattern is the byte stream that send makes, so far that a piece of at most n bytes can be taken at every offset.
type pattern []byte

func newPattern(n int) pattern {
	p := make([]byte, period+n)
	r := rand.New(rand.NewPCG(0x6e64, 0x706970))
	for i := range period {
		p[i] = byte(r.Uint32())
	}
	for i := period; i < len(p); i += copy(p[i:], p[:period]) {
	}
	return p
}

// at is the n bytes at pos of the stream.
func (p pattern) at(pos uint64, n int) []byte {
	off := int(pos % period)
	return p[off : off+n]
}

// differs gives the offset in b of the first byte that differs from the stream at pos, or -1.
func (p pattern) differs(pos uint64, b []byte) int {
	most := len(p) - period
	for done := 0; done < len(b); {
		piece := b[done:min(len(b), done+most)]
		want := p.at(pos+uint64(done), len(piece))
		if !bytes.Equal(piece, want) {
			for i := range piece {
				if piece[i] != want[i] {
					return done + i
				}
			}
		}
		done += len(piece)
	}
	return -1
}
