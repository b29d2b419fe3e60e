package main

import (
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ndpip/stack/link"
)

// Two Reno streams on a short path fill it and share it.
func TestShare(t *testing.T) {
	path := link.Path{Rate: 10e6, Delay: 5 * time.Millisecond, Queue: 15}
	got := newSim(path, 1<<20, many("reno", 2), 1).measure(2*time.Second, 8*time.Second)
	if s := sum(got); s < 8.4 || s > 10 || min(got[0], got[1]) < 1.6 {
		t.Errorf("%.1f Mb/s of 10", got)
	}
}

// small is a lab on a short path.
func small() *lab {
	d := 500 * time.Millisecond
	if testing.Short() {
		d = 200 * time.Millisecond
	}
	return &lab{path: link.Path{Rate: 10e6, Delay: 10 * time.Millisecond, Queue: 50, Loss: 1e-2}, warm: d, d: d, window: 1 << 18,
		controls: []string{"cubic", "fast"}, seeds: 2, crowd: 2, windows: []int{1}, workers: 2, progress: &strings.Builder{}}
}

// Each experiment has a figure of each run for each place of its table and of its picture, and no link carries more than it
// can.
func TestExperiments(t *testing.T) {
	rows := map[string]int{"versus": 3, "crowd": 2, "window": 1, "sharing": 6}
	for _, e := range experiments {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			l := small()
			cells := e.cells(l)
			got := l.measure(cells)
			for _, c := range cells {
				require.Len(t, got[c], l.seeds)
				require.NotEqual(t, got[c][0], got[c][1], "%v: other frames are lost with another seed", c)
				for _, run := range got[c] {
					require.Len(t, run, len(strings.Fields(c.streams)))
					require.InDelta(t, 8, sum(run), 7.9, "%v: what waited for a repair may come all at once", c)
				}
			}
			var out strings.Builder
			e.table(l, got, &out)
			require.Equal(t, 3+rows[e.name], strings.Count(out.String(), "\n"), out.String())
			p := e.picture(l, got)
			for _, s := range p.Series {
				if !s.Faint {
					require.Len(t, s.Points, len(p.Places), s.Name)
				}
				for _, at := range s.Points {
					require.LessOrEqual(t, at.Low, at.Y)
					require.Less(t, at.Place, len(p.Places))
				}
			}
			if e.name == "versus" || e.name == "crowd" { // of the others nothing is published at these places
				require.True(t, p.Series[len(p.Series)-1].Faint, "what was published is there")
			}
		})
	}
}

// A seed makes a run what it is.
func TestRepeats(t *testing.T) {
	l := small()
	c := []cell{newCell("sharing", 1<<18, "cubic", "reno")}
	require.Equal(t, l.measure(c), l.measure(c))
}

func TestKeep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	var out, fault strings.Builder
	require.NoError(t, run(strings.Fields("--only sharing --controls fast --rate 5000000 --rtt 10ms --time 300ms --warmup 200ms --seeds 2 --window 262144 --out "+dir), &out, &fault))
	tables, err := os.ReadFile(filepath.Join(dir, "tables.txt"))
	require.NoError(t, err)
	require.Equal(t, out.String(), string(tables))
	f, err := os.Open(filepath.Join(dir, "figures.csv"))
	require.NoError(t, err)
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	require.Len(t, lines, 1+3*2*2, "three pairs, two seeds, two streams")
}

func TestUsage(t *testing.T) {
	for _, bad := range []string{"--only nothing", "--controls vegas", "--seeds 0", "--time 0s", "--rate 3", "--loss 1", "--window 10", "--queue 0", "word", "--nope"} {
		err := run(strings.Fields(bad), &strings.Builder{}, &strings.Builder{})
		var usage usageError
		require.True(t, errors.As(err, &usage), "%s: %v", bad, err)
	}
	err := run(strings.Fields("--only sharing --out /dev/null/x"), &strings.Builder{}, &strings.Builder{})
	var usage usageError
	require.Error(t, err)
	require.False(t, errors.As(err, &usage), "a folder that cannot be made is the machine's fault")
}
