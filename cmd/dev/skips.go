package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Conditions under which a test may be skipped, as skips.txt names them.
const (
	whenAlways       = "always"
	whenUnprivileged = "unprivileged" // not root
	whenNoHuge       = "nohuge"       // no free hugepages
	whenNoCgo        = "nocgo"        // CGO_ENABLED=0
	whenRace         = "race"         // under the race detector
	whenShort        = "short"        // go test -short: every run but the first
	whenNoTshark     = "notshark"     // no tshark in PATH
)

var allConditions = []string{whenAlways, whenUnprivileged, whenNoHuge, whenNoCgo, whenRace, whenShort, whenNoTshark}

//go:embed skips.txt
var skipsText string

// skipRule allows the skip of some tests under one condition.
type skipRule struct {
	line    int
	when    string
	pattern string
	match   *regexp.Regexp
	top     *regexp.Regexp // the pattern up to the first subtest
	reason  string
	named   bool // a test of this name was seen
}

// skipList is the list of skips that are allowed, each with its reason.
type skipList struct{ rules []*skipRule }

// parseSkips reads lines of "CONDITION PACKAGE.TEST REASON", where * stands for any text.
func parseSkips(text string) (*skipList, error) {
	l := &skipList{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		f := strings.Fields(line)
		if len(f) < 3 {
			return nil, fmt.Errorf("skips.txt:%d: want CONDITION PACKAGE.TEST REASON, have %q", n, line)
		}
		if !slices.Contains(allConditions, f[0]) {
			return nil, fmt.Errorf("skips.txt:%d: %q is no condition: use one of %s", n, f[0], strings.Join(allConditions, ", "))
		}
		top, _, _ := strings.Cut(f[1][strings.LastIndexByte(f[1], '.')+1:], "/")
		top = f[1][:strings.LastIndexByte(f[1], '.')+1] + top
		l.rules = append(l.rules, &skipRule{
			line: n, when: f[0], pattern: f[1], match: globRegexp(f[1]), top: globRegexp(top),
			reason: strings.Join(f[2:], " "),
		})
	}
	return l, nil
}

func globRegexp(glob string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(glob), `\*`, ".*") + "$")
}

// allowed says whether the test (as package.Test/subtest) may be skipped when these conditions hold.
func (l *skipList) allowed(name string, when []string) bool {
	return slices.ContainsFunc(l.rules, func(r *skipRule) bool {
		return (r.when == whenAlways || slices.Contains(when, r.when)) && r.match.MatchString(name)
	})
}

// seen notes that a test of this name exists.
func (l *skipList) seen(name string) {
	for _, r := range l.rules {
		if r.top.MatchString(name) {
			r.named = true
		}
	}
}

// stale are the rules whose tests do not exist any more.
func (l *skipList) stale() []string {
	var out []string
	for _, r := range l.rules {
		if !r.named {
			out = append(out, fmt.Sprintf("cmd/dev/skips.txt:%d: no test is called %s: take the line out", r.line, r.pattern))
		}
	}
	return out
}
