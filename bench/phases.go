package main

import "time"

// phaseNames are the parts of a lockstep round, in order.
var phaseNames = []string{"phase-write", "phase-input", "phase-read", "phase-ack"}

// clockCost is what reading the clock adds to each part.
func clockCost() time.Duration {
	best := time.Hour
	for range 50 {
		start := time.Now()
		for range 100 {
			_ = time.Now()
		}
		best = min(best, time.Since(start)/100)
	}
	return best
}

// phases is lockstep-copy with the clock read between its parts.
func (l *lockstep) phases(cost time.Duration) sampler {
	return sampler{parts: len(phaseNames), take: func(out []float64) (int, error) {
		var sum [4]time.Duration
		for range rounds {
			x, y := l.flow()
			at := time.Now()
			lap := func(i int) {
				now := time.Now()
				sum[i] += now.Sub(at) - cost
				at = now
			}
			if n, e := l.a.Send(x, l.out); n != len(l.out) {
				return 0, l.short("write", n, len(l.out), "bytes", e)
			}
			lap(0)
			l.b.Turn()
			lap(1)
			if n, e := l.b.Recv(y, l.in); n != len(l.in) {
				return 0, l.short("read", n, len(l.in), "bytes", e)
			}
			lap(2)
			l.a.Turn()
			lap(3)
		}
		for i, d := range sum {
			out[i] = float64(d.Nanoseconds()) / (rounds * burst)
		}
		return rounds * burst, nil
	}}
}

func runPhases(e *env, p point) ([]result, error) {
	w, err := e.stackPair(p.Checksum, 0)
	if err != nil {
		return nil, err
	}
	defer w.close()
	f, err := w.connect(p.Connections, p.MSS)
	if err != nil {
		return nil, err
	}
	all, err := measure(e.ctx, e.each, e.floorAt(p.MSS), newLockstep(w, f, p.MSS).phases(clockCost()).over(p.Connections))
	if err != nil {
		return nil, err
	}
	var out []result
	for i, name := range phaseNames {
		out = append(out, newResult(name, p, all[i]).counted())
	}
	return out, nil
}
