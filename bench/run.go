package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"ndpip/api"
)

// env is what a row is measured in.
type env struct {
	ctx  context.Context
	out  *screen
	each time.Duration // for this row
	dir  string        // temporary
	perf string        // ndpip-perf, once it was built

	pair   *pair // of the floor loop
	hosts  [2]*api.Host
	states []state
}

// state says in words how something is, for the report of a row that hangs.
type state struct {
	name string
	text func() string
}

// errSkip is a row that this machine cannot run. The others go on.
type errSkip struct{ why string }

func (e errSkip) Error() string { return e.why }

// grace is how much longer than its time a row may take: for connections, processes, namespaces.
const grace = 40 * time.Second

// quickBudget is when a quick run begins to give each row less.
const quickBudget = 30 * time.Second

// runAll measures the rows, one after the other. With --format json each result is printed as soon as it is there.
func runAll(ctx context.Context, o *options, rows []row) (results []result, err error) {
	e := &env{ctx: ctx, out: newScreen(os.Stderr)}
	defer e.out.status("")
	if e.dir, err = os.MkdirTemp("", "ndpip-bench-"); err != nil {
		return nil, err
	}
	defer atEnd.add(func() { os.RemoveAll(e.dir) })()
	if err := e.start(); err != nil {
		return nil, err
	}
	defer e.stop()
	skipped := map[string]bool{}
	begin := time.Now()
	last := ""
	var failed []string
	for i, r := range rows {
		if skipped[r.kind.name] {
			continue
		}
		e.out.status("[%d/%d] %s%s", i+1, len(rows), r, last)
		e.each = o.timeOf(r, time.Since(begin))
		got, err := e.run(r)
		var skip errSkip
		switch {
		case errors.As(err, &skip):
			skipped[r.kind.name] = true
			e.out.printf("%s is left out: %s", r.kind.name, skip.why)
			continue
		case ctx.Err() != nil:
			return results, context.Cause(ctx)
		case err != nil:
			failed = append(failed, r.String())
			e.out.printf("FAIL %s: %v", r, err)
			continue
		}
		for _, g := range got {
			if o.format == "json" {
				if err := g.print(os.Stdout); err != nil {
					return results, err
				}
			}
			last = fmt.Sprintf("   (before: %s %.1f ns, %.2f × floor)", g.Bench, g.NsPerSegment, g.Ratio)
		}
		results = append(results, got...)
	}
	if len(failed) > 0 {
		return results, fmt.Errorf("%d rows failed; the reasons stand above: %s", len(failed), strings.Join(failed, "; "))
	}
	if len(results) == 0 {
		return nil, errors.New("nothing was measured")
	}
	e.out.printf("%d rows in %.0f s", len(results), time.Since(begin).Seconds())
	return results, nil
}

// timeOf is how long a row is measured.
func (o *options) timeOf(r row, spent time.Duration) time.Duration {
	switch {
	case o.time > 0:
		return o.time
	case o.quick && spent > quickBudget:
		return r.kind.quick / 2
	case o.quick:
		return r.kind.quick
	}
	return r.kind.each
}

// run measures one row, and ends the program if the row hangs: a thread that polls cannot be stopped from outside.
func (e *env) run(r row) ([]result, error) {
	e.states = nil
	limit := e.each + grace
	dog := time.AfterFunc(limit, func() {
		fmt.Fprintf(os.Stderr, "\nbench: %s hangs: it did not end within %s\n%s\n", r, limit, e.report())
		atEnd.run()
		os.Exit(1)
	})
	defer dog.Stop()
	return r.kind.run(e, r.point)
}

// watch names something whose state is shown if the row hangs.
func (e *env) watch(name string, text func() string) {
	e.states = append(e.states, state{name, text})
}

func (e *env) report() string {
	var b strings.Builder
	for _, s := range e.states {
		fmt.Fprintf(&b, "%s: %s\n", s.name, s.text())
	}
	return b.String()
}
