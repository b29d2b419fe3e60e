package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// imports is the import rule. "a, b < c" says that c may import a and b; what is not said is forbidden. A name also
// stands for the packages below it, which may import each other, unless these have a line of their own.
const imports = `
	# Below the sockets everything is plain Go, and only dpdk knows DPDK.
	NONE             < ring, dpdk
	ring             < tcp, udp
	ring, dpdk, tcp, udp < stack
	stack, dpdk      < api
	api, dpdk        < cmd, docs/examples

	# The developers' tool runs where nothing is installed yet.
	NONE             < cmd/dev

	# From outside.
	golang.org/x/sys < dpdk, stack, api, cmd, docs/examples
	github.com/cespare/xxhash/v2 < stack
	github.com/spf13/pflag < cmd
	github.com/pelletier/go-toml/v2 < cmd, cmd/internal/hosts
	github.com/HdrHistogram/hdrhistogram-go < cmd/internal/latency

	# Tests may have more.
	github.com/stretchr/testify, golang.org/x/net/nettest, golang.org/x/sys < TESTS
	tcp, udp         < api TESTS
`

// onlyCgo are the folders where import "C" may stand.
var onlyCgo = []string{"dpdk/", "cmd/libndpip/", "docs/examples/"}

// topLevel are the entries that the root folder may have, besides hidden ones.
var topLevel = []string{
	"go.mod", "go.sum", "README.md", "flake.nix", "flake.lock",
	"dpdk", "stack", "tcp", "udp", "ring", "api", "cmd", "bench", "docs",
}

// rules maps each name of the text to what it may import.
func rules(t *testing.T, text string) map[string][]string {
	t.Helper()
	may := map[string][]string{}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(strings.TrimSpace(line), "#")
		if line == "" {
			continue
		}
		left, right, ok := strings.Cut(line, "<")
		require.True(t, ok, "no < in %q", line)
		for _, who := range list(right) {
			what := list(left)
			if slices.Equal(what, []string{"NONE"}) {
				what = nil
			}
			may[who] = append(may[who], what...)
		}
	}
	return may
}

func list(s string) []string {
	var out []string
	for f := range strings.SplitSeq(s, ",") {
		out = append(out, strings.TrimSpace(f))
	}
	return out
}

// within says whether path is name or below it.
func within(path, name string) bool { return path == name || strings.HasPrefix(path, name+"/") }

// owner is the longest name of the rules that pkg is or lies under.
func owner(may map[string][]string, pkg string) string {
	best := ""
	for name := range may {
		if within(pkg, name) && len(name) > len(best) {
			best = name
		}
	}
	return best
}

// forbidden are the imports of pkg, without the standard library's, that the rules do not allow.
func forbidden(may map[string][]string, pkg string, imported []string, test bool) []string {
	own := owner(may, pkg)
	allowed := append(slices.Clone(may[own]), own)
	if test {
		allowed = slices.Concat(allowed, may["TESTS"], may[own+" TESTS"])
	}
	var out []string
	for _, path := range imported {
		inside, ours := strings.CutPrefix(path, "ndpip/")
		first, _, _ := strings.Cut(path, "/")
		if !ours && !strings.Contains(first, ".") {
			continue // the standard library
		}
		if own == "" || !slices.ContainsFunc(allowed, func(name string) bool { return within(inside, name) }) {
			out = append(out, fmt.Sprintf("%s imports %s", pkg, inside))
		}
	}
	return out
}

func TestImportRule(t *testing.T) {
	root, err := findRoot()
	require.NoError(t, err)
	may := rules(t, imports)
	cmd := exec.Command(testDev(t).goTool, "list", "-e", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	seen := 0
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath, Name                   string
			Imports, TestImports, XTestImports []string
		}
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
		seen++
		pkg := strings.TrimPrefix(p.ImportPath, "ndpip/")
		bad := forbidden(may, pkg, p.Imports, false)
		bad = append(bad, forbidden(may, pkg, slices.Concat(p.TestImports, p.XTestImports), true)...)
		for _, b := range bad {
			t.Errorf("%s, which the import rule in cmd/dev/deps_test.go does not allow", b)
		}
	}
	require.Greater(t, seen, 1)
}

