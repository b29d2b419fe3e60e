package latency

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/stretchr/testify/require"
)

// The table, the JSON and the log tell the same of the same things.
func TestFigures(t *testing.T) {
	for _, asJSON := range []bool{false, true} {
		var out, log bytes.Buffer
		r := &Recorder{W: &out, JSON: asJSON, Noun: "pings", Size: 64, Every: time.Second, Log: &log}
		r.Start()
		for i := range 1000 {
			r.Record(time.Duration(i+1) * time.Microsecond)
		}
		require.False(t, r.Due(time.Second-1))
		require.True(t, r.Due(time.Second))
		r.Interval(time.Second)
		r.Record(2 * time.Minute) // more than it holds: counted as a minute
		r.Failed()
		r.Summary(r.Now() + 1)
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if asJSON {
			var s summary
			require.NoError(t, json.Unmarshal([]byte(lines[1]), &s))
			require.Equal(t, int64(1001), s.Count)
			require.Equal(t, int64(1), s.Failed)
			require.InEpsilon(t, 500_000, s.Percentiles["50"], 0.01)
			require.InEpsilon(t, 990_000, s.Percentiles["99"], 0.01)
			require.InEpsilon(t, int64(time.Minute), s.Percentiles["100"], 0.01)
		} else {
			require.Equal(t, "pings=1000; p50_us=500.22; p99_us=990.21; max_us=1000.45;", lines[0])
			require.Contains(t, out.String(), "1001 pings of 64 bytes in ")
			require.Regexp(t, `(?m)^ +50 +501\.25$`, out.String())
		}
		in := hdrhistogram.NewHistogramLogReader(&log)
		n := int64(0)
		for {
			h, err := in.NextIntervalHistogram()
			require.NoError(t, err)
			if h == nil {
				break
			}
			n += h.TotalCount()
		}
		require.Equal(t, int64(1001), n)
	}
}

func TestNoAllocation(t *testing.T) {
	r := &Recorder{W: &bytes.Buffer{}, Every: time.Hour}
	r.Start()
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		now := r.Now()
		if r.Due(now) {
			t.Error("due")
		}
		r.Record(r.Now() - now)
	}))
}
