package main

import (
	"context"
	"runtime"
	"slices"
	"time"
)

// burst is how many segments each round of the one-core benchmarks moves.
const burst = 32

// rounds is how many bursts one sample takes: a fraction of a millisecond, so that most samples see no other thread.
const rounds = 64

// sampler is something that can be measured in short samples.
type sampler struct {
	parts int // how many figures a sample gives
	warm  int // samples that are taken before any counts: the first round of each connection makes its rings
	// take moves segments and fills out with the ns per segment of each part. It gives how many segments that was.
	take func(out []float64) (segments int, err error)
}

// one is a sampler with a single figure.
func one(f func() (ns float64, err error)) sampler {
	return sampler{parts: 1, take: func(out []float64) (n int, err error) {
		out[0], err = f()
		return rounds * burst, err
	}}
}

// over is a sampler whose samples go through n connections, a burst for each.
func (s sampler) over(n int) sampler {
	s.warm = 2*n/rounds + 3
	return s
}

const (
	nblocks = 9
	most    = 4096 // samples in a block; more are not kept
	least   = 5    // samples in a block, however long they take
)

// measure takes samples of the floor and of what is measured in turn, for about d, and gives for each part of it the
// figures of nine blocks.
//
// In turn, because the machine's speed drifts. Of a block's samples the lower quartile counts, because other threads
// can only make a sample longer; of the blocks, the median.
func measure(ctx context.Context, d time.Duration, floor, it sampler) ([][]block, error) {
	out := make([]float64, max(floor.parts, it.parts))
	fs := make([]float64, 0, most)
	vs := make([][]float64, it.parts)
	for i := range vs {
		vs[i] = make([]float64, 0, most)
	}
	all := make([][]block, it.parts)
	var before, after runtime.MemStats
	runtime.GC() // what the set-up has left is not collected in between
	for range it.warm {
		if _, err := it.take(out); err != nil {
			return nil, err
		}
	}
	for range nblocks {
		segments, n := 0, 0
		fs = fs[:0]
		for i := range vs {
			vs[i] = vs[i][:0]
		}
		runtime.ReadMemStats(&before)
		for start := time.Now(); n < least || n < most && time.Since(start) < d/nblocks; n++ {
			if _, err := floor.take(out); err != nil {
				return nil, err
			}
			fs = append(fs, out[0])
			k, err := it.take(out)
			if err != nil {
				return nil, err
			}
			segments += k
			for i := range vs {
				vs[i] = append(vs[i], out[i])
			}
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
		}
		runtime.ReadMemStats(&after)
		for i := range vs {
			all[i] = append(all[i], block{lower(vs[i]), lower(fs), float64(after.Mallocs-before.Mallocs) / float64(segments)})
		}
	}
	return all, nil
}

// lower is the lower quartile of v, which it sorts.
func lower(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/4]
}
