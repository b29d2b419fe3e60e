package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ordinary is the user that stands for somebody without privilege.
const ordinary = 1000

// asUser tests everything once more as an ordinary user, for whom this run's hugepages are gone. The user gets a copy
// of the tree, since a clone may lie where only root can go, with the modules in it, and a build cache of the user's own
// that begins with what root has built.
func (t *suite) asUser() error {
	if t.d.uid != 0 {
		return nil // this user's own run was it
	}
	t.huge.giveBack()
	if free := readInt(hugeDir + "/free_hugepages"); free > 0 {
		t.d.out.Printf("  (%d hugepages of this machine's own are free; on one without, the tests run without)", free)
	}
	dir, err := os.MkdirTemp("", "ndpip-user-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	begin := time.Now()
	t.d.out.Status("copying the tree")
	if err := t.d.copyTree(t.ctx, dir); err != nil {
		return err
	}
	cache := filepath.Join(dir, "home", "go-build")
	t.d.lendCache(t.ctx, cache)
	j := job{
		dir:  filepath.Join(dir, "tree"),
		user: &syscall.Credential{Uid: ordinary, Gid: ordinary, Groups: []uint32{}},
		env: []string{
			"HOME=" + filepath.Join(dir, "home"), "USER=user", "LOGNAME=user",
			"TMPDIR=" + filepath.Join(dir, "run"), "XDG_RUNTIME_DIR=" + filepath.Join(dir, "run"),
			"GOCACHE=" + cache, "GOMODCACHE=" + filepath.Join(dir, "home", "mod"),
			"GOPROXY=off", "NDPIP_DPDK_TEST_NOHUGE=1",
		},
	}
	build := t.d.goJob(5*time.Minute, "build", "./...")
	build.dir, build.user, build.env = j.dir, j.user, append(build.env, j.env...)
	t.d.out.Status("building as uid %d", ordinary)
	err = t.d.run(t.ctx, build)
	if t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	t.tally.check(t.d.out, "go build ./...", time.Since(begin), err, "")
	// The packages that touch neither a port nor the system behave alike for every user.
	return t.goTest(j, t.conditions(whenUnprivileged, whenNoHuge, whenShort), "-short", oneByOne, "./api/...", "./cmd/...", "./dpdk/...", "./ring/...")
}

// lendCache fills a user's build cache with links to what root's holds and has used of late. The files stay root's: the user
// can read them, and add others. Without it the user builds it all, which takes longer.
func (d *dev) lendCache(ctx context.Context, to string) {
	out, err := d.output(ctx, d.goJob(time.Minute, "env", "GOCACHE"))
	from := strings.TrimSpace(out)
	if err != nil || from == "" || os.MkdirAll(to, 0o700) != nil || os.Lchown(to, ordinary, ordinary) != nil {
		return
	}
	dirs, _ := os.ReadDir(from)
	for _, dir := range dirs {
		if !dir.IsDir() || len(dir.Name()) != 2 { // 00 to ff
			continue
		}
		sub := filepath.Join(to, dir.Name())
		if os.Mkdir(sub, 0o700) != nil || os.Lchown(sub, ordinary, ordinary) != nil {
			return
		}
		files, _ := os.ReadDir(filepath.Join(from, dir.Name()))
		for _, f := range files {
			if info, err := f.Info(); err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) < 2*time.Hour {
				if os.Link(filepath.Join(from, dir.Name(), f.Name()), filepath.Join(sub, f.Name())) != nil {
					return // another file system
				}
			}
		}
	}
}

// copyFiles copies the tree's files.
func (d *dev) copyFiles(dir string) (err error) {
	for _, rel := range d.files(func(string, fs.DirEntry) bool { return true }) {
		to := filepath.Join(dir, rel)
		text, readErr := os.ReadFile(filepath.Join(d.root, rel))
		if errors.Is(readErr, fs.ErrNotExist) {
			continue // a file that went away in between
		}
		err = errors.Join(err, readErr, os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, text, 0o755))
	}
	return err
}

// copyTree copies the tree to dir/tree, with its modules in vendor and a home next to it, all of it the ordinary user's.
func (d *dev) copyTree(ctx context.Context, dir string) error {
	err := errors.Join(os.Chmod(dir, 0o755), d.copyFiles(filepath.Join(dir, "tree")))
	if err == nil {
		err = d.run(ctx, d.goJob(2*time.Minute, "mod", "vendor", "-o", filepath.Join(dir, "tree", "vendor")))
	}
	for _, sub := range []string{"home", "run"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(dir, sub), 0o700))
	}
	return errors.Join(err, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		return os.Lchown(path, ordinary, ordinary)
	}))
}
