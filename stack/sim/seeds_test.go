package sim

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ndpip/tcp"
)

var (
	seedFlag  = flag.Int64("seed", -1, "run this one `SEED`, and say what the scenario is")
	seedsFlag = flag.Int("seeds", 0, "run `N` seeds instead of the usual number")
	fromFlag  = flag.Int64("from", 0, "the first `SEED`")
)

// usualSeeds is how many seeds a plain test run tries; -short and the race detector each make it a tenth.
const usualSeeds = 2000

func TestSeeds(t *testing.T) {
	sweep(t, usualSeeds, func(seed uint64) *Scenario { return Draw(seed, nil) })
}

// TestSeedsLossy is TestSeeds with the lossy profile: at both ends, or at one of them, under each control.
func TestSeedsLossy(t *testing.T) {
	sweep(t, usualSeeds/2, func(seed uint64) *Scenario { return lossy(Draw(seed, nil)) })
}

// sweep tries the scenarios of many seeds, or of the one that was asked for. Each is one thread in virtual time: as many as
// there are CPUs run at once.
func sweep(t *testing.T, n int, draw func(seed uint64) *Scenario) {
	if *seedFlag >= 0 {
		s := draw(uint64(*seedFlag))
		t.Log(s)
		r := try(t, s)
		t.Logf("%v of virtual time, %d frames, %d bytes read, %d retransmissions, hash %x", r.Time, r.Frames, r.Bytes,
			r.Retransmits, r.Hash)
		return
	}
	t.Parallel()
	if testing.Short() {
		n /= 10
	}
	if underRace {
		n /= 10
	}
	if *seedsFlag > 0 {
		n = *seedsFlag
	}
	var tried, bad, frames, virtual atomic.Int64
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for bad.Load() < 5 {
				i := tried.Add(1) - 1
				if i >= int64(n) {
					return
				}
				seed := uint64(*fromFlag + i)
				begin := time.Now()
				r := try(t, draw(seed))
				if d := time.Since(begin); d > 10*time.Second {
					t.Logf("seed %d took %v: %d frames, %v of virtual time", seed, d, r.Frames, r.Time)
				}
				frames.Add(int64(r.Frames))
				virtual.Add(int64(r.Time))
				if len(r.Errors) > 0 {
					bad.Add(1)
				}
			}
		})
	}
	wait.Wait()
	if bad.Load() >= 5 {
		t.Fatalf("stopped after about %d seeds", tried.Load())
	}
	t.Logf("%d frames, %v of virtual time", frames.Load(), time.Duration(virtual.Load()).Round(time.Second))
	t.Logf("counted %d simulator seeds", n)
}

// lossy gives a scenario's sockets the lossy profile: those of both ends, of A, or of B.
func lossy(s *Scenario) *Scenario {
	names := tcp.ControlNames()
	control := func(i uint64) uint8 {
		id, _ := tcp.ControlNamed(names[i%uint64(len(names))])
		return id
	}
	for i := range s.Conns {
		c := &s.Conns[i]
		k := s.Seed + uint64(i)
		if k%4 != 1 {
			c.A.Opts.Congestion = control(k / 4)
		}
		if k%4 != 2 {
			c.B.Opts.Congestion = control(k / 3)
		}
	}
	return s
}

// try runs a scenario. If it fails, it says how to run it again, and captures the frames.
func try(t *testing.T, s *Scenario) Result {
	t.Helper()
	r := Run(s, Options{})
	if len(r.Errors) == 0 {
		return r
	}
	for _, e := range r.Errors {
		t.Error(e)
	}
	dir := filepath.Join(os.TempDir(), "ndpip-sim")
	_ = os.MkdirAll(dir, 0o755)
	name := func(end string) string { return filepath.Join(dir, fmt.Sprintf("seed-%d-%s.pcap", s.Seed, end)) }
	a, errA := os.Create(name("a"))
	b, errB := os.Create(name("b"))
	if errA == nil && errB == nil {
		again := Run(s, Options{PcapA: a, PcapB: b})
		_, _ = a.Close(), b.Close()
		if again.Hash != r.Hash {
			t.Error("the second run was another one: something does not follow from the seed")
		}
		t.Logf("captures: %s %s", name("a"), name("b"))
	}
	t.Logf("replay: go test ./stack/sim -run '%s$' -v -seed %d", t.Name(), s.Seed)
	return r
}
