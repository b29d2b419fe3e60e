package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// event is one line of "go test -json" (see go doc test2json).
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64
	Output  string
}

// testKey names a test of a package.
type testKey struct{ pkg, test string }

// maxTestOutput is how much of one test's output is kept, for the case that it fails.
const maxTestOutput = 256 << 10

// testLog follows the events of one "go test -json" run.
type testLog struct {
	module string // is cut off the packages' paths
	out    *screen
	skips  *skipList
	when   []string // conditions of this run, as the skip list names them

	tally  *tally
	output map[testKey]*strings.Builder
	result map[testKey]string // pass, fail, skip
	parent map[testKey]bool   // has subtests
	passes int                // so far, for the status line
	noise  []string           // lines that are no events: what the go command itself says
}

func newTestLog(d *dev, t *tally, skips *skipList, when []string) *testLog {
	return &testLog{
		module: "ndpip/", out: d.out, skips: skips, when: when, tally: t,
		output: map[testKey]*strings.Builder{}, result: map[testKey]string{}, parent: map[testKey]bool{},
	}
}

func (l *testLog) short(pkg string) string { return strings.TrimPrefix(pkg, l.module) }

// line takes one line of the output.
func (l *testLog) line(text string) {
	var e event
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &e) != nil {
		if strings.TrimSpace(text) != "" {
			l.noise = append(l.noise, text)
		}
		return
	}
	if e.Action == "build-output" || e.Action == "build-fail" {
		l.noise = append(l.noise, strings.TrimRight(e.Output, "\n"))
		return
	}
	key := testKey{e.Package, e.Test}
	switch e.Action {
	case "run":
		if i := strings.LastIndexByte(e.Test, '/'); i > 0 {
			l.parent[testKey{e.Package, e.Test[:i]}] = true
		}
		l.out.Status("%s %s: %d passed, %d failed", l.short(e.Package), e.Test, l.passes, l.tally.failed)
	case "output":
		l.tally.extra.read(e.Output)
		b := l.output[key]
		if b == nil {
			b = &strings.Builder{}
			l.output[key] = b
		}
		if b.Len() < maxTestOutput {
			b.WriteString(e.Output)
		}
	case "pass", "fail", "skip":
		if e.Test == "" {
			l.endPackage(e)
			return
		}
		l.result[key] = e.Action
		switch e.Action {
		case "pass":
			l.passes++
		case "fail":
			if !l.childFailed(key) { // else the subtest has said why
				l.out.Printf("  FAIL  %s.%s\n%s", l.short(e.Package), e.Test, indent(tailOf(l.text(key), tailLines)))
			}
		case "skip":
			l.skipped(key)
		}
		delete(l.output, key)
	}
}

// skipped looks whether the skip is allowed; one that is not on the list counts as a failure.
func (l *testLog) skipped(key testKey) {
	name := l.short(key.pkg) + "." + key.test
	if l.skips.allowed(name, l.when) {
		return
	}
	l.result[key] = "fail"
	l.out.Printf("  FAIL  %s was skipped, and cmd/dev/skips.txt does not allow it here (%s)\n%s",
		name, strings.Join(l.when, ", "), indent(tailOf(l.text(key), 5)))
}

func (l *testLog) text(key testKey) string {
	if b := l.output[key]; b != nil {
		return b.String()
	}
	return ""
}

// count is how many tests of a package ended so. Tests with subtests are counted through these, unless one failed
// although none of its subtests did.
func (l *testLog) count(pkg, how string) int {
	n := 0
	for key, r := range l.result {
		if key.pkg == pkg && r == how && (!l.parent[key] || (how == "fail" && !l.childFailed(key))) {
			n++
		}
	}
	return n
}

func (l *testLog) childFailed(parent testKey) bool {
	for key, r := range l.result {
		if key.pkg == parent.pkg && r == "fail" && strings.HasPrefix(key.test, parent.test+"/") {
			return true
		}
	}
	return false
}

func (l *testLog) endPackage(e event) {
	passed, failed, skipped := l.count(e.Package, "pass"), l.count(e.Package, "fail"), l.count(e.Package, "skip")
	name := l.short(e.Package)
	text := l.text(testKey{e.Package, ""})
	if died := strings.Contains(text, "panic: ") || strings.Contains(text, "signal: "); e.Action == "fail" && (failed == 0 || died) {
		// It did not build, or it ended outside of any test.
		failed = max(failed, 1)
		if len(l.noise) > 0 {
			text = strings.Join(l.noise, "\n") + "\n" + text
			l.noise = nil
		}
		l.out.Printf("  FAIL  %s\n%s", name, indent(tailOf(text, tailLines)))
	}
	l.tally.passed += passed
	l.tally.failed += failed
	l.tally.skipped += skipped
	for key := range l.result {
		if key.pkg == e.Package {
			l.skips.seen(l.short(key.pkg) + "." + key.test)
			delete(l.result, key)
		}
	}
	if passed+failed+skipped > 0 {
		verdict, more := "ok  ", ""
		if failed > 0 {
			verdict, more = "FAIL", fmt.Sprintf(", %d failed", failed)
		}
		if skipped > 0 {
			more += fmt.Sprintf(", %d skipped", skipped)
		}
		l.out.Printf("  %s  %-44s %6.1f s  %d passed%s", verdict, name, e.Elapsed, passed, more)
	}
}

// tailOf gives the last n lines.
func tailOf(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) > n {
		lines = append([]string{fmt.Sprintf("… %d lines before", len(lines)-n)}, lines[len(lines)-n:]...)
	}
	return strings.Join(lines, "\n")
}

// counts adds up what tests say that they went through, with lines like "counted 10000 simulator seeds".
type counts map[string]int

var countedLine = regexp.MustCompile(`\bcounted (\d+) ([\w ,/-]*\w)\s*$`)

func (c *counts) read(line string) {
	if m := countedLine.FindStringSubmatch(line); m != nil {
		n, _ := strconv.Atoi(m[1])
		c.add(m[2], n)
	}
}

func (c *counts) add(what string, n int) {
	if *c == nil {
		*c = counts{}
	}
	(*c)[what] += n
}

func (c counts) lines() []string {
	var out []string
	for _, what := range slices.Sorted(maps.Keys(c)) {
		out = append(out, fmt.Sprintf("%d %s", c[what], what))
	}
	return out
}
