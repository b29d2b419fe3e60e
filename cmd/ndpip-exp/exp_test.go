package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWrongOptions(t *testing.T) {
	empty := t.TempDir()
	for line, want := range map[string]string{
		"":                                     "give a verb",
		"exp3":                                 "no verb",
		"exp1":                                 "--local",
		"exp1 --local --mss 64":                "unknown flag: --mss",
		"exp1 --local --runs 0":                "from 1 to 1000",
		"exp1 --local --time none":             "want seconds",
		"exp2 --local --stacks tcp":            "ndpip, linux, f-stack, mtcp",
		"exp2 --local --stacks mtcp":           "give the path of its program with --mtcp",
		"exp2 --local --f-stack /x":            "--f-stack needs --hosts",
		"exp1 --local --netns":                 "one of --local",
		"exp1 --local --ssh x":                 "--ssh needs --hosts",
		"exp1 --hosts none.toml":               "none.toml: no such file",
		"exp1 --hosts a,b,c":                   "two destinations",
		"exp1 --hosts a,":                      "two destinations",
		"sweep --local --protocol udp --bidir": "--bidir needs --protocol tcp",
		"sweep --local --mss 64,x":             "from 48 to 9176",
		"sweep --local --mss 64,64":            "different",
		"exp1 --local more":                    "belongs to no option",
		"exp1 --resume --out " + empty:         "holds no results.jsonl",
		"exp1 --resume --runs 5":               "leave --runs out",
		"report":                               "one folder",
		"report " + empty:                      "holds no results.jsonl",
		"exp1 --local --out testdata":          "holds results already",
		"exp2 --resume --out testdata":         "results of exp1, not of exp2",
		"sweep --local --connections -1":       "from 1 to 32768",
	} {
		var out, fault bytes.Buffer
		require.Equal(t, statusUsage, run(strings.Fields(line), &out, &fault), "%s: %s", line, fault.String())
		require.Contains(t, fault.String(), want, line)
		require.Equal(t, 1, strings.Count(fault.String(), "\n"), line)
	}
	var out, fault bytes.Buffer
	require.Equal(t, 0, run([]string{"exp1", "--help"}, &out, &fault))
	require.Contains(t, out.String(), "--local")
}

// The order is that of the seed, and holds each run once.
func TestOrder(t *testing.T) {
	p := plan{Stacks: stackNames(), MSS: []int{64, 1460}, Connections: []int{1}, Window: []int{0}, Burst: []int{32}, Protocol: []string{"tcp"}, Runs: 3, Seed: 7}
	jobs := p.jobs()
	require.Equal(t, jobs, p.jobs())
	seen := make(map[job]bool)
	for _, j := range jobs {
		seen[j] = true
	}
	require.Len(t, jobs, 2*2*2*3)
	require.Len(t, seen, len(jobs))
	p.Seed = 8
	require.NotEqual(t, jobs, p.jobs())
}

// The tables of stored results are what they were.
func TestTables(t *testing.T) {
	dir := t.TempDir()
	text, err := os.ReadFile(filepath.Join("testdata", resultsName))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, resultsName), text, 0o600))
	var out, fault bytes.Buffer
	require.Equal(t, 0, run([]string{"report", "--plots=false", dir}, &out, &fault), fault.String())
	for _, name := range []string{"table.txt", "table.md", "table.tex", "table.csv"} {
		want, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), name)
	}
}

func TestPicture(t *testing.T) {
	st, err := openStore("testdata")
	require.NoError(t, err)
	defer st.close()
	paper, err := published("exp1")
	require.NoError(t, err)
	p, ok := st.picture(st.summaries(), paper)
	require.True(t, ok)
	require.Equal(t, []string{"64", "256", "512", "1460"}, p.Places)
	var names []string
	for _, s := range p.Series {
		names = append(names, s.Name)
	}
	require.Equal(t, []string{"ndpip → ndpip (memif)", "paper: SlimTCP → SlimTCP", "paper: f-stack → f-stack", "paper: mtcp → mtcp"}, names)
	require.Equal(t, point{Place: 0, Y: 2, Low: 1, High: 3}, p.Series[0].Points[0])
}

func TestPaper(t *testing.T) {
	for experiment, n := range map[string]int{"exp1": 36, "exp2": 36, "sweep": 0} {
		all, err := published(experiment)
		require.NoError(t, err)
		require.Len(t, all, n, experiment)
	}
	all, err := published("exp2")
	require.NoError(t, err)
	bps, ok := paperOf(all, cell{Tx: "ndpip", Rx: "ndpip", MSS: 1460, Connections: 4096})
	require.True(t, ok)
	require.Equal(t, 23.6e9, bps)
}

