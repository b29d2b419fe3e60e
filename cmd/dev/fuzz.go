package main

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// fuzzExecs finds the number of executions in the go command's progress lines. At first it runs the corpus, and counts in
// another way.
var fuzzExecs = regexp.MustCompile(`(?:execs|baseline coverage): (\d+)`)

// fuzzBudget is the time that all fuzz targets have together on one CPU, unless --fuzztime gives each its own.
const fuzzBudget = 72 * time.Second

// fuzz gives each fuzz target its time. What it finds is written to the package's testdata/fuzz, where go test tries it
// from then on. As many targets as there are CPUs are at work at a time, with one worker each: half of the time goes into
// building, which alone does not fill the CPUs.
func (t *suite) fuzz() error {
	begin := time.Now()
	targets, err := t.fuzzTargets()
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	if err != nil {
		t.tally.check(t.d.out, "looking for fuzz targets", time.Since(begin), err, "")
	}
	if len(targets) == 0 {
		return nil
	}
	each := t.o.fuzzTime
	if each == 0 {
		each = min(10*time.Second, max(time.Second, fuzzBudget/time.Duration(len(targets))))
	}
	next := make(chan testKey)
	var mu sync.Mutex // of the tally
	var wait sync.WaitGroup
	for range cores() {
		wait.Go(func() {
			for target := range next {
				t.fuzzOne(target, each, &mu)
			}
		})
	}
	for _, target := range targets {
		next <- target
	}
	close(next)
	wait.Wait()
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	return nil
}

// fuzzEnd is how the go command says that a target's time ended. Before 1.27 it now and then takes the end of the time for
// a failure (go.dev/issue/75804): all that it says then is "context deadline exceeded". A failure of the target's comes
// with an input.
type fuzzEnd struct{ deadline, other bool }

func (e *fuzzEnd) see(line string) {
	switch s := strings.TrimSpace(line); {
	case s == "context deadline exceeded":
		e.deadline = true
	case strings.Contains(s, "Failing input") || strings.Contains(s, "panic:") || strings.Contains(s, ".go:") || strings.Contains(s, "fuzzing process"):
		e.other = true
	}
}

// late says that the time was over and nothing else was wrong.
func (e *fuzzEnd) late() bool { return e.deadline && !e.other }

// fuzzOne gives one target its time.
func (t *suite) fuzzOne(target testKey, each time.Duration, mu *sync.Mutex) {
	begin := time.Now()
	name := strings.TrimPrefix(target.pkg, "ndpip/") + "." + target.test
	execs := 0
	j := t.d.goJob(each+3*time.Minute, "test", "-run=^$", "-fuzz=^"+target.test+"$", "-fuzztime="+each.String(), "-fuzzminimizetime=3s",
		"-parallel=1", target.pkg)
	var end fuzzEnd
	j.line = func(s string) {
		end.see(s)
		if m := fuzzExecs.FindStringSubmatch(s); m != nil {
			execs, _ = strconv.Atoi(m[1])
			t.d.out.Status("%s: %d executions", name, execs)
		}
	}
	err := t.d.run(t.ctx, j)
	if t.ctx.Err() != nil {
		return
	}
	if err != nil && end.late() {
		t.d.out.Printf("  note  %s: the go command's own deadline came before it had ended; no input failed", name)
		err = nil
	}
	if err == nil && execs == 0 {
		err = errors.New("it did not run once in its time")
	}
	mu.Lock()
	defer mu.Unlock()
	t.tally.check(t.d.out, name+" "+strconv.Itoa(execs), time.Since(begin), err,
		"the input is in testdata/fuzz of the package: go test -run="+target.test+" tries it again")
	t.tally.extra.add("fuzz executions", execs)
}

func (t *suite) fuzzTargets() ([]testKey, error) {
	var found []testKey
	log := func(text string) {
		// "go test -list" prints the names and then "ok PACKAGE TIME".
		f := strings.Fields(text)
		switch {
		case len(f) == 1 && strings.HasPrefix(f[0], "Fuzz"):
			found = append(found, testKey{test: f[0]})
		case len(f) > 1 && f[0] == "ok":
			for i := range found {
				if found[i].pkg == "" {
					found[i].pkg = f[1]
				}
			}
		}
	}
	j := t.d.goJob(5*time.Minute, "test", "-list=^Fuzz", "./...")
	j.line = log
	t.d.out.Status("looking for fuzz targets")
	return found, t.d.run(t.ctx, j)
}
