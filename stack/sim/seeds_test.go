package sim

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
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
	if *seedFlag >= 0 {
		s := Draw(uint64(*seedFlag), nil)
		t.Log(s)
		r := try(t, s)
		t.Logf("%v of virtual time, %d frames, %d bytes read, %d retransmissions, hash %x", r.Time, r.Frames, r.Bytes,
			r.Retransmits, r.Hash)
		return
	}
	n := usualSeeds
	if testing.Short() {
		n /= 10
	}
	if underRace {
		n /= 10
	}
	if *seedsFlag > 0 {
		n = *seedsFlag
	}
	var frames, bad int
	var virtual time.Duration
	for seed := range n {
		begin := time.Now()
		r := try(t, Draw(uint64(*fromFlag)+uint64(seed), nil))
		if d := time.Since(begin); d > 5*time.Second {
			t.Logf("seed %d took %v: %d frames, %v of virtual time", uint64(*fromFlag)+uint64(seed), d, r.Frames, r.Time)
		}
		frames += r.Frames
		virtual += r.Time
		if len(r.Errors) > 0 {
			if bad++; bad == 5 {
				t.Fatalf("stopped after %d seeds", seed+1)
			}
		}
	}
	t.Logf("%d frames, %v of virtual time", frames, virtual.Round(time.Second))
	t.Logf("counted %d simulator seeds", n)
}

// TestSeedsLossy is TestSeeds with the lossy profile: at both ends, or at one of them, under each control.
func TestSeedsLossy(t *testing.T) {
	if *seedFlag >= 0 {
		s := lossy(Draw(uint64(*seedFlag), nil))
		t.Log(s)
		r := try(t, s)
		t.Logf("%v of virtual time, %d frames, %d bytes read, %d retransmissions, hash %x", r.Time, r.Frames, r.Bytes,
			r.Retransmits, r.Hash)
		return
	}
	n := usualSeeds / 2
	if testing.Short() {
		n /= 10
	}
	if underRace {
		n /= 10
	}
	if *seedsFlag > 0 {
		n = *seedsFlag
	}
	bad := 0
	for seed := range n {
		if r := try(t, lossy(Draw(uint64(*fromFlag)+uint64(seed), nil))); len(r.Errors) > 0 {
			if bad++; bad == 5 {
				t.Fatalf("stopped after %d seeds", seed+1)
			}
		}
	}
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
