package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

func benchVerb() verb {
	return verb{
		name: "bench", what: "the benchmarks, as a table, with the options of the bench module (--help lists them)",
		run: func(ctx context.Context, d *dev, args []string) error { return d.bench(ctx, args) },
	}
}

// bench runs the bench module, which is one of its own so that its dependencies are not the library's. It gets the
// options as they are, and the terminal; it has time limits of its own, for each row.
func (d *dev) bench(ctx context.Context, args []string) error {
	d.out = newScreen(os.Stderr) // standard output is the program's: it may be JSON
	here, err := os.Getwd()      // where the options' files are
	if err != nil {
		return err
	}
	needs := needsToBuild()
	if d.uid == 0 {
		needs = append(needs, needIP, needEthtool) // for the kernel's TCP over a veth pair
	}
	if err := d.setUp(ctx, needs); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "ndpip-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	// Built and then run, since "go run" does not hand SIGTERM on.
	program := filepath.Join(tmp, "bench")
	build := d.goJob(5*time.Minute, "build", "-o", program, ".")
	build.dir = filepath.Join(d.root, "bench")
	d.out.Status("building the benchmarks")
	if err := d.run(ctx, build); err != nil {
		return err
	}
	d.out.Status("")
	huge := &hugepages{}
	if !onlyHelp(args) {
		huge = d.takeHugepages()
	}
	defer huge.giveBack()
	err = d.attach(ctx, here, append([]string{program}, args...))
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 2 {
		return usagef("bench: what was wrong with the options stands above")
	}
	return err
}

// onlyHelp says whether the program will only say something about itself.
func onlyHelp(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		return slices.Contains([]string{"-h", "-help", "--help", "-list", "--list"}, a)
	})
}
