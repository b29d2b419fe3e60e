package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"
)

func benchVerb() verb {
	return verb{
		name: "bench", what: "the benchmarks, as a table; the options are those of the bench module",
		run: func(ctx context.Context, d *dev, args []string) error { return d.bench(ctx, args) },
	}
}

// bench runs the bench module, which is one of its own so that its dependencies are not the library's. It gets the
// options as they are, and the terminal.
func (d *dev) bench(ctx context.Context, args []string) error {
	dir := filepath.Join(d.root, "bench")
	if !isFile(filepath.Join(dir, "go.mod")) {
		return errors.New("the benchmarks are not there yet: bench/ has no go.mod")
	}
	if err := d.setUp(ctx, needsToBuild()); err != nil {
		return err
	}
	huge := d.takeHugepages()
	defer huge.giveBack()
	tmp, err := os.MkdirTemp("", "ndpip-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	// Built and then run, since "go run" does not hand SIGTERM on.
	program := filepath.Join(tmp, "bench")
	build := d.goJob(5*time.Minute, "build", "-o", program, ".")
	build.dir = dir
	d.out.Status("building the benchmarks")
	if err := d.run(ctx, build); err != nil {
		return err
	}
	d.out.Status("")
	return d.attach(ctx, dir, append([]string{program}, args...))
}
