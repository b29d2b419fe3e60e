package meter

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var (
	before = Reading{Bytes: 1000, Segments: 10}
	after  = Reading{Bytes: 2_501_000, Segments: 2510, Retransmissions: 3, Drops: 4, Connections: 5, Moving: 4, Least: 5, Most: 9}
	moment = time.Date(2024, 2, 3, 4, 5, 6, 0, time.UTC)
)

func TestText(t *testing.T) {
	var b strings.Builder
	m := &Meter{W: &b}
	m.Interval(before, after, moment, 2*time.Second)
	m.Stream("10.0.0.2:5", 7, "ab")
	m.Summary("sent", after, 4*time.Second, 6)
	m.Closed(Port{Before: 9, After: 8})
	m.Closed(Port{9, 8, 0, 1, 2, 3})
	require.Equal(t, `pps=1250; bps=10000000; connections=5;
sha256=ab; bytes=7; peer=10.0.0.2:5;
sent: bytes=2501000; seconds=4.000; bps=5002000; connections=6; retransmissions=3; drops=4;
port: lost=1; duplicated=2; reordered=3; buffers-left=0;
`, b.String())
}

func TestJSON(t *testing.T) {
	var b strings.Builder
	m := &Meter{W: &b, JSON: true}
	m.Interval(before, after, moment, 2*time.Second)
	m.Stream("10.0.0.2:5", 7, "ab")
	m.Summary("sent", after, 4*time.Second, 6)
	m.Closed(Port{Before: 9, After: 8})
	m.Closed(Port{9, 8, 0, 1, 2, 3})
	require.Equal(t, `{"type":"interval","time":"2024-02-03T04:05:06Z","seconds":2,"pps":1250,"bps":10000000,"connections":5,"moving":4,"bytes":2501000,"retransmissions":3,"drops":4}
{"type":"stream","peer":"10.0.0.2:5","bytes":7,"sha256":"ab"}
{"type":"summary","seconds":4,"bps":5002000,"bytes":2501000,"segments":2510,"connections":6,"retransmissions":3,"drops":4,"bytes_least":5,"bytes_most":9,"cpu_seconds":C,"rss_bytes":R}
{"type":"port","buffers_before":9,"buffers_after":8,"buffers_left":0,"lost":0,"duplicated":0,"reordered":0}
{"type":"port","buffers_before":9,"buffers_after":8,"buffers_left":0,"lost":1,"duplicated":2,"reordered":3}
`, own.ReplaceAllString(b.String(), `"cpu_seconds":C,"rss_bytes":R`))
}

// own is what the process itself has taken.
var own = regexp.MustCompile(`"cpu_seconds":[0-9.e-]+,"rss_bytes":[1-9][0-9]*`)

func TestBothWays(t *testing.T) {
	a, z := before, after
	a.Back, z.Back, a.BackSegments, z.BackSegments = 100, 1100, 1, 11
	var text, js strings.Builder
	for _, m := range []*Meter{{W: &text, Both: true}, {W: &js, JSON: true, Both: true}} {
		m.Interval(a, z, moment, 2*time.Second)
		m.Summary("sent", z, 4*time.Second, 6)
	}
	require.Contains(t, text.String(), "connections=5; back_pps=5; back_bps=4000;\n")
	require.Contains(t, text.String(), "drops=4; back_bytes=1100; back_bps=2200;\n")
	require.Contains(t, js.String(), `"drops":4,"back_pps":5,"back_bps":4000,"back_bytes":1100}`)
	require.Contains(t, js.String(), `"back_bps":2200,"back_bytes":1100,"back_segments":11}`)
}

type broken struct{ writes int }

func (b *broken) Write([]byte) (int, error) { b.writes++; return 0, errors.New("pipe closed") }

// A reader that has gone ends the program once, and nothing more is written.
func TestWriterFails(t *testing.T) {
	w, failures := &broken{}, 0
	m := &Meter{W: w, Fail: func() { failures++ }}
	for range 3 {
		m.Interval(before, after, moment, time.Second)
	}
	require.Equal(t, 1, failures)
	require.Equal(t, 1, w.writes)
}

func TestRunEnds(t *testing.T) {
	var b strings.Builder
	done, ended := make(chan struct{}), make(chan struct{})
	m := &Meter{W: &b, Read: func() Reading { return Reading{} }}
	go func() {
		m.Run(5*time.Millisecond, done)
		close(ended)
	}()
	time.Sleep(50 * time.Millisecond)
	close(done)
	<-ended
	require.Contains(t, b.String(), "pps=0; bps=0; connections=0;\n")
	m.Run(0, nil) // no interval: nothing, and it returns
}
