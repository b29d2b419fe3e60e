package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// staticcheckVersion is the one that every machine uses, so that a new version cannot turn a build red by itself.
const staticcheckVersion = "v0.8.2"

func lintVerb() verb {
	return verb{
		name: "lint", what: "gofmt, go vet, staticcheck, and shellcheck on the scripts", limit: 10 * time.Minute,
		flags: func(*flag.FlagSet) {},
		run: func(ctx context.Context, d *dev, _ []string) error {
			if err := d.setUp(ctx, append(needsToBuild(), d.needsToLint()...)); err != nil {
				return err
			}
			t := &tally{}
			if err := d.lint(ctx, t); err != nil {
				return err
			}
			return t.close(d.out)
		},
	}
}

func (d *dev) needsToLint() []need {
	if len(d.scripts()) > 0 {
		return []need{needShellcheck}
	}
	return nil
}

// lint runs every lint and counts each as one check. The error is one of dev itself, not of the lints.
func (d *dev) lint(ctx context.Context, t *tally) error {
	mods := d.modules()
	checks := []struct {
		name, mend string
		run        func() error
	}{
		{"gofmt", "gofmt -w on these files", func() error { return d.gofmt(ctx) }},
		{"go vet", "", func() error {
			return d.inEach(ctx, mods, d.goJob(5*time.Minute, "vet", "./..."))
		}},
		{"staticcheck " + staticcheckVersion, "", func() error {
			return d.inEach(ctx, mods, d.goJob(8*time.Minute, "run", "honnef.co/go/tools/cmd/staticcheck@"+staticcheckVersion, "./..."))
		}},
		{"shellcheck", "", func() error {
			scripts := d.scripts()
			if len(scripts) == 0 {
				return nil
			}
			return d.run(ctx, job{argv: append([]string{"shellcheck"}, scripts...)})
		}},
	}
	for _, c := range checks {
		begin := time.Now()
		d.out.Status("lint: %s", c.name)
		err := c.run()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		t.check(d.out, c.name, time.Since(begin), err, c.mend)
	}
	return nil
}

func (d *dev) gofmt(ctx context.Context) error {
	root, err := d.output(ctx, d.goJob(time.Minute, "env", "GOROOT"))
	if err != nil {
		return err
	}
	files := d.files(func(path string, _ fs.DirEntry) bool { return strings.HasSuffix(path, ".go") })
	argv := append([]string{filepath.Join(strings.TrimSpace(root), "bin", "gofmt"), "-l", "-s"}, files...)
	bad, err := d.output(ctx, job{argv: argv})
	if err == nil && strings.TrimSpace(bad) != "" {
		err = errors.New("not formatted (gofmt -s):\n" + indent(bad))
	}
	return err
}

// inEach runs a job in each module.
func (d *dev) inEach(ctx context.Context, mods []string, j job) error {
	for _, dir := range mods {
		j.dir = dir
		if err := d.run(ctx, j); err != nil {
			return err
		}
	}
	return nil
}

// modules are the folders of the tree that hold a go.mod, the root first; without those of examples.
func (d *dev) modules() []string {
	dirs := []string{d.root}
	for _, dir := range d.folders() {
		if dir != "." && !isExample(dir) {
			dirs = append(dirs, filepath.Join(d.root, dir))
		}
	}
	return dirs
}

// examples are the modules of examples: they need what may not be had on every machine.
func (d *dev) examples() []string {
	var dirs []string
	for _, dir := range d.folders() {
		if isExample(dir) {
			dirs = append(dirs, filepath.Join(d.root, dir))
		}
	}
	return dirs
}

func isExample(dir string) bool { return strings.HasPrefix(dir, filepath.Join("docs", "examples")) }

// folders are those that hold a go.mod, by their path from the root.
func (d *dev) folders() (dirs []string) {
	for _, path := range d.files(func(path string, _ fs.DirEntry) bool { return filepath.Base(path) == "go.mod" }) {
		dirs = append(dirs, filepath.Dir(path))
	}
	return dirs
}

// scripts are the shell scripts of the tree: by their name, or by their first line.
func (d *dev) scripts() []string {
	return d.files(func(path string, e fs.DirEntry) bool {
		if strings.HasSuffix(path, ".sh") {
			return true
		}
		if strings.Contains(filepath.Base(path), ".") {
			return false
		}
		f, err := os.Open(filepath.Join(d.root, path))
		if err != nil {
			return false
		}
		defer f.Close()
		head := make([]byte, 64)
		n, _ := f.Read(head)
		first, _, _ := bytes.Cut(head[:n], []byte("\n"))
		return bytes.HasPrefix(first, []byte("#!")) && bytes.HasSuffix(first, []byte("sh"))
	})
}

// files are the regular files of the tree that want takes, by their path from the root.
func (d *dev) files(want func(path string, e fs.DirEntry) bool) []string {
	var out []string
	_ = filepath.WalkDir(d.root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // a file that went away in between
		case e.IsDir() && (e.Name() == ".git" || e.Name() == ".cache" || e.Name() == "vendor"):
			return filepath.SkipDir
		case e.Type().IsRegular():
			if rel, err := filepath.Rel(d.root, path); err == nil && want(rel, e) {
				out = append(out, rel)
			}
		}
		return nil
	})
	return out
}

// tally counts what was checked.
type tally struct {
	passed, failed, skipped int
	extra                   counts
}

// check counts one check that is no Go test and shows how it went.
func (t *tally) check(out *screen, name string, took time.Duration, err error, mend string) {
	if err == nil {
		t.passed++
		out.Printf("  ok    %-44s %6.1f s", name, took.Seconds())
		return
	}
	t.failed++
	out.Printf("  FAIL  %-44s %6.1f s\n%s", name, took.Seconds(), indent(err.Error()))
	if mend != "" {
		out.Printf("    mend: %s", mend)
	}
}

// close prints the closing line, which CI reads, and says whether all went well.
func (t *tally) close(out *screen) error {
	out.Status("")
	for _, line := range t.extra.lines() {
		out.Printf("%s", line)
	}
	out.Printf("%d passed, %d failed, %d skipped", t.passed, t.failed, t.skipped)
	if t.failed > 0 {
		return fmt.Errorf("%d failed; each is shown above after FAIL", t.failed)
	}
	return nil
}
