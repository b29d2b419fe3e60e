package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// testOptions are the options of the verb test.
type testOptions struct {
	fuzzTime time.Duration
	only     string
	run      string
}

// testLimit is the end of a test run that hangs. With --fuzztime a run takes as long as it takes.
const testLimit = 25 * time.Minute

func testVerb() verb {
	var o testOptions
	return verb{
		name: "test", what: "everything: lints, tests, race detector, fuzzing, and as root once more without privilege",
		flags: func(fs *flag.FlagSet) {
			fs.DurationVar(&o.fuzzTime, "fuzztime", 0, "`TIME` for each fuzz target (default: 10s, and "+fuzzBudget.String()+" for all)")
			fs.StringVar(&o.only, "only", "", "`STEPS` to take, of "+strings.Join(stepNames(), ",")+" (default: all)")
			fs.StringVar(&o.run, "run", "", "tests whose name matches this `REGEXP`, as for go test (no fuzzing, no lints)")
		},
		run: func(ctx context.Context, d *dev, _ []string) error { return d.test(ctx, o) },
	}
}

// testStep is one part of the verb test.
type testStep struct {
	name, title string
	take        func(*suite) error
}

func testSteps() []testStep {
	return []testStep{
		{"lint", "lints", func(t *suite) error { return t.d.lint(t.ctx, t.tally) }},
		{"build", "build", (*suite).build},
		{"tests", "tests", (*suite).plain},
		{"nocgo", "the pure packages without cgo", (*suite).noCgo},
		{"race", "under the race detector", (*suite).race},
		{"fuzz", "fuzzing", (*suite).fuzz},
		{"nix", "the Nix flake", (*suite).nix},
		{"user", "as an ordinary user", (*suite).asUser},
	}
}

func stepNames() []string {
	var out []string
	for _, s := range testSteps() {
		out = append(out, s.name)
	}
	return out
}

// suite is one run of the verb test.
type suite struct {
	ctx   context.Context
	d     *dev
	o     testOptions
	tally *tally
	skips *skipList
	huge  *hugepages
}

// purePackages build and pass without cgo.
var purePackages = []string{"./ring/...", "./tcp/...", "./udp/...", "./stack/...", portPackage}

// portPackage is the one of them that opens real ports, when it has cgo.
const portPackage = "./dpdk/..."

func (d *dev) test(ctx context.Context, o testOptions) error {
	var only []string
	if o.only != "" {
		only = strings.Split(o.only, ",")
	}
	for _, name := range only {
		if !slices.Contains(stepNames(), name) {
			return usagef("test: --only %s: %q is no step; the steps are %s", o.only, name, strings.Join(stepNames(), ", "))
		}
	}
	if o.run != "" && only == nil {
		only = []string{"tests", "nocgo", "race", "user"}
	}
	skips, err := parseSkips(skipsText)
	if err != nil {
		return err
	}
	needs := append(append(needsToBuild(), needCPlusPlus), d.needsToLint()...)
	if d.uid == 0 {
		needs = append(needs, needIP, needPing, needSocat, needEthtool, needNetcat, needCurl, needWget, needWrk, needTcpdump)
	}
	if err := d.setUp(ctx, needs); err != nil {
		return err
	}
	if o.fuzzTime == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, testLimit, fmt.Errorf("test did not end within %s", testLimit))
		defer cancel()
	}
	t := &suite{ctx: ctx, d: d, o: o, tally: &tally{}, skips: skips, huge: d.takeHugepages()}
	defer t.huge.giveBack()
	d.out.Printf("%s, %s", d.who(), t.huge)

	begin := time.Now()
	for _, s := range testSteps() {
		if only != nil && !slices.Contains(only, s.name) {
			continue
		}
		d.out.Printf("%s", s.title)
		err := s.take(t)
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			// Not a test's failure but the end of the run; what was counted so far is still of use.
			t.tally.failed++
			return errors.Join(err, t.tally.close(d.out))
		}
	}
	if only == nil {
		for _, line := range skips.stale() {
			t.tally.failed++
			d.out.Printf("  FAIL  %s", line)
		}
	}
	d.out.Printf("all of it took %.0f s", time.Since(begin).Seconds())
	return t.tally.close(d.out)
}

func (d *dev) who() string {
	if d.uid == 0 {
		return "as root"
	}
	return fmt.Sprintf("as uid %d (as root more is tested: the kernel as the peer)", d.uid)
}

func (t *suite) build() error {
	begin := time.Now()
	t.d.out.Status("go build ./...")
	err := t.d.inEach(t.ctx, t.d.modules(), t.d.goJob(5*time.Minute, "build", "./..."))
	t.tally.check(t.d.out, "go build ./...", time.Since(begin), err, "")
	begin = time.Now()
	j := t.d.goJob(5*time.Minute, slices.Concat([]string{"build"}, t.pure())...)
	j.env = append(j.env, "CGO_ENABLED=0")
	err = t.d.run(t.ctx, j)
	t.tally.check(t.d.out, "go build of the pure packages without cgo", time.Since(begin), err, "")
	return t.buildExamples()
}

