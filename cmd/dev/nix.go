package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

var needNix = need{"nix", []string{"nix-bin"}, inPath("nix")}

// nixStep is the name by which skips.txt allows that the step is not taken.
const nixStep = "cmd/dev.nix"

// nix evaluates all outputs of the flake, builds programs and library, and runs them, with .nix/substitute in the place of
// nixpkgs, whose README says what that shows. All that Nix keeps lies in a temporary folder; Go's caches are those of
// this user.
func (t *suite) nix() error {
	t.skips.seen(nixStep)
	if t.d.uid != 0 && !needNix.ok(t.ctx, t.d) {
		t.d.out.Printf("  note  not run: nix is not installed, and only root can install it (apt-get install nix-bin)")
		t.tally.skipped++
		if !t.skips.allowed(nixStep, t.conditions()) {
			t.tally.failed++
			t.d.out.Printf("  FAIL  cmd/dev/skips.txt does not allow to skip %s", nixStep)
		}
		return nil
	}
	if err := t.d.setUp(t.ctx, []need{needNix}); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ndpip-nix-")
	if err != nil {
		return err
	}
	defer removeStore(dir)
	n, err := t.d.newNix(t.ctx, dir)
	if err != nil {
		return err
	}
	for _, c := range []struct {
		name string
		run  func() error
	}{
		{"nix flake show", n.show},
		{"nix flake check --no-build", n.check},
		{"nix build, and the demo over memif", n.programs},
		{"nix build of libndpip, and a C program", n.library},
		{"apps.deploy --dry-run", n.deploy},
		{"the testbed's module", n.module},
	} {
		begin := time.Now()
		t.d.out.Status("%s", c.name)
		err := c.run()
		if t.ctx.Err() != nil {
			return context.Cause(t.ctx)
		}
		t.tally.check(t.d.out, c.name, time.Since(begin), err, "")
		if err != nil {
			return nil // what comes after builds on it
		}
	}
	return nil
}

// nixRun is a copy of the tree, and a store of its own.
type nixRun struct {
	ctx  context.Context
	d    *dev
	dir  string
	tree string
	env  []string
}

// newNix copies the tree, since Nix takes one in a Git repository only as far as that is the user's own and has the files.
func (d *dev) newNix(ctx context.Context, dir string) (*nixRun, error) {
	n := &nixRun{ctx: ctx, d: d, dir: dir, tree: filepath.Join(dir, "tree")}
	if err := d.copyFiles(n.tree); err != nil {
		return nil, err
	}
	store := filepath.Join(dir, "nix")
	n.env = []string{
		"NIX_STORE_DIR=" + filepath.Join(store, "store"), "NIX_STATE_DIR=" + filepath.Join(store, "var"),
		"NIX_LOCALSTATE_DIR=" + filepath.Join(store, "var"), "NIX_LOG_DIR=" + filepath.Join(store, "log"),
		"NIX_CONF_DIR=" + filepath.Join(store, "etc"), "NIX_REMOTE=", "XDG_CACHE_HOME=" + filepath.Join(store, "cache"),
		"NIX_CONFIG=experimental-features = nix-command flakes\nsandbox = false\nbuild-users-group =\nsubstituters =\nflake-registry =\n",
		"PATH=" + filepath.Dir(d.goTool) + ":" + os.Getenv("PATH"),
	}
	out, err := d.output(ctx, d.goJob(time.Minute, "env", "-json", "GOCACHE", "GOMODCACHE", "GOPROXY"))
	if err != nil {
		return nil, err
	}
	var goEnv map[string]string
	if err := json.Unmarshal([]byte(out), &goEnv); err != nil {
		return nil, err
	}
	for name, value := range goEnv {
		n.env = append(n.env, name+"="+value)
	}
	return n, nil
}

// run runs nix with the substitute; words behind "--" are those of the program that is run. The output is given without
// nix's own lines on standard error.
func (n *nixRun) run(args ...string) (string, error) {
	with := []string{"--override-input", "nixpkgs", "path:" + filepath.Join(n.tree, ".nix", "substitute"), "--no-write-lock-file"}
	at := len(args)
	for i, a := range args {
		if a == "--" {
			at = i
			break
		}
	}
	argv := append([]string{commandPath("nix")}, args[:at]...)
	argv = append(append(argv, with...), args[at:]...)
	return n.d.output(n.ctx, job{argv: argv, dir: n.dir, env: n.env, limit: 10 * time.Minute})
}

func (n *nixRun) flake(attribute string) string { return "path:" + n.tree + "#" + attribute }

// build builds an output and gives its path.
func (n *nixRun) build(attribute string) (string, error) {
	link := filepath.Join(n.dir, "result")
	if _, err := n.run("build", "--impure", "-L", "-o", link, n.flake(attribute)); err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(link)
}

