package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
)

// perfLine is a line that ndpip-perf prints with --format json; its type says which fields are set.
type perfLine struct {
	Type            string  `json:"type"` // interval, stream, summary or port
	Seconds         float64 `json:"seconds"`
	PPS             uint64  `json:"pps"`
	BPS             uint64  `json:"bps"`
	Bytes           uint64  `json:"bytes"`
	Segments        uint64  `json:"segments"`
	Retransmissions uint64  `json:"retransmissions"`
	SHA256          string  `json:"sha256"`

	// Of the port: buffers in use, and what was done to received frames.
	BuffersBefore int    `json:"buffers_before"`
	BuffersAfter  int    `json:"buffers_after"`
	BuffersLeft   int    `json:"buffers_left"`
	Lost          uint64 `json:"lost"`
	Duplicated    uint64 `json:"duplicated"`
	Reordered     uint64 `json:"reordered"`
}

// perf is an ndpip-perf that runs.
type perf struct {
	*process
	mu      sync.Mutex
	last    perfLine // interval
	summary perfLine
	port    perfLine
	sums    []string // SHA-256 of each stream that ended
}

// startPerf starts ndpip-perf, in a network namespace if ns is one.
func (d *dev) startPerf(ctx context.Context, limit time.Duration, ns, program string, args ...string) (*perf, error) {
	p := &perf{}
	argv := append([]string{program}, args...)
	argv = append(argv, "--format", "json", "--interval", "0.25")
	if ns != "" {
		argv = append([]string{commandPath("ip"), "netns", "exec", ns}, argv...)
	}
	var err error
	p.process, err = d.start(ctx, job{argv: argv, limit: limit, line: p.read})
	return p, err
}

func (p *perf) read(text string) {
	var l perfLine
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &l) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch l.Type {
	case "interval":
		p.last = l
	case "summary":
		p.summary = l
	case "port":
		p.port = l
	case "stream":
		p.sums = append(p.sums, l.SHA256)
	}
}

// now is the last interval's line.
func (p *perf) now() perfLine {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// hashes are the SHA-256 of the streams that have ended.
func (p *perf) hashes() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sums[:len(p.sums):len(p.sums)]
}

// rate is a line's goodput and segments per second, for people.
func (l perfLine) rate() string {
	return fmt.Sprintf("%.2f Gb/s, %.2f M segments/s", float64(l.BPS)/1e9, float64(l.PPS)/1e6)
}

// stopOrderly ends it with SIGTERM. It has a second for that, and its status is to be 0.
func (p *perf) stopOrderly() error {
	took, status := p.stop()
	switch {
	case status != 0:
		return &jobError{argv: p.job.argv, why: fmt.Sprintf("exit status %d after SIGTERM", status), tail: p.tail()}
	case took > time.Second:
		return &jobError{argv: p.job.argv, why: fmt.Sprintf("took %.1f s to end after SIGTERM; one is allowed", took.Seconds())}
	}
	return nil
}

// follow shows what the receiver gets until the sender has ended, and gives the sender's error. A receiver that ends
// with a failure meanwhile ends the sender too.
func (d *dev) follow(what string, send, recv *perf) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-send.done:
			return send.wait()
		case <-recv.done:
			if err := recv.wait(); err != nil {
				send.stop()
				return err
			}
			return send.wait()
		case <-tick.C:
			d.out.Status("%s: %s", what, recv.now().rate())
		}
	}
}
