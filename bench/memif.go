package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// perfLine is an interval's line of ndpip-perf --format json.
type perfLine struct {
	Type        string  `json:"type"`
	Seconds     float64 `json:"seconds"`
	PPS         float64 `json:"pps"`
	BPS         float64 `json:"bps"`
	Connections int     `json:"connections"`
}

// perfSide is one of the two programs.
type perfSide struct {
	*process
	mu        sync.Mutex
	intervals []perfLine
}

func (s *perfSide) line(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var l perfLine
	if strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &l) == nil && l.Type == "interval" {
		s.intervals = append(s.intervals, l)
	}
}

// steady gives the intervals in which all connections were open, without the first, which has the start in it.
func (s *perfSide) steady(connections int) []perfLine {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []perfLine
	for _, l := range s.intervals {
		if l.Connections == connections {
			out = append(out, l)
		}
	}
	return out[min(1, len(out)):]
}

// perfProgram builds ndpip-perf.
func (e *env) perfProgram() (string, error) {
	if e.perf != "" {
		return e.perf, nil
	}
	root, err := projectRoot()
	if err != nil {
		return "", err
	}
	tool, err := goTool()
	if err != nil {
		return "", err
	}
	perf := filepath.Join(e.dir, "ndpip-perf")
	e.out.status("building ndpip-perf")
	if err := e.command(grace, root, tool, "build", "-buildvcs=false", "-o", perf, "./cmd/ndpip-perf"); err != nil {
		return "", err
	}
	e.perf = perf
	return perf, nil
}

// interval is how often ndpip-perf prints.
const interval = 100 * time.Millisecond

func runMemif(name string, how ...string) func(e *env, p point) ([]result, error) {
	return func(e *env, p point) ([]result, error) { return memif(e, p, name, how) }
}

func memif(e *env, p point, name string, how []string) ([]result, error) {
	perf, err := e.perfProgram()
	if err != nil {
		return nil, err
	}
	use := cpus()
	if len(use) < 2 {
		return nil, errSkip{"it needs two CPUs"}
	}
	floor, err := e.floorNow(p.MSS)
	if err != nil {
		return nil, err
	}
	pairs++
	socket := filepath.Join(e.dir, fmt.Sprintf("memif%d", pairs))
	start := func(side *perfSide, verb string, cpu int, more ...string) error {
		args := append([]string{perf, verb, "--wire", "memif:" + socket, "--mss", strconv.Itoa(p.MSS), "--checksum", p.Checksum,
			"--cpu", strconv.Itoa(cpu), "--format", "json", "--interval", strconv.FormatFloat(interval.Seconds(), 'f', -1, 64)}, more...)
		if args = append(args, how...); strings.HasPrefix(name, "worker-") {
			args = append(args, "--worker-cpu", strconv.Itoa(cpu))
		}
		var err error
		side.process, err = startProcess(e.ctx, e.each+grace/2, side.line, "", args...)
		return err
	}
	recv, send := &perfSide{}, &perfSide{}
	if err := start(recv, "recv", use[1]); err != nil {
		return nil, err
	}
	defer recv.stop()
	// Both start at once: the sender waits for the receiver.
	if err := start(send, "send", use[0], "--connections", strconv.Itoa(p.Connections),
		"--connect-timeout", strconv.FormatFloat((grace/3).Seconds(), 'f', -1, 64),
		"--timeout", strconv.FormatFloat(e.each.Seconds(), 'f', -1, 64)); err != nil {
		return nil, err
	}
	defer send.stop()
	select {
	case <-send.done:
	case <-recv.done:
		send.kill()
		return nil, recv.fail(errors.New("ended before the sender"))
	}
	if err := send.wait(); err != nil {
		return nil, fmt.Errorf("%w\n%w", err, recv.fail(errors.New("the receiver")))
	}
	after, err := e.floorNow(p.MSS)
	if err != nil {
		return nil, err
	}
	floor = (floor + after) / 2
	blocks, rates := parts(recv.steady(p.Connections), floor)
	if len(blocks) == 0 {
		return nil, fmt.Errorf("the receiver got next to nothing while %d connections were open: %w\n%w", p.Connections,
			recv.fail(errors.New("the receiver's last lines")), send.fail(errors.New("the sender's last lines")))
	}
	r := newResult(name, p, blocks)
	r.Gbps = quartiles(rates, func(b block) float64 { return b.ns })[1] // segments may be shorter than the MSS
	return []result{r}, nil
}

// parts makes blocks of the receiver's intervals: ns per segment, and Gb/s.
func parts(lines []perfLine, floor float64) (blocks, rates []block) {
	size := max(1, len(lines)/nblocks)
	for len(lines) >= size && len(lines) > 0 {
		var seconds, segments, bits float64
		for _, l := range lines[:size] {
			seconds += l.Seconds
			segments += l.PPS * l.Seconds
			bits += l.BPS * l.Seconds
		}
		if lines = lines[size:]; segments < 1 {
			continue // the machine was elsewhere
		}
		blocks = append(blocks, block{ns: seconds * 1e9 / segments, floor: floor})
		rates = append(rates, block{ns: bits / seconds / 1e9})
	}
	return blocks, rates
}

// floorNow is the floor at an MSS just now, for rows whose threads cannot wait for it in between.
func (e *env) floorNow(mss int) (float64, error) {
	all, err := measure(e.ctx, 20*time.Millisecond, sampler{parts: 1, take: func([]float64) (int, error) { return 1, nil }}, e.floorAt(mss))
	if err != nil {
		return 0, err
	}
	return quartiles(all[0], func(b block) float64 { return b.ns })[1], nil
}