func TestImportRuleFindsBreaches(t *testing.T) {
	may := rules(t, imports)
	for _, c := range []struct {
		pkg, imported string
		test, bad     bool
	}{
		{"ring", "sync/atomic", false, false},
		{"ring", "ndpip/tcp", false, true},
		{"tcp", "ndpip/ring", false, false},
		{"tcp", "ndpip/dpdk", false, true},
		{"tcp", "github.com/stretchr/testify/require", false, true},
		{"tcp", "github.com/stretchr/testify/require", true, false},
		{"stack/wire", "ndpip/stack/link", false, false},
		{"stack", "ndpip/stackless", false, true},
		{"stack", "ndpip/api", true, true},
		{"api", "ndpip/tcp", false, true},
		{"api", "ndpip/tcp", true, false},
		{"api", "ndpip/ring", true, true},
		{"cmd/ndpip-perf", "ndpip/cmd/internal/cli", false, false},
		{"cmd/ndpip-perf", "ndpip/stack", false, true},
		{"cmd/dev", "ndpip/api", false, true},
		{"cmd/dev", "ndpip/cmd/internal/cli", false, true},
		{"new", "ndpip/api", false, true},
	} {
		got := forbidden(may, c.pkg, []string{c.imported}, c.test)
		require.Equal(t, c.bad, len(got) > 0, "%s imports %s (test: %v): %v", c.pkg, c.imported, c.test, got)
	}
}

// TestCgoStaysInItsPlace looks at the files and not at what go list says, so that no build tag hides one.
func TestCgoStaysInItsPlace(t *testing.T) {
	d := testDev(t)
	for _, path := range d.files(func(path string, _ fs.DirEntry) bool { return strings.HasSuffix(path, ".go") }) {
		if slices.ContainsFunc(onlyCgo, func(dir string) bool { return strings.HasPrefix(path, dir) }) {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(d.root, path), nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, i := range f.Imports {
			require.NotEqual(t, `"C"`, i.Path.Value, "%s: import \"C\" may stand only in %s", path, strings.Join(onlyCgo, ", "))
		}
	}
}

func TestTopLevel(t *testing.T) {
	d := testDev(t)
	// What git ignores is the developer's own affair. Without git, or in somebody else's tree, every file counts.
	files := d.files(func(string, fs.DirEntry) bool { return true })
	if out, err := d.output(t.Context(), job{argv: []string{"git", "ls-files", "-co", "--exclude-standard"}}); err == nil {
		files = strings.Split(strings.TrimSpace(out), "\n")
	}
	for _, path := range files {
		first, _, _ := strings.Cut(path, "/")
		require.True(t, strings.HasPrefix(first, ".") || slices.Contains(topLevel, first),
			"%s: the root folder holds %s and hidden files alone", path, strings.Join(topLevel, ", "))
	}
}

// TestReadmeExampleBuilds builds the program that the README shows.
func TestReadmeExampleBuilds(t *testing.T) {
	d := testDev(t)
	_, rest, ok := strings.Cut(readText(filepath.Join(d.root, "README.md")), "```go\n")
	require.True(t, ok)
	text, _, ok := strings.Cut(rest, "```")
	require.True(t, ok)
	dir := t.TempDir()
	src := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(src, []byte(text), 0o600))
	require.NoError(t, d.run(t.Context(), d.goJob(3*time.Minute, "build", "-o", filepath.Join(dir, "echo"), src)))
	out, err := d.output(t.Context(), job{argv: []string{"gofmt", "-l", src}})
	require.NoError(t, err)
	require.Empty(t, out, "the README's program is not formatted")
}
