package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The tests install the library as a user does, build the programs of testdata with what pkg-config says, and run them.

// installed is the folder that the library was installed in; it is made by the first test that needs it.
var installed struct {
	sync.Once
	prefix string
	err    error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if installed.prefix != "" {
		_ = os.RemoveAll(installed.prefix)
	}
	os.Exit(code)
}

func prefix(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the library, which takes a minute")
	}
	installed.Do(func() {
		if installed.prefix, installed.err = os.MkdirTemp("", "ndpip-c-"); installed.err != nil {
			return
		}
		cmd := exec.Command("go", "run", "../dev", "install", "--prefix", installed.prefix, "--tags", "ndpipbench")
		if out, err := cmd.CombinedOutput(); err != nil {
			installed.err = fmt.Errorf("%w\n%s", err, out)
		}
	})
	require.NoError(t, installed.err)
	return installed.prefix
}

// linkage is a way to link a program with the library.
type linkage string

const (
	shared  linkage = "so"     // libndpip.so
	archive linkage = "a"      // libndpip.a, with DPDK's shared libraries
	static  linkage = "static" // both as archives
)

var linkages = []linkage{shared, archive}

func (l linkage) flags(t *testing.T) []string {
	t.Helper()
	switch l {
	case archive:
		return append([]string{"-L" + prefix(t) + "/lib", "-l:libndpip.a", "-lresolv", "-pthread", "-lrte_net_ring"}, pkgConfig(t, "--libs", "libdpdk")...)
	case static:
		return pkgConfig(t, "--static", "--libs", "ndpip")
	case shared:
	}
	return append(pkgConfig(t, "--libs", "ndpip"), "-lrte_net_ring", "-pthread", "-Wl,-rpath,"+prefix(t)+"/lib")
}

func pkgConfig(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.Command("pkg-config", args...)
	cmd.Env = append(os.Environ(), "PKG_CONFIG_PATH="+prefix(t)+"/lib/pkgconfig")
	out, err := cmd.Output()
	require.NoError(t, err, "pkg-config %v", args)
	return strings.Fields(string(out))
}

var strict = []string{"-O2", "-g", "-Wall", "-Wextra", "-Werror"}

// compile builds a program of testdata.
func compile(t *testing.T, name string, l linkage, compiler ...string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), name)
	args := slices.Concat(compiler, strict, pkgConfig(t, "--cflags", "ndpip"), []string{"-Itestdata", filepath.Join("testdata", name+".c"), "-o", to})
	if compiler[0] == "g++" {
		args = append(args, "-x", "none") // what follows is no source
	}
	out, err := exec.Command(args[0], append(args[1:], l.flags(t)...)...).CombinedOutput()
	require.NoError(t, err, "%s:\n%s", strings.Join(args, " "), out)
	return to
}

var (
	c11 = []string{"gcc", "-std=c11"}
	cpp = []string{"g++", "-std=c++17", "-x", "c++"}
)

// program is one that was started.
type program struct {
	cmd  *exec.Cmd
	out  bytes.Buffer
	stop context.CancelFunc
}

// limit is how long a program may run.
const limit = 2 * time.Minute

// start runs a program with two lcores, with devices as EAL arguments, and args as its own.
func start(t *testing.T, path string, devices []string, args ...string) *program {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), limit)
	dir := t.TempDir()
	eal := []string{"--no-huge", "-m", "192", "--no-shconf", "--no-pci", "--file-prefix=" + filepath.Base(path) + filepath.Base(dir),
		"--lcores=0@" + cpus(t) + ",1@" + cpus(t)}
	for _, d := range devices {
		eal = append(eal, "--vdev="+d)
	}
	p := &program{cmd: exec.CommandContext(ctx, path, slices.Concat(eal, []string{"--"}, args)...), stop: stop}
	p.cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "RUNTIME_DIRECTORY="+dir)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	p.cmd.WaitDelay = time.Second
	require.NoError(t, p.cmd.Start())
	return p
}

// wait waits for the end, which has to be a good one, and gives what was printed.
func (p *program) wait(t *testing.T) string {
	t.Helper()
	defer p.stop()
	err := p.cmd.Wait()
	require.NoError(t, err, "%s:\n%s", filepath.Base(p.cmd.Path), &p.out)
	require.True(t, strings.HasSuffix(p.out.String(), "ok\n"), "%s did not come to its end:\n%s", filepath.Base(p.cmd.Path), &p.out)
	return p.out.String()
}

// cpus is the CPUs that this process may run on, as the EAL takes them for one lcore.
func cpus(t *testing.T) string {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		if l, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			return "(" + strings.TrimSpace(l) + ")"
		}
	}
	return "(0)"
}

// memif are the two ends of a wire.
func memif(t *testing.T) (server, client string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	end := func(role string) string {
		return "net_memif0,role=" + role + ",id=0,socket=" + socket + ",socket-abstract=no,bsize=2048,rsize=11"
	}
	return end("server"), end("client")
}

