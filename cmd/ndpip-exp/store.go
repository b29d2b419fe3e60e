package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// about is the first line of the results: what was to be measured, and on what.
type about struct {
	Type    string    `json:"type"`
	Time    time.Time `json:"time"`
	Plan    plan      `json:"plan"`
	Machine machine   `json:"machine"` // this one, or that of the sender
	Peer    *machine  `json:"receiver_machine,omitempty"`
}

// result is the line of one run.
type result struct {
	Type    string    `json:"type"`
	Time    time.Time `json:"time"`
	Cell    cell      `json:"cell"`
	Run     int       `json:"run"`
	Error   string    `json:"error,omitempty"` // why there are no figures
	Note    string    `json:"note,omitempty"`  // what went wrong after the measured time
	Wire    string    `json:"wire"`
	BPS     float64   `json:"bps"`                // goodput at the receiver, of the measured time
	PPS     float64   `json:"pps"`                // received segments with payload
	BackBPS float64   `json:"back_bps,omitempty"` // --bidir: goodput at the sender
	Seconds float64   `json:"seconds"`
	Least   uint64    `json:"bytes_least"` // of a connection, at the receiver, in the whole run
	Most    uint64    `json:"bytes_most"`
	Sender  usage     `json:"sender"`
	Recv    usage     `json:"receiver"`
}

// usage is what one end took in its whole life.
type usage struct {
	CPU             float64 `json:"cpu_seconds"`
	Wall            float64 `json:"wall_seconds"`
	RSS             int64   `json:"rss_bytes"` // at most; without hugepages
	Bytes           uint64  `json:"bytes"`
	Retransmissions uint64  `json:"retransmissions"`
	Drops           uint64  `json:"drops"`
}

// store is a folder with results. Each line is written at once, so that what is done is there whatever happens.
type store struct {
	dir     string
	about   about
	results []result
	f       *os.File // nil: not written to yet
	whole   int64    // bytes of whole lines, when it was opened
}

const resultsName = "results.jsonl"

// newStore makes a folder that has no results yet.
func newStore(dir string, a about) (*store, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	path := filepath.Join(dir, resultsName)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, usagef("%s holds results already: give --resume to go on with them, or another --out", dir)
	} else if err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	st := &store{dir: dir, about: a, f: f}
	return st, st.line(a)
}

// openStore reads a folder. A last line that is cut off, as a killed run may leave it, does not count, and goes
// with the first line that is added.
func openStore(dir string) (*store, error) {
	path := filepath.Join(dir, resultsName)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("%s holds no %s: want the folder of a run of exp1, exp2 or sweep", dir, resultsName)
	} else if err != nil {
		return nil, err
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	st := &store{dir: dir}
	n := 0
	for line := range bytes.Lines(text[:whole]) {
		n++
		if n == 1 {
			err = json.Unmarshal(line, &st.about)
			if err == nil && st.about.Type != "about" {
				err = fmt.Errorf("type %q: want about", st.about.Type)
			}
		} else {
			var r result
			if err = json.Unmarshal(line, &r); err == nil && r.Type == "run" {
				st.results = append(st.results, r)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	if n == 0 {
		return nil, fmt.Errorf("%s is empty: delete the folder and begin again", path)
	}
	st.whole = int64(whole)
	return st, nil
}

func (st *store) close() {
	if st.f != nil {
		st.f.Close()
	}
}

func (st *store) line(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if st.f == nil { // a folder that was read so far
		f, err := os.OpenFile(filepath.Join(st.dir, resultsName), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		st.f = f
		if err := f.Truncate(st.whole); err != nil {
			return err
		}
	}
	_, err = st.f.Write(append(b, '\n'))
	return err
}

// add stores the result of a run.
func (st *store) add(r result) error {
	st.results = append(st.results, r)
	return st.line(r)
}

// left are the runs of the plan that have no figures yet.
func (st *store) left() (out []job) {
	done := make(map[job]bool)
	for _, r := range st.results {
		if r.Error == "" {
			done[job{r.Cell, r.Run}] = true
		}
	}
	for _, j := range st.about.Plan.jobs() {
		if !done[j] {
			out = append(out, j)
		}
	}
	return out
}

// complete is an error when a cell has no figures.
func (st *store) complete() error {
	var bad []string
	for _, s := range st.summaries() {
		if len(s.runs) == 0 {
			bad = append(bad, s.cell.String())
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return fmt.Errorf("%s without a result: %s; %s in %s says why", count(len(bad), "cell"), strings.Join(bad, "; "), `"error"`, filepath.Join(st.dir, resultsName))
}

// summary is what the runs of a cell say together.
type summary struct {
	cell      cell
	runs      []result // with figures
	failed    int
	low, high float64 // bps
	mid       result  // the run with the median goodput (of an even number, the lower one in the middle)
}

// summaries are those of all cells, in the order of the plan.
func (st *store) summaries() (out []summary) {
	for _, c := range st.about.Plan.cells() {
		s := summary{cell: c}
		failed := make(map[int]bool)
		for _, r := range st.results {
			if r.Cell != c {
				continue
			}
			failed[r.Run] = r.Error != ""
			if r.Error == "" {
				s.runs = append(s.runs, r)
			}
		}
		for _, f := range failed {
			if f {
				s.failed++
			}
		}
		if n := len(s.runs); n > 0 {
			slices.SortFunc(s.runs, func(a, b result) int { return int(a.BPS - b.BPS) })
			s.low, s.high, s.mid = s.runs[0].BPS, s.runs[n-1].BPS, s.runs[(n-1)/2]
		}
		out = append(out, s)
	}
	return out
}
