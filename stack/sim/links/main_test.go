package main

import (
	"strings"
	"testing"
	"time"

	"ndpip/stack/link"
)

// Two Reno streams on a short path fill it and share it.
func TestRun(t *testing.T) {
	path := link.Path{Rate: 50e6, Delay: 5 * time.Millisecond, Queue: 60}
	got := newRun(path, 1<<20, many("reno", 2)).measure(5*time.Second, 20*time.Second)
	if s := sum(got); s < 42 || s > 50 || min(got[0], got[1]) < 8 {
		t.Errorf("%.1f Mb/s of 50", got)
	}
}

func TestVersus(t *testing.T) {
	var out, csv strings.Builder
	l := &lab{out: &out, csv: &csv, path: link.Path{Rate: 20e6, Delay: 10 * time.Millisecond, Queue: 50}, warm: time.Second,
		d: 2 * time.Second, window: 1 << 20, controls: []string{"cubic"}}
	l.versus()
	if n := strings.Count(csv.String(), "\n"); n != 4 || !strings.Contains(out.String(), "cubic ") {
		t.Errorf("%d figures:\n%s%s", n, out.String(), csv.String())
	}
}