// script stands for both programs of a stack. It fails when the file "broken" lies beside it.
const script = `#!/bin/sh
trap 'echo "{\"type\":\"summary\",\"bytes\":900,\"connections\":1,\"bytes_least\":900,\"bytes_most\":900}"; exit 0' TERM
[ -e "$0.broken" ] && echo "it is broken" >&2 && exit 1
[ "$1" = recv ] && echo "listening on 10.0.0.1:5001" >&2
bytes=0
while :; do
	sleep 0.02
	bytes=$((bytes + 100))
	echo "{\"type\":\"interval\",\"seconds\":0.1,\"pps\":10,\"bps\":8000,\"connections\":1,\"bytes\":$bytes}"
done
`

// fake is a stack of the script.
type fake struct{}

func (fake) source() string              { return "./fake-perf" }
func (fake) receiver(end, cell) []string { return []string{"recv"} }
func (fake) sender(end, cell) []string   { return []string{"send"} }

// A run that is interrupted, and one whose last line is cut off, go on where they were; runs that failed are repeated.
func TestResume(t *testing.T) {
	runtime.LockOSThread() // the programs end with the thread that starts them
	defer runtime.UnlockOSThread()
	before := stacks["ndpip"]
	stacks["ndpip"] = fake{}
	defer func() { stacks["ndpip"] = before }()
	p := plan{Experiment: "sweep", Stacks: []string{"ndpip"}, MSS: []int{1460}, Connections: []int{1}, Window: []int{0}, Burst: []int{32},
		Protocol: []string{"tcp"}, Runs: 3, Seconds: 0.3, Warmup: 0.1, Mbufs: 8192}
	dir := t.TempDir()
	st, err := newStore(dir, about{Type: "about", Plan: p})
	require.NoError(t, err)

	broken := true
	perform := func(ctx context.Context, log io.Writer) {
		l := &lab{st: st, stderr: log}
		l.make = func(context.Context, []string) error {
			path := l.program("ndpip")
			if broken {
				require.NoError(t, os.WriteFile(path+".broken", nil, 0o600))
			}
			return os.WriteFile(path, []byte(script), 0o700)
		}
		require.NoError(t, l.perform(ctx))
	}
	perform(t.Context(), io.Discard)
	require.Len(t, st.results, 3)
	require.Contains(t, st.results[0].Error, "it is broken")
	require.ErrorContains(t, st.complete(), "1 cell without a result")
	require.Len(t, st.left(), 3)

	broken = false
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	perform(ctx, writerFunc(func(b []byte) (int, error) {
		if strings.Contains(string(b), "[1/3]") {
			cancel()
		}
		return len(b), nil
	}))
	st.close()
	require.Len(t, st.left(), 2)

	f, err := os.OpenFile(filepath.Join(dir, resultsName), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"type":"run","ce`)
	require.NoError(t, err)
	require.NoError(t, f.Close())

	st, err = openStore(dir)
	require.NoError(t, err)
	require.Equal(t, p, st.about.Plan)
	require.Len(t, st.left(), 2)
	perform(t.Context(), io.Discard)
	st.close()
	st, err = openStore(dir)
	require.NoError(t, err)
	defer st.close()
	require.Empty(t, st.left())
	require.NoError(t, st.complete())
	s := st.summaries()[0]
	require.Len(t, s.runs, 3)
	require.Zero(t, s.failed)
	require.InDelta(t, 8000, s.mid.BPS, 1)
	require.Equal(t, uint64(900), s.mid.Least)
}

// Time is measured from when data move on all connections, if the program says so.
func TestWatch(t *testing.T) {
	const all = `"seconds":0.1,"bps":8,"connections":2,`
	p := &process{done: make(chan struct{}), ready: make(chan struct{})}
	for _, l := range []string{
		`{"type":"interval","seconds":0.1,"connections":1,"moving":1,"bytes":1}`,
		`{"type":"interval",` + all + `"moving":1,"bytes":2}`,
		`{"type":"interval",` + all + `"moving":2,"bytes":3}`, // warm-up
		`{"type":"interval",` + all + `"moving":2,"bytes":4}`,
	} {
		p.take([]byte(l))
	}
	late, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	c := cell{Connections: 2, Protocol: "tcp"}
	plan := &plan{Seconds: 0.2, Warmup: 0.1}
	_, err := watch(late, plan, c, p, &process{})
	require.ErrorContains(t, err, "too late: 2 of 2 connections were up, 2 had moved data, and 0.2 s were measured")
	p.take([]byte(`{"type":"interval",` + all + `"bytes":5}`))
	m, err := watch(t.Context(), plan, c, p, &process{})
	require.NoError(t, err)
	require.Len(t, m, 2)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// The help names every option, and its lines fit a terminal.
func TestHelp(t *testing.T) {
	for _, name := range append([]string{"dry-run", "resume", "out", "paper", "plots"}, planFlags...) {
		require.Contains(t, help, "--"+name)
	}
	for line := range strings.Lines(help) {
		require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 120, line)
	}
}