// buildExamples builds the examples that are modules of their own, where what they need can be fetched; elsewhere it says
// that they were not built. They are built as copies, since their go.mod names no versions.
func (t *suite) buildExamples() error {
	for _, dir := range t.d.examples() {
		begin := time.Now()
		name, _ := filepath.Rel(t.d.root, dir)
		t.d.out.Status("%s", name)
		missing, err := t.buildExample(dir)
		if t.ctx.Err() != nil {
			return context.Cause(t.ctx)
		}
		if missing != "" {
			t.d.out.Printf("  note  %s was not built: %s", name, missing)
			continue
		}
		t.tally.check(t.d.out, name, time.Since(begin), err, "")
	}
	return nil
}

// buildExample says what could not be had, or how the build went.
func (t *suite) buildExample(dir string) (missing string, err error) {
	tmp, err := os.MkdirTemp("", "ndpip-example-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	if err := os.CopyFS(tmp, os.DirFS(dir)); err != nil {
		return "", err
	}
	in := func(limit time.Duration, args ...string) (string, error) {
		j := t.d.goJob(limit, args...)
		j.dir = tmp
		return t.d.output(t.ctx, j)
	}
	mod := readText(filepath.Join(tmp, "go.mod"))
	for line := range strings.Lines(mod) {
		path, isOpen := strings.CutSuffix(strings.TrimSpace(line), " v0.0.0")
		if !isOpen || path == "ndpip" {
			continue
		}
		if _, err := in(time.Minute, "mod", "edit", "-droprequire="+path, "-replace=ndpip="+t.d.root); err != nil {
			return "", err
		}
		if out, err := in(time.Minute, "get", path); err != nil {
			first, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
			return first, nil
		}
	}
	if out, err := in(time.Minute, "mod", "tidy"); err != nil {
		return lastLine(out), nil
	}
	out, err := in(5*time.Minute, "build", "-o", filepath.Join(tmp, "example"), ".")
	if err != nil && !strings.Contains(out, "# example\n") { // not the example's own code
		return "what it needs does not build with this DPDK: " + lastLine(out), nil
	}
	return "", err
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// pure are those of purePackages that exist.
func (t *suite) pure() []string {
	var out []string
	for _, p := range purePackages {
		dir := filepath.Join(t.d.root, strings.TrimSuffix(p, "/..."))
		if found, _ := filepath.Glob(filepath.Join(dir, "*.go")); len(found) > 0 {
			out = append(out, p)
		}
	}
	return out
}

// conditions are the ones under which tests may be skipped in a run on this machine as this user.
func (t *suite) conditions(more ...string) []string {
	if t.d.uid != 0 {
		more = append(more, whenUnprivileged)
	}
	if t.huge.free == 0 {
		more = append(more, whenNoHuge)
	}
	if commandPath("tshark") == "" {
		more = append(more, whenNoTshark)
	}
	return more
}

// oneByOne is for packages that meet the real time: one that polls on both ends takes both cores of a small machine.
const oneByOne = "-p=1"

// goTest runs "go test -json" in the folder, with the environment and as the user of j.
func (t *suite) goTest(j job, when []string, args ...string) error {
	log := newTestLog(t.d, t.tally, t.skips, when)
	argv := []string{"test", "-json", "-count=1", "-timeout=5m"}
	if t.o.run != "" {
		argv = append(argv, "-run", t.o.run)
	}
	with := t.d.goJob(testLimit, append(argv, args...)...)
	j.argv, j.limit, j.line, j.env = with.argv, with.limit, log.line, append(with.env, j.env...)
	failed := t.tally.failed
	err := t.d.run(t.ctx, j)
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	if err != nil && t.tally.failed == failed {
		// The go command failed, and no event says why.
		t.tally.failed++
		t.d.out.Printf("  FAIL  go test\n%s", indent(err.Error()))
	}
	return nil
}

func (t *suite) plain() error {
	for _, dir := range t.d.modules() {
		if err := t.goTest(job{dir: dir}, t.conditions(), oneByOne, "./..."); err != nil {
			return err
		}
	}
	return nil
}

// The runs after the first are short: what they add is the other build or the other user, not more cases.

func (t *suite) noCgo() error {
	return t.goTest(job{env: []string{"CGO_ENABLED=0"}}, t.conditions(whenNoCgo, whenShort), append([]string{"-short"}, t.pure()...)...)
}

func (t *suite) race() error {
	var virtual []string // all of them but the ports
	for _, p := range t.pure() {
		if p != portPackage {
			virtual = append(virtual, p)
		}
	}
	when := t.conditions(whenRace, whenShort)
	if err := t.goTest(job{}, when, append([]string{"-race", "-short"}, virtual...)...); err != nil {
		return err
	}
	return t.goTest(job{}, when, "-race", "-short", oneByOne, portPackage)
}
