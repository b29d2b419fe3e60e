package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const countersHelp = `usage: go run ./cmd/dev bench counters [options]

What counting costs: lockstep-copy at MSS 64 with all counters, beside the same with those of the data path compiled out
(-tags ndpip_nocount). Both programs run for 150 ms in turn, on one CPU, pair by pair. There are four of each, in which the
linker has laid the functions out in another order: that alone makes a difference of one or two per cent.

  --pairs N            pairs of runs (48: under two minutes)
  --format text|json   json: one object (text)
`

const (
	layouts = 4
	runTime = 150 * time.Millisecond
)

func counters(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("bench counters", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	n := fs.Int("pairs", 48, "")
	format := fs.String("format", "text", "")
	switch err := fs.Parse(args); {
	case err == flag.ErrHelp:
		fmt.Print(countersHelp)
		return nil
	case err != nil:
		return usagef("counters: %v (--help lists the options)", err)
	case fs.NArg() > 0:
		return usagef("counters: %q is no option (--help lists them)", fs.Arg(0))
	case *n < layouts || *n > 10000:
		return usagef("counters: --pairs %d: want 4 to 10000", *n)
	case *format != "text" && *format != "json":
		return usagef("counters: --format %s: want text or json", *format)
	}
	e := &env{ctx: ctx, out: newScreen(os.Stderr)}
	defer e.out.status("")
	var err error
	if e.dir, err = os.MkdirTemp("", "ndpip-bench-"); err != nil {
		return err
	}
	defer atEnd.add(func() { os.RemoveAll(e.dir) })()
	sum, err := e.countersSum(*n)
	if err != nil {
		return err
	}
	e.out.status("")
	if *format == "json" {
		return json.NewEncoder(os.Stdout).Encode(sum)
	}
	fmt.Printf("%d pairs of runs: %.1f ns per segment with counters, %.1f without (lower quartiles)\n", sum.Pairs, sum.With, sum.Without)
	fmt.Printf("With counters it takes %.3f times as long: the median of the pairs' ratios; quartiles %.3f and %.3f; by layout %.3f\n",
		sum.Ratio, sum.Low, sum.High, sum.Layouts)
	return nil
}

// countersSum is what the pairs say. Times are lower quartiles over the runs, in ns per segment.
type countersSum struct {
	Bench   string    `json:"bench"`
	Pairs   int       `json:"pairs"`
	With    float64   `json:"ns_per_segment"`
	Without float64   `json:"ns_per_segment_uncounted"`
	Ratio   float64   `json:"ratio"` // median of the pairs' ratios
	Low     float64   `json:"ratio_lower_quartile"`
	High    float64   `json:"ratio_upper_quartile"`
	Layouts []float64 `json:"ratio_by_layout"` // medians
}

// countersSum builds the programs and runs the pairs, in the order A B, B A, and so on; the layouts take turns.
func (e *env) countersSum(pairs int) (sum countersSum, err error) {
	var programs [layouts][2]string
	for i := range programs {
		e.out.status("building with and without counters, %d of %d", i+1, layouts)
		for j, tags := range []string{"", "ndpip_nocount"} {
			if programs[i][j], err = e.benchProgram(i+1, tags); err != nil {
				return sum, err
			}
		}
	}
	use := cpus()
	if len(use) == 0 {
		return sum, errors.New("the kernel does not say which CPUs there are")
	}
	back, err := pinned(use[len(use)-1]) // the programs inherit it
	if err != nil {
		return sum, err
	}
	defer back()
	var ratios [layouts][]float64
	var all []float64
	var times [2][]float64
	for k := range pairs {
		e.out.status("pair %d of %d", k+1, pairs)
		i := k % layouts
		first := k / layouts % 2
		var ns [2]float64
		for _, j := range []int{first, 1 - first} {
			if ns[j], err = e.lockstepOnce(programs[i][j]); err != nil {
				return sum, err
			}
			times[j] = append(times[j], ns[j])
		}
		ratios[i] = append(ratios[i], ns[0]/ns[1])
		all = append(all, ns[0]/ns[1])
	}
	slices.Sort(all)
	sum = countersSum{Bench: "counters", Pairs: pairs, With: lower(times[0]), Without: lower(times[1]),
		Ratio: all[pairs/2], Low: all[pairs/4], High: all[pairs*3/4]}
	for _, r := range ratios {
		slices.Sort(r)
		sum.Layouts = append(sum.Layouts, r[len(r)/2])
	}
	return sum, nil
}

// benchProgram builds this program with build tags and a seed for the order of the functions.
func (e *env) benchProgram(seed int, tags string) (string, error) {
	root, err := projectRoot()
	if err != nil {
		return "", err
	}
	tool, err := goTool()
	if err != nil {
		return "", err
	}
	path := filepath.Join(e.dir, "bench"+strconv.Itoa(seed)+tags)
	return path, e.command(5*time.Minute, filepath.Join(root, "bench"),
		tool, "build", "-buildvcs=false", "-tags", tags, "-ldflags", "-randlayout="+strconv.Itoa(seed), "-o", path, ".")
}

// lockstepOnce runs the row in a process of its own and gives its ns per segment.
func (e *env) lockstepOnce(program string) (float64, error) {
	var r struct {
		Ns float64 `json:"ns_per_segment"`
	}
	p, err := startProcess(e.ctx, grace, func(line string) {
		if strings.HasPrefix(line, "{") {
			_ = json.Unmarshal([]byte(line), &r)
		}
	}, "", program, "--only", "lockstep-copy", "--mss", "64", "--connections", "1", "--checksum", "off", "--time", runTime.String(),
		"--format", "json")
	if err != nil {
		return 0, err
	}
	if err := p.wait(); err != nil {
		return 0, err
	}
	if r.Ns <= 0 {
		return 0, p.fail(errors.New("gave no time"))
	}
	return r.Ns, nil
}