// TestOneProcess runs the programs with two interfaces in one process.
func TestOneProcess(t *testing.T) {
	for _, l := range linkages {
		for _, name := range []string{"errnos", "pbuf", "again", "attach"} {
			t.Run(string(l)+"/"+name, func(t *testing.T) {
				start(t, compile(t, name, l, c11...), nil).wait(t)
			})
		}
	}
}

// TestOverMemif runs two processes.
func TestOverMemif(t *testing.T) {
	type side struct {
		name, args string
		devices    []string
	}
	for _, c := range []struct {
		name           string
		server, client side
	}{
		{"bulk three times", side{"bulk", "recv copy 30 3 2 1", nil}, side{"bulk", "send copy 30 3 1 2", nil}},
		{"bulk without a copy to all", side{"bulk", "recv zero 30 1 2 1 all", nil}, side{"bulk", "send zero 30 1 1 2 all", nil}},
		{"echo", side{"echo", "serve 100", nil}, side{"echo", "call 100 20", nil}},
		{"l2fwd", side{"l2fwd", "10", []string{"net_ring0"}}, side{"bulk", "send copy 10 1 1 2", nil}},
	} {
		for _, l := range linkages {
			if l == archive && c.name != "echo" {
				continue // TestOneProcess has the same calls, linked in both ways
			}
			t.Run(string(l)+"/"+c.name, func(t *testing.T) {
				atServer, atClient := memif(t)
				serve, call := compile(t, c.server.name, l, c11...), compile(t, c.client.name, l, c11...)
				server := start(t, serve, append([]string{atServer}, c.server.devices...), strings.Fields(c.server.args)...)
				client := start(t, call, append([]string{atClient}, c.client.devices...), strings.Fields(c.client.args)...)
				client.wait(t)
				server.wait(t)
			})
		}
	}
}

// TestCPlusPlus builds all programs as C++, and runs one.
func TestCPlusPlus(t *testing.T) {
	sources, err := filepath.Glob("testdata/*.c")
	require.NoError(t, err)
	require.NotEmpty(t, sources)
	for _, s := range sources {
		name := strings.TrimSuffix(filepath.Base(s), ".c")
		path := compile(t, name, shared, cpp...)
		if name == "pbuf" {
			start(t, path, nil).wait(t)
		}
	}
}

// TestHeaders compiles each header by itself, without DPDK's headers or flags, and twice in a row.
func TestHeaders(t *testing.T) {
	headers, err := filepath.Glob("include/ndpip/*.h")
	require.NoError(t, err)
	require.Len(t, headers, 4)
	for _, compiler := range [][]string{c11, {"gcc", "-std=gnu17"}, cpp} {
		for _, h := range headers {
			name := "<ndpip/" + filepath.Base(h) + ">"
			args := slices.Concat(compiler, strict, []string{"-pedantic", "-fsyntax-only", "-Iinclude", "-x"})
			args = append(args, map[bool]string{true: "c++", false: "c"}[compiler[0] == "g++"], "-")
			cmd := exec.Command(args[0], args[1:]...)
			cmd.Stdin = strings.NewReader("#include " + name + "\n#include " + name + "\n")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s with %v:\n%s", name, compiler, out)
		}
	}
}

// TestStatic links with "pkg-config --static", where DPDK itself can be linked so.
func TestStatic(t *testing.T) {
	args := append([]string{"-x", "c", "-", "-o", filepath.Join(t.TempDir(), "nothing")}, pkgConfig(t, "--static", "--libs", "libdpdk")...)
	cmd := exec.Command("gcc", args...)
	cmd.Stdin = strings.NewReader("int main(void) { return 0; }")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Logf("DPDK's archives cannot be linked on this machine:\n%s", out)
		return
	}
	path := compile(t, "again", static, c11...)
	libs, err := exec.Command("ldd", path).Output()
	require.NoError(t, err)
	require.NotContains(t, string(libs), "librte_")
	require.NotContains(t, string(libs), "libndpip")
	start(t, path, nil).wait(t)
}

// mostTimes is how many times as long as a write from Go one through the library may take. It is some 90 ns more, 1.5 to 1.7 times
// on a slow processor; the figures that count are printed.
const mostTimes = "2.5"

// TestCallCost prints what a call through the library costs over one from Go.
func TestCallCost(t *testing.T) {
	for _, l := range linkages {
		out := start(t, compile(t, "cost", l, c11...), nil, mostTimes).wait(t)
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, "a write of one segment") {
				t.Logf("%s: %s", l, line)
			}
		}
	}
}

// TestExample builds the C program of docs/examples.
func TestExample(t *testing.T) {
	for _, compiler := range [][]string{c11, cpp} {
		args := slices.Concat(compiler, strict, pkgConfig(t, "--cflags", "ndpip"), []string{"../../docs/examples/epoll/server.c", "-o", filepath.Join(t.TempDir(), "server")})
		if compiler[0] == "g++" {
			args = append(args, "-x", "none")
		}
		out, err := exec.Command(args[0], append(args[1:], shared.flags(t)...)...).CombinedOutput()
		require.NoError(t, err, "%s:\n%s", strings.Join(args, " "), out)
	}
}
