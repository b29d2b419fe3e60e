package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchmath"
)

// The units of a result in the benchmark format. The ratio is what is compared: the machine's speed is in both its
// terms.
const (
	unitTime  = "ns/segment"
	unitFloor = "floor-ns/segment"
	unitRatio = "x-floor"
	unitAlloc = "allocs/segment"
)

// benchName is a result's name as Go's benchmarks write theirs: LockstepCopy/mss=64/connections=1/checksum=off.
func (r result) benchName() string {
	var b strings.Builder
	for word := range strings.SplitSeq(r.Bench, "-") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	if r.MSS != 0 {
		fmt.Fprintf(&b, "/mss=%d", r.MSS)
	}
	if r.Connections != 0 {
		fmt.Fprintf(&b, "/connections=%d", r.Connections)
	}
	if r.Checksum != "" {
		fmt.Fprintf(&b, "/checksum=%s", r.Checksum)
	}
	return b.String()
}

// save writes the results in the benchmark format, a line per block, so that benchstat sees how much they vary.
func save(path string, results []result) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	buf := bufio.NewWriter(f)
	w := benchfmt.NewWriter(buf)
	config := []benchfmt.Config{
		{Key: "goos", Value: []byte(runtime.GOOS), File: true},
		{Key: "goarch", Value: []byte(runtime.GOARCH), File: true},
		{Key: "pkg", Value: []byte("ndpip/bench"), File: true},
		{Key: "cpu", Value: []byte(cpuModel()), File: true},
		{Key: "date", Value: []byte(time.Now().UTC().Format(time.RFC3339)), File: true},
	}
	for _, r := range results {
		for _, b := range r.blocks {
			res := &benchfmt.Result{Config: config, Name: benchfmt.Name(r.benchName()), Iters: 1,
				Values: []benchfmt.Value{{Value: b.ns, Unit: unitTime}}}
			if b.floor > 0 {
				res.Values = append(res.Values, benchfmt.Value{Value: b.floor, Unit: unitFloor}, benchfmt.Value{Value: b.ns / b.floor, Unit: unitRatio})
			}
			if r.Allocs != nil {
				res.Values = append(res.Values, benchfmt.Value{Value: b.allocs, Unit: unitAlloc})
			}
			if err := w.Write(res); err != nil {
				return err
			}
		}
	}
	if err := buf.Flush(); err != nil {
		return err
	}
	return f.Close()
}

func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// stored is a run that was kept: the blocks' figures by name and unit.
type stored struct {
	path   string
	date   string
	values map[string]map[string][]float64
}

// asPrinted are a result's figures in the units in which they were written: the reader makes seconds of nanoseconds.
func asPrinted(r *benchfmt.Result) map[string]float64 {
	out := map[string]float64{}
	for _, v := range r.Values {
		if v.OrigUnit != "" {
			out[v.OrigUnit] = v.OrigValue
		} else {
			out[v.Unit] = v.Value
		}
	}
	return out
}

func load(path string) (*stored, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s := &stored{path: path, values: map[string]map[string][]float64{}}
	r := benchfmt.NewReader(f, path)
	for r.Scan() {
		switch rec := r.Result().(type) {
		case *benchfmt.SyntaxError:
			return nil, rec
		case *benchfmt.Result:
			s.date = rec.GetConfig("date")
			name := string(rec.Name.Full())
			if s.values[name] == nil {
				s.values[name] = map[string][]float64{}
			}
			for unit, v := range asPrinted(rec) {
				s.values[name][unit] = append(s.values[name][unit], v)
			}
		}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	if len(s.values) == 0 {
		return nil, fmt.Errorf("%s holds no benchmark: give a file that --save has written", path)
	}
	return s, nil
}

// printComparison shows what has changed: the ratio to the floor where there is one, else the time.
func printComparison(w io.Writer, old *stored, results []result) {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"bench", "MSS", "conns", "checksum", "unit", "before", "now", "change", "p"})
	for _, r := range results {
		was, ok := old.values[r.benchName()]
		if !ok {
			t.AppendRow(table.Row{r.Bench, whole(r.MSS), whole(r.Connections), r.Checksum, "", "", "", "new", ""})
			continue
		}
		unit, now := unitRatio, values(r.blocks, func(b block) float64 { return b.ns / b.floor })
		if r.FloorNs == 0 || len(was[unitRatio]) == 0 {
			unit, now = unitTime, values(r.blocks, func(b block) float64 { return b.ns })
		}
		a, b := benchmath.NewSample(was[unit], &benchmath.DefaultThresholds), benchmath.NewSample(now, &benchmath.DefaultThresholds)
		if len(a.Values) == 0 {
			continue
		}
		x, y := benchmath.AssumeNothing.Summary(a, 0.95).Center, benchmath.AssumeNothing.Summary(b, 0.95).Center
		cmp := benchmath.AssumeNothing.Compare(a, b)
		change := "~"
		if cmp.P <= cmp.Alpha {
			change = fmt.Sprintf("%+.1f%%", 100*(y/x-1))
		}
		t.AppendRow(table.Row{r.Bench, whole(r.MSS), whole(r.Connections), r.Checksum, unit,
			fmt.Sprintf("%.2f", x), fmt.Sprintf("%.2f", y), change, fmt.Sprintf("%.3f", cmp.P)})
	}
	fmt.Fprintf(w, "compared with %s of %s (~: no difference that these samples show)\n", old.path, old.date)
	t.Render()
}

func values(blocks []block, of func(block) float64) []float64 {
	out := make([]float64, len(blocks))
	for i, b := range blocks {
		out[i] = of(b)
	}
	return out
}
