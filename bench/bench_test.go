package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestOptions(t *testing.T) {
	for _, bad := range []string{"--only nothing", "--mss x", "--mss 0", "--connections 1,", "--format xml", "--checksum port", "--time -1s", "row", "--nope"} {
		_, err := parse(strings.Fields(bad))
		var usage usageError
		if !errors.As(err, &usage) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for line, want := range map[string]int{
		"": len(allRows()), "--only lockstep --mss 64 --connections 1 --checksum off": 2, "--only lockstep-copy --quick": 7,
		"--only linux-veth --mss 1460": 2, "--only stage": 1, "--only floor-hot,memif --mss 64 --connections 1": 3,
	} {
		o, err := parse(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		if got := len(o.choose(allRows())); got != want {
			t.Errorf("%q leaves %d rows and not %d", line, got, want)
		}
	}
}

// TestQuick adds up the time of a quick run, with what starting processes and opening connections takes.
func TestQuick(t *testing.T) {
	var sum time.Duration
	for _, r := range allRows() {
		if r.quick {
			sum += r.kind.quick + 100*time.Millisecond
			if r.kind.name == "memif" || r.kind.name == "linux-veth" {
				sum += time.Second
			}
		}
	}
	if sum > 25*time.Second {
		t.Errorf("a quick run takes %s: 45 s are promised, with the building and on a machine that does other things too", sum)
	}
}

func blocksOf(ns ...float64) (b []block) {
	for _, v := range ns {
		b = append(b, block{ns: v, floor: 10, allocs: 0})
	}
	return b
}

func TestResult(t *testing.T) {
	r := newResult("lockstep-copy", point{64, 1, "off"}, blocksOf(20, 30, 25, 100, 24)).counted()
	if r.NsPerSegment != 25 || r.Ratio != 2.5 || r.Gbps != 64*8/25.0 || *r.Allocs != 0 || r.Spread != (30-24)/2.0/25 {
		t.Errorf("%+v", r)
	}
	var b bytes.Buffer
	if err := r.print(&b); err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"bench", "mss", "connections", "checksum", "ns_per_segment", "floor_ns", "ratio", "gbps", "allocs_per_segment"} {
		if _, ok := m[key]; !ok {
			t.Errorf("%s has no %s", b.String(), key)
		}
	}
}

// TestStored keeps a run and compares another with it.
func TestStored(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.txt")
	p := point{64, 1, "off"}
	slow := newResult("lockstep-copy", p, blocksOf(30, 30.1, 30.2, 30.3, 30.4, 30.5, 30.6, 30.7, 30.8)).counted()
	other := newResult("linux-veth", point{1460, 1, "kernel"}, []block{{ns: 2000}, {ns: 2001}})
	if err := save(path, []result{slow, other}); err != nil {
		t.Fatal(err)
	}
	before, err := load(path)
	if err != nil {
		t.Fatal(err)
	}
	if v := before.values["LockstepCopy/mss=64/connections=1/checksum=off"]; len(v[unitTime]) != 9 || v[unitRatio][0] != 3 {
		t.Errorf("%+v", before.values)
	}
	fast := newResult("lockstep-copy", p, blocksOf(15, 15.1, 15.2, 15.3, 15.4, 15.5, 15.6, 15.7, 15.8)).counted()
	var b bytes.Buffer
	printComparison(&b, before, []result{fast, other})
	if out := b.String(); !strings.Contains(out, "-49.3%") || !strings.Contains(out, "~") {
		t.Error(out)
	}
	if _, err := load(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there was read")
	}
}

func TestIntervals(t *testing.T) {
	s := &perfSide{}
	s.line(`{"type":"interval","seconds":0.1,"pps":5,"bps":5,"connections":0}`)
	for range 19 {
		s.line(`{"type":"interval","seconds":0.1,"pps":1000,"bps":512000,"connections":2}`)
	}
	s.line("a note")
	lines := s.steady(2)
	if len(lines) != 18 {
		t.Fatalf("%d intervals", len(lines))
	}
	blocks, rates := parts(lines, 20)
	if len(blocks) != 9 || blocks[0].ns < 999999 || blocks[0].ns > 1000001 || blocks[0].floor != 20 || rates[0].ns < 511e-6 || rates[0].ns > 513e-6 {
		t.Errorf("%v %v", blocks, rates)
	}
}

func TestSpinLines(t *testing.T) {
	h := newHistogram()
	if err := readSpin(h, "30 1000\n150000 2\n"); err != nil {
		t.Fatal(err)
	}
	if h.TotalCount() != 1002 || above(h, 100*time.Microsecond) != 2 || above(h, time.Millisecond) != 0 {
		t.Errorf("%d values, %d above 100 µs", h.TotalCount(), above(h, 100*time.Microsecond))
	}
	if readSpin(h, "x\n") == nil {
		t.Error("nonsense was taken for a histogram")
	}
}
