// Package latency collects how long each of many things took (round trips, connections) in an HDR histogram, and prints
// a line per interval and a table at the end, as text or as JSON lines; on demand it writes the HdrHistogram log.
//
// Record allocates nothing and makes no system call. Whoever records also prints, between two things: nothing is
// shared, and what the printing takes is in no figure.
package latency

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// What a histogram holds: from a nanosecond to a minute, with three digits.
const (
	longest = int64(time.Minute)
	figures = 3
)

// Recorder has one user at a time. The exported fields are set before Start.
type Recorder struct {
	W     io.Writer
	JSON  bool
	Noun  string        // what is counted: "pings", "conns"
	Size  int           // bytes that each moves there and back
	Every time.Duration // 0: no lines
	Log   io.Writer     // of the HdrHistogram log, or nil
	Fail  func()        // called when W or Log fails

	now, total *hdrhistogram.Histogram
	log        *hdrhistogram.HistogramLogWriter
	begun      time.Time
	last       time.Duration // when the present interval began, since begun
	due        time.Duration // when it ends
	failed     int64
	before     int64 // failed when the interval began
	pause      time.Duration
	broken     bool
}

// Start begins to count.
func (r *Recorder) Start() {
	r.now, r.total = hdrhistogram.New(1, longest, figures), hdrhistogram.New(1, longest, figures)
	r.begun = time.Now()
	if r.due = r.Every; r.Every == 0 {
		r.due = 1<<63 - 1
	}
	if r.Log != nil {
		r.log = hdrhistogram.NewHistogramLogWriter(r.Log)
		ms := r.begun.UnixMilli()
		r.log.SetBaseTime(ms)
		for _, err := range []error{r.log.OutputLogFormatVersion(), r.log.OutputStartTime(ms), r.log.OutputBaseTime(ms), r.log.OutputLegend()} {
			r.check(err)
		}
	}
}

// Now is the time since Start, by which things are measured.
func (r *Recorder) Now() time.Duration { return time.Since(r.begun) }

// Record counts a thing that took d.
func (r *Recorder) Record(d time.Duration) {
	_ = r.now.RecordValue(min(int64(d), longest)) // in the range, so there is no error
}

// Failed counts a thing that went wrong.
func (r *Recorder) Failed() { r.failed++ }

// Due says whether at now the interval is over: then Interval is to be called.
func (r *Recorder) Due(now time.Duration) bool { return now >= r.due }

// Interval prints the line of the interval that ends at now. The time that the next thing is measured from is a later
// one: Now.
func (r *Recorder) Interval(now time.Duration) {
	d := (now - r.last).Seconds()
	n := r.now.TotalCount()
	if r.JSON {
		r.line(interval{"interval", time.Now(), d, per(n, d), r.total.TotalCount() + n, r.failed,
			r.now.ValueAtQuantile(50), r.now.ValueAtQuantile(99), r.now.Max()})
	} else {
		text := fmt.Sprintf("%s=%.0f; p50_us=%s; p99_us=%s; max_us=%s;", r.Noun, per(n, d), us(r.now.ValueAtQuantile(50)),
			us(r.now.ValueAtQuantile(99)), us(r.now.Max()))
		if r.failed > r.before {
			text += fmt.Sprintf(" failed=%d;", r.failed-r.before)
		}
		r.printf("%s\n", text)
	}
	r.turn(now)
	r.last = r.Now()
	r.pause += r.last - now
	r.due = r.last + r.Every
	r.before = r.failed
}

// turn puts the present histogram into the log and into the total, and begins a new one.
func (r *Recorder) turn(now time.Duration) {
	if r.log != nil {
		r.now.SetStartTimeMs(r.begun.Add(r.last).UnixMilli())
		r.now.SetEndTimeMs(r.begun.Add(now).UnixMilli())
		r.check(r.log.OutputIntervalHistogram(r.now))
	}
	r.total.Merge(r.now)
	r.now.Reset()
}

// Summary ends the counting at now and prints the table.
func (r *Recorder) Summary(now time.Duration) {
	r.turn(now)
	d := (now - r.pause).Seconds()
	h := r.total
	if r.JSON {
		s := summary{Type: "summary", Noun: r.Noun, Seconds: d, Rate: per(h.TotalCount(), d), Count: h.TotalCount(), Failed: r.failed, Size: r.Size,
			Mean: h.Mean(), Percentiles: make(map[string]int64)}
		for _, p := range percentiles {
			s.Percentiles[p.name] = p.of(h)
		}
		r.line(s)
		return
	}
	r.printf("%d %s of %d bytes in %.3f s, %.0f per second, %d failed\n", h.TotalCount(), r.Noun, r.Size, d, per(h.TotalCount(), d), r.failed)
	if h.TotalCount() == 0 {
		return
	}
	r.printf("%10s  %12s\n", "percentile", "microseconds")
	for _, p := range percentiles {
		r.printf("%10s  %12s\n", p.name, us(p.of(h)))
	}
	r.printf("%10s  %12s\n", "mean", us(int64(h.Mean())))
}

// percentile is a row of the table.
type percentile struct {
	name string
	at   float64
}

var percentiles = []percentile{{"0", 0}, {"50", 50}, {"90", 90}, {"99", 99}, {"99.9", 99.9}, {"99.99", 99.99}, {"99.999", 99.999}, {"100", 100}}

func (p percentile) of(h *hdrhistogram.Histogram) int64 {
	switch p.at {
	case 0:
		return h.Min()
	case 100:
		return h.Max()
	}
	return h.ValueAtQuantile(p.at)
}

// interval is a line per interval in JSON. Rate is that of the interval, counts those since the start.
type interval struct {
	Type    string    `json:"type"`
	Time    time.Time `json:"time"`
	Seconds float64   `json:"seconds"`
	Rate    float64   `json:"rate"`
	Count   int64     `json:"count"`
	Failed  int64     `json:"failed"`
	P50     int64     `json:"p50_ns"`
	P99     int64     `json:"p99_ns"`
	Max     int64     `json:"max_ns"`
}

// summary is the last line in JSON.
type summary struct {
	Type        string           `json:"type"`
	Noun        string           `json:"what"`
	Seconds     float64          `json:"seconds"`
	Rate        float64          `json:"rate"`
	Count       int64            `json:"count"`
	Failed      int64            `json:"failed"`
	Size        int              `json:"size"`
	Mean        float64          `json:"mean_ns"`
	Percentiles map[string]int64 `json:"percentiles_ns"`
}

func (r *Recorder) line(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // these structs always marshal
	}
	r.printf("%s\n", b)
}

func (r *Recorder) printf(format string, args ...any) {
	if !r.broken {
		_, err := fmt.Fprintf(r.W, format, args...)
		r.check(err)
	}
}

func (r *Recorder) check(err error) {
	if err != nil && !r.broken {
		r.broken = true
		if r.Fail != nil {
			r.Fail()
		}
	}
}

// us is nanoseconds as microseconds.
func us(ns int64) string { return fmt.Sprintf("%.2f", float64(ns)/1000) }

func per(n int64, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return float64(n) / seconds
}
