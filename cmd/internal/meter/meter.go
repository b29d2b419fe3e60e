// Package meter prints what a transfer does: one line per interval and a summary, as text or as JSON lines.
//
// The loop that moves the data writes Counters and never prints; a goroutine of its own reads them and prints, so a
// slow terminal does not hold the data up.
package meter

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Counters have one writer, the data loop. The atomics order nothing: a reader that sees a count a moment late prints
// it in the next line. They have cache lines of their own, since the loop writes them all the time.
type Counters struct {
	_           [64]byte
	Bytes       atomic.Uint64 // payload
	Back        atomic.Uint64 // payload in the other direction
	Connections atomic.Int64
	Moving      atomic.Int64 // of these, those that have moved data
	_           [64]byte
}

// Reading is the state of all counters at one moment. All but Connections and Moving only grow.
type Reading struct {
	Bytes           uint64 // payload
	Segments        uint64 // frames with payload
	Back            uint64 // payload in the other direction
	BackSegments    uint64
	Retransmissions uint64 // segments sent again
	Drops           uint64 // frames that were received and not used
	Connections     int    // open now
	Moving          int    // of these, those that have moved data

	// For the summary: the bytes of the connections that moved the least and the most.
	Least, Most uint64
}

// Meter prints readings to W.
type Meter struct {
	W    io.Writer
	JSON bool
	Both bool // data go both ways: the other direction is printed too
	Read func() Reading
	Fail func() // called once when W fails, as when the reader of a pipe has gone

	mu     sync.Mutex // W, failed, and with them the order of lines
	failed bool
}

// interval is a line per interval in JSON. Rates are those of the interval, counts those since the start.
type interval struct {
	Type            string    `json:"type"`
	Time            time.Time `json:"time"`
	Seconds         float64   `json:"seconds"`
	PPS             uint64    `json:"pps"`
	BPS             uint64    `json:"bps"`
	Connections     int       `json:"connections"`
	Moving          int       `json:"moving"` // connections that have moved data
	Bytes           uint64    `json:"bytes"`
	Retransmissions uint64    `json:"retransmissions"`
	Drops           uint64    `json:"drops"`
	*backRate
}

// backRate is the other direction of an interval, and back that of a summary.
type backRate struct {
	PPS   uint64 `json:"back_pps"`
	BPS   uint64 `json:"back_bps"`
	Bytes uint64 `json:"back_bytes"`
}

type back struct {
	BPS      uint64 `json:"back_bps"`
	Bytes    uint64 `json:"back_bytes"`
	Segments uint64 `json:"back_segments"`
}

// Run prints a line each d until done is closed, and then no more. With d = 0 it prints nothing.
func (m *Meter) Run(d time.Duration, done <-chan struct{}) {
	if d == 0 {
		return
	}
	tick := time.NewTicker(d)
	defer tick.Stop()
	last, at := m.Read(), time.Now()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		r, now := m.Read(), time.Now()
		m.Interval(last, r, now, now.Sub(at))
		last, at = r, now
	}
}

// Interval prints the line for what happened from a to b, in the d up to now.
func (m *Meter) Interval(a, b Reading, now time.Time, d time.Duration) {
	pps, bps := rate(b.Segments-a.Segments, d), rate(8*(b.Bytes-a.Bytes), d)
	var other *backRate
	text := ""
	if m.Both {
		other = &backRate{rate(b.BackSegments-a.BackSegments, d), rate(8*(b.Back-a.Back), d), b.Back}
		text = fmt.Sprintf(" back_pps=%d; back_bps=%d;", other.PPS, other.BPS)
	}
	if m.JSON {
		m.line(interval{"interval", now, d.Seconds(), pps, bps, b.Connections, b.Moving, b.Bytes, b.Retransmissions, b.Drops, other})
		return
	}
	m.printf("pps=%d; bps=%d; connections=%d;%s\n", pps, bps, b.Connections, text)
}

// summary is the last line in JSON.
type summary struct {
	Type            string  `json:"type"`
	Seconds         float64 `json:"seconds"`
	BPS             uint64  `json:"bps"`
	Bytes           uint64  `json:"bytes"`
	Segments        uint64  `json:"segments"`
	Connections     int     `json:"connections"`
	Retransmissions uint64  `json:"retransmissions"`
	Drops           uint64  `json:"drops"`
	Least           uint64  `json:"bytes_least"` // of a connection
	Most            uint64  `json:"bytes_most"`
	CPU             float64 `json:"cpu_seconds"` // of the process so far
	RSS             int64   `json:"rss_bytes"`   // at most, without hugepages
	*back
}

// Summary prints the totals in r of a transfer that took d. verb is "sent" or "received", connections how many there
// have been.
func (m *Meter) Summary(verb string, r Reading, d time.Duration, connections int) {
	bps := rate(8*r.Bytes, d)
	var other *back
	text := ""
	if m.Both {
		other = &back{rate(8*r.Back, d), r.Back, r.BackSegments}
		text = fmt.Sprintf(" back_bytes=%d; back_bps=%d;", other.Bytes, other.BPS)
	}
	if m.JSON {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // cannot fail
		cpu := time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
		m.line(summary{"summary", d.Seconds(), bps, r.Bytes, r.Segments, connections, r.Retransmissions, r.Drops, r.Least, r.Most, cpu, u.Maxrss << 10, other})
		return
	}
	m.printf("%s: bytes=%d; seconds=%.3f; bps=%d; connections=%d; retransmissions=%d; drops=%d;%s\n",
		verb, r.Bytes, d.Seconds(), bps, connections, r.Retransmissions, r.Drops, text)
}

// stream is the line about one finished stream in JSON.
type stream struct {
	Type   string `json:"type"`
	Peer   string `json:"peer"`
	Bytes  uint64 `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Stream prints the SHA-256 (as hexadecimal digits) of the stream from or to peer.
func (m *Meter) Stream(peer string, bytes uint64, sum string) {
	if m.JSON {
		m.line(stream{"stream", peer, bytes, sum})
		return
	}
	m.printf("sha256=%s; bytes=%d; peer=%s;\n", sum, bytes, peer)
}

// Port is the state of a port after it was closed, with what was done to the frames that it received.
type Port struct {
	Before     int    `json:"buffers_before"` // in use when the work began, such as those that wait for frames
	After      int    `json:"buffers_after"`  // and when all connections were closed
	Left       int    `json:"buffers_left"`   // not back in their pools at the end; 0, or they are leaked
	Lost       uint64 `json:"lost"`
	Duplicated uint64 `json:"duplicated"`
	Reordered  uint64 `json:"reordered"`
}

// Closed prints the line about a closed port. As text it is there when there is something to say.
func (m *Meter) Closed(p Port) {
	switch {
	case m.JSON:
		m.line(struct {
			Type string `json:"type"`
			Port
		}{"port", p})
	case p.Lost+p.Duplicated+p.Reordered > 0 || p.Left > 0:
		m.printf("port: lost=%d; duplicated=%d; reordered=%d; buffers-left=%d;\n", p.Lost, p.Duplicated, p.Reordered, p.Left)
	}
}

func (m *Meter) line(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // these structs always marshal
	}
	m.printf("%s\n", b)
}

func (m *Meter) printf(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed {
		return
	}
	if _, err := fmt.Fprintf(m.W, format, args...); err != nil {
		m.failed = true
		if m.Fail != nil {
			m.Fail()
		}
	}
}

// rate is n per second, rounded.
func rate(n uint64, d time.Duration) uint64 {
	if d <= 0 {
		return 0
	}
	return uint64(float64(n)/d.Seconds() + 0.5)
}
