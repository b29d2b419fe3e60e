package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseSizes(t *testing.T) {
	sizes, err := parseSizes("64, 1460")
	require.NoError(t, err)
	require.Equal(t, []int{64, 1460}, sizes)
	for _, bad := range []string{"", "64,", "x", "7", "9001"} {
		_, err := parseSizes(bad)
		require.ErrorContains(t, err, "want sizes", bad)
	}
}

func TestCompare(t *testing.T) {
	dir := t.TempDir()
	sent, out := filepath.Join(dir, "sent"), filepath.Join(dir, "out")
	sum, err := writeRandom(sent, 100_000)
	require.NoError(t, err)
	r := &demo{sum: sum}
	content, err := os.ReadFile(sent)
	require.NoError(t, err)
	require.Len(t, content, 100_000)
	require.NoError(t, os.WriteFile(out, content, 0o600))
	require.NoError(t, r.compare(out, []string{sum}, []string{sum}))
	require.ErrorContains(t, r.compare(out, []string{"00"}), "--sha256 says")
	require.ErrorContains(t, r.compare(out, nil), "--sha256 says")
	content[70_000] ^= 1
	require.NoError(t, os.WriteFile(out, content, 0o600))
	require.ErrorContains(t, r.compare(out, []string{sum}), "arrived with")
}

// TestPerfLines takes the lines of ndpip-perf's JSON, with notes between them.
func TestPerfLines(t *testing.T) {
	d := testDev(t)
	script := `echo 'note: no hugepages'
echo '{"type":"interval","seconds":0.25,"pps":4600000,"bps":2350000000,"connections":1,"bytes":73437500,"retransmissions":0,"drops":0}'
echo '{"type":"stream","peer":"10.0.0.2:5","bytes":7,"sha256":"ab"}'
echo '{"type":"summary","seconds":4,"bps":5002000,"bytes":2501000,"segments":2510,"connections":6,"retransmissions":3,"drops":4}'
trap 'exit 0' TERM; while :; do sleep 0.02; done`
	p, err := d.startPerf(t.Context(), time.Minute, "", "sh", "-c", script, "sh")
	require.NoError(t, err)
	defer p.stop()
	require.Eventually(t, func() bool { return p.now().PPS > 0 }, 5*time.Second, 10*time.Millisecond)
	require.Equal(t, "2.35 Gb/s, 4.60 M segments/s", p.now().rate())
	time.Sleep(50 * time.Millisecond)
	require.NoError(t, p.stopOrderly())
	require.Equal(t, []string{"ab"}, p.sums)
	require.Equal(t, perfLine{Type: "summary", Seconds: 4, BPS: 5002000, Bytes: 2501000, Segments: 2510, Retransmissions: 3}, p.summary)
}