// outputs are those that a user comes for.
var outputs = []string{
	"apps default", "apps deploy", "apps ndpip-cat", "apps ndpip-doctor", "apps ndpip-perf", "checks libndpip", "checks ndpip",
	"checks tests", "checks vm", "devShells default", "packages default", "packages deploy", "packages dpdk",
	"packages dpdk-haswell-static", "packages libndpip", "packages libndpip-ivybridge", "packages libndpip-static",
	"packages ndpip", "packages ndpip-skylake-avx512", "packages ndpip-static", "formatter", "nixosModules", "overlays",
}

func (n *nixRun) show() error {
	out, err := n.run("flake", "show", "--json", "path:"+n.tree)
	if err != nil {
		return err
	}
	var shown map[string]map[string]json.RawMessage
	if err := json.Unmarshal([]byte(lastLine(out)), &shown); err != nil {
		return fmt.Errorf("%w\n%s", err, tailOf(out, tailLines))
	}
	var missing []string
	for _, o := range outputs {
		kind, name, named := strings.Cut(o, " ")
		var of map[string]json.RawMessage
		_ = json.Unmarshal(shown[kind]["x86_64-linux"], &of)
		if shown[kind] == nil || named && of[name] == nil {
			missing = append(missing, o)
		}
	}
	if missing != nil {
		return fmt.Errorf("the flake has no %s", strings.Join(missing, ", "))
	}
	return nil
}

func (n *nixRun) check() error {
	_, err := n.run("flake", "check", "--no-build", "path:"+n.tree)
	return err
}

// programs builds them and runs the demo over shared memory with them.
func (n *nixRun) programs() error {
	at, err := n.build("ndpip")
	if err != nil {
		return err
	}
	r := &demo{ctx: n.ctx, d: n.d, o: demoOptions{seconds: 1, size: 8}, dir: n.dir, perf: filepath.Join(at, "bin", "ndpip-perf"), file: filepath.Join(n.dir, "file")}
	if r.sum, err = writeRandom(r.file, r.o.size<<20); err != nil {
		return err
	}
	return r.memif(1460)
}

// library builds it, and a C program with what pkg-config says of it, which is run.
func (n *nixRun) library() error {
	at, err := n.build("libndpip")
	if err != nil {
		return err
	}
	pc := []string{"PKG_CONFIG_PATH=" + filepath.Join(at, "lib", "pkgconfig")}
	flags, err := n.d.output(n.ctx, job{argv: []string{"pkg-config", "--cflags", "--libs", "ndpip"}, env: pc})
	if err != nil {
		return err
	}
	program, tests := filepath.Join(n.dir, "again"), filepath.Join(n.d.root, "cmd", "libndpip", "testdata")
	argv := append([]string{"gcc", "-O2", "-o", program, "-I" + tests, filepath.Join(tests, "again.c")}, strings.Fields(flags)...)
	argv = append(argv, "-lrte_net_ring", "-pthread", "-Wl,-rpath,"+filepath.Join(at, "lib"))
	if err := n.d.run(n.ctx, job{argv: argv}); err != nil {
		return err
	}
	return n.d.run(n.ctx, job{argv: []string{program, "--no-huge", "-m", "192", "--no-shconf", "--no-pci", "--lcores=0@0,1@0", "--"},
		env: []string{"XDG_RUNTIME_DIR=" + n.dir}})
}

func (n *nixRun) deploy() error {
	return n.plan(filepath.Join(n.tree, "docs", "hosts.toml"))
}

// app builds an app and gives the program that "nix run" starts. "nix run" itself goes back to the machine's mount namespace
// first, and so out of a folder that somebody has changed root to.
func (n *nixRun) app(name string) (string, error) {
	if _, err := n.build(name); err != nil {
		return "", err
	}
	out, err := n.run("eval", "--impure", "--raw", n.flake("apps.x86_64-linux."+name+".program"))
	return lastLine(out), err
}

// plan looks at what the deployment would do with the hosts of a file.
func (n *nixRun) plan(hosts string) error {
	program, err := n.app("deploy")
	if err != nil {
		return err
	}
	out, err := n.d.output(n.ctx, job{argv: []string{program, "--hosts", hosts, "--dry-run"}, dir: n.dir, env: n.env})
	if err != nil {
		return err
	}
	for _, want := range []string{"receiver: ", "sender: ", " copy --to ssh://", "/bin/ndpip-doctor doctor ", "ndpip-exp exp1 ", "ndpip-exp exp2 "} {
		if !strings.Contains(out, want) {
			return fmt.Errorf("the plan has no %q:\n%s", want, indent(out))
		}
	}
	return nil
}

// removeStore removes a folder with a store in it, whose folders nobody may write to.
func removeStore(dir string) {
	_ = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			_ = os.Chmod(path, 0o755)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}

var errNoScript = errors.New("the module has no service that binds the device")
