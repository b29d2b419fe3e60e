// Command bench measures the data path.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"sort"
	"time"

	"ndpip/stack"
)

func main() {
	mssFlag := flag.Int("mss", 0, "one MSS only")
	conns := flag.Int("connections", 1, "connections")
	d := flag.Duration("time", 300*time.Millisecond, "time per measurement")
	zero := flag.Bool("zero", false, "zero copy")
	prof := flag.String("cpuprofile", "", "profile")
	sum := flag.String("checksum", "off", "off or software")
	flag.Parse()
	if err := eal(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fa, fb, err := ringPair()
	check(err)
	a, b, err := ringPair()
	check(err)
	cfg := stack.Config{Checksum: stack.ChecksumOff}
	if *sum == "software" {
		cfg.Checksum = stack.ChecksumSoftware
	}
	stacks(a, b, cfg)
	if *prof != "" {
		f, err := os.Create(*prof)
		check(err)
		check(pprof.StartCPUProfile(f))
		defer pprof.StopCPUProfile()
	}
	for _, mss := range []int{64, 256, 512, 1460} {
		if *mssFlag != 0 && mss != *mssFlag {
			continue
		}
		ca, cb, err := flows(a, b, *conns, mss)
		check(err)
		f := newFloor(fa.lanes[1], fb.lanes[0], mss)
		l := newLockstep(a, b, ca, cb, mss, *zero)
		q, err := interleave(*d, f.sample, l.sample)
		check(err)
		fmt.Printf("mss %4d conns %d: %6.1f ns (%.1f)  floor %6.1f (%.1f) ratio %.2f (%.2f)\n", mss, *conns, q[1][0], q[1][1], q[0][0], q[0][1], q[1][0]/q[0][0], q[1][1]/q[0][1])
	}
}

// interleave takes samples of all in turn, for about d, and gives the lower quartile and the median of each. In turn, because the
// machine's speed drifts; the lower quartile, because other threads can only make a sample longer.
func interleave(d time.Duration, of ...func() (float64, error)) ([][2]float64, error) {
	all := make([][]float64, len(of))
	for start := time.Now(); time.Since(start) < d; {
		for i, f := range of {
			v, err := f()
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], v)
		}
	}
	q := make([][2]float64, len(of))
	for i, v := range all {
		sort.Float64s(v)
		q[i] = [2]float64{v[len(v)/4], v[len(v)/2]}
	}
	return q, nil
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
