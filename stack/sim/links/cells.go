package main

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
)

// cell is streams side by side: their controls, and the receive window of each in bytes.
type cell struct {
	experiment string
	window     int
	streams    string // names of controls, with spaces between
}

func newCell(experiment string, window int, streams ...string) cell {
	return cell{experiment, window, strings.Join(streams, " ")}
}

// many is n streams of a control.
func many(control string, n int) []string { return strings.Fields(strings.Repeat(control+" ", n)) }

// figures is what the runs of a cell gave: Mb/s by seed and stream.
type figures [][]float64

// of is a stream's figure.
func (f figures) of(stream int) figure {
	return f.figure(func(run []float64) float64 { return run[stream] })
}

// rest is the figure of all streams but the first together.
func (f figures) rest() figure { return f.figure(func(run []float64) float64 { return sum(run[1:]) }) }

// fairness is Jain's index: 1 is equal, 1/n all for one of n.
func (f figures) fairness() figure {
	return f.figure(func(run []float64) float64 {
		squares := 0.0
		for _, x := range run {
			squares += x * x
		}
		s := sum(run)
		return s * s / float64(len(run)) / max(squares, 1)
	})
}

func (f figures) figure(of func([]float64) float64) figure {
	var v []float64
	for _, run := range f {
		v = append(v, of(run))
	}
	mean := sum(v) / float64(len(v))
	dev := 0.0
	for _, x := range v {
		dev += (x - mean) * (x - mean)
	}
	return figure{mean, math.Sqrt(dev / float64(max(len(v)-1, 1)))}
}

// figure is a mean, and the standard deviation.
type figure struct{ mean, dev float64 }

func (f figure) String() string { return fmt.Sprintf("%4.0f ±%3.0f", f.mean, f.dev) }

func sum(v []float64) (s float64) {
	for _, x := range v {
		s += x
	}
	return s
}

// measure runs the cells with each seed, as many at a time as there are workers: each is one thread in virtual time, whose
// outcome hangs on nothing but its seed.
func (l *lab) measure(cells []cell) map[cell]figures {
	got := make(map[cell]figures, len(cells))
	for _, c := range cells {
		got[c] = make(figures, l.seeds)
	}
	all := len(cells) * l.seeds
	var next atomic.Int64
	var mu sync.Mutex // of what is below
	done := 0
	var wait sync.WaitGroup
	for range l.workers {
		wait.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= all {
					return
				}
				c, seed := cells[i/l.seeds], i%l.seeds
				got[c][seed] = newSim(l.path, c.window, strings.Fields(c.streams), uint64(seed)+1).measure(l.warm, l.d)
				mu.Lock()
				done++
				fmt.Fprintf(l.progress, "\r%s: %d of %d runs ", c.experiment, done, all)
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	fmt.Fprintf(l.progress, "\r%40s\r", "")
	return got
}
