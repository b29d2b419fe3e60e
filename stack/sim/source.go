package sim

import (
	"math"
	"math/rand/v2"
	"time"
)

// source is where a scenario's decisions come from: from bytes as long as there are any (a fuzzer's), and then from a
// generator with a seed.
type source struct {
	bytes []byte
	rnd   *rand.Rand
}

func newSource(seed uint64, b []byte) *source {
	return &source{b, rand.New(rand.NewPCG(seed, 0x5eed))}
}

// below draws a number from 0 to n-1.
func (s *source) below(n int) int {
	if n <= 1 {
		return 0
	}
	v := uint64(0)
	for w := n - 1; w > 0; w >>= 8 {
		if len(s.bytes) == 0 {
			return s.rnd.IntN(n)
		}
		v = v<<8 | uint64(s.bytes[0])
		s.bytes = s.bytes[1:]
	}
	return int(v % uint64(n))
}

// between draws a number from lo to hi, both included.
func (s *source) between(lo, hi int) int { return lo + s.below(hi-lo+1) }

// log draws a number from lo to hi such that each power of two is as likely as another. lo is at least 1.
func (s *source) log(lo, hi int) int {
	f := float64(s.below(1<<16)) / (1<<16 - 1)
	v := float64(lo) * math.Pow(float64(hi)/float64(lo), f)
	return min(max(int(v), lo), hi)
}

// duration is log for times.
func (s *source) duration(lo, hi time.Duration) time.Duration {
	return time.Duration(s.log(int(lo), int(hi)))
}

// one draws true once in n.
func (s *source) one(n int) bool { return s.below(n) == 0 }

// pick draws one of several values; one that is listed twice is twice as likely.
func pick[T any](s *source, v ...T) T { return v[s.below(len(v))] }

// mix is a hash of two words (the finalizer of MurmurHash3).
func mix(a, b uint64) uint64 {
	x := a*0x9e3779b97f4a7c15 + b
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// fill writes the bytes of a stream from offset off on. Each stream has its key, and the byte at each offset is as
// good as random, so no two places can be taken for each other.
func fill(b []byte, key, off uint64) {
	for len(b) > 0 {
		w := mix(key, off>>3) >> (8 * (off & 7))
		for i := off & 7; i < 8 && len(b) > 0; i++ {
			b[0] = byte(w)
			w >>= 8
			b = b[1:]
			off++
		}
	}
}

// differs gives the first index at which b is not the stream from off on; -1 if it is.
func differs(b []byte, key, off uint64) int {
	for i := 0; i < len(b); {
		w := mix(key, off>>3) >> (8 * (off & 7))
		for j := off & 7; j < 8 && i < len(b); j++ {
			if b[i] != byte(w) {
				return i
			}
			w >>= 8
			i++
			off++
		}
	}
	return -1
}
