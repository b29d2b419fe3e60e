package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a row of docs/rfc9293.md may say of a requirement: the state, and behind a colon why. Only done needs no reason.
const (
	stateDone   = "done"
	stateByWill = "left out by design"
	stateNotYet = "not yet"
)

var rowStates = []string{stateDone, stateByWill, stateNotYet}

// rfcRow is one row of a table of docs/rfc9293.md.
type rfcRow struct {
	line                             int
	id, text, section, state, reason string
	where, tests                     string
}

// rfcColumns is the head of every table there.
const rfcColumns = "| | requirement | section | state | where | tests |"

// readRFC reads the rows of all tables.
func readRFC(t *testing.T, text string) []rfcRow {
	t.Helper()
	var rows []rfcRow
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || line == rfcColumns || strings.HasPrefix(line, "|---") {
			continue
		}
		f := strings.Split(strings.Trim(line, "|"), "|")
		require.Len(t, f, 6, "line %d has not six columns: %s", n, line)
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		state, reason, _ := strings.Cut(f[3], ": ")
		rows = append(rows, rfcRow{line: n, id: f[0], text: f[1], section: f[2], state: state, reason: reason, where: f[4], tests: f[5]})
	}
	return rows
}

// wantIDs are the numbers of RFC 9293 appendix B. Some have several lines there, and so several rows here.
func wantIDs() []string {
	var ids []string
	for _, s := range []struct {
		prefix string
		last   int
	}{{"MUST", 69}, {"SHLD", 31}, {"MAY", 18}, {"REC", 1}} {
		for i := range s.last {
			ids = append(ids, fmt.Sprintf("%s-%d", s.prefix, i+1))
		}
	}
	return ids
}

// tree is the Go code: the text of each file, by its path, and the tests in it by name.
type tree struct {
	text  map[string]string
	tests map[string][]string // files
}

var testName = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w*)\(`)

func goTree(t *testing.T) tree {
	d := testDev(t)
	tr := tree{map[string]string{}, map[string][]string{}}
	for _, path := range d.files(func(path string, _ fs.DirEntry) bool { return filepath.Ext(path) == ".go" }) {
		text, err := os.ReadFile(filepath.Join(d.root, path))
		if os.IsNotExist(err) {
			continue // a file of the repository that is about to be deleted
		}
		require.NoError(t, err)
		tr.text[filepath.ToSlash(path)] = string(text)
		if strings.HasSuffix(path, "_test.go") {
			for _, m := range testName.FindAllStringSubmatch(string(text), -1) {
				tr.tests[m[1]] = append(tr.tests[m[1]], path)
			}
		}
	}
	return tr
}

// namedTest finds what looks like the name of a test in a text.
var namedTest = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z0-9]\\w*)[`/$]")

// TestRFCRows holds docs/rfc9293.md to its form: each requirement of appendix B has its row, a state out of three, and a
// reason where it is not done; what is done is in some file and has a test.
func TestRFCRows(t *testing.T) {
	d := testDev(t)
	rows := readRFC(t, readText(filepath.Join(d.root, "docs", "rfc9293.md")))
	tr := goTree(t)
	seen, states := map[string]int{}, map[string]int{}
	for _, r := range rows {
		seen[r.id]++
		states[r.state]++
		if !slices.Contains(rowStates, r.state) {
			t.Errorf("docs/rfc9293.md:%d: %s: state %q: want one of %s, and what else there is to say behind a colon", r.line, r.id,
				r.state, strings.Join(rowStates, ", "))
		}
		if r.state != stateDone && r.reason == "" {
			t.Errorf("docs/rfc9293.md:%d: %s: say why it is %s", r.line, r.id, r.state)
		}
		if r.text == "" || r.section == "" {
			t.Errorf("docs/rfc9293.md:%d: %s: the requirement and its section are missing", r.line, r.id)
		}
		if r.state == stateDone && (r.where == "" || !namedTest.MatchString(r.tests)) {
			t.Errorf("docs/rfc9293.md:%d: %s is done: say where, and which test shows it", r.line, r.id)
		}
		tr.holds(t, r)
	}
	for _, id := range wantIDs() {
		if seen[id] == 0 {
			t.Errorf("docs/rfc9293.md: %s of RFC 9293 appendix B has no row", id)
		}
	}
	counted := "counted "
	if testing.Short() {
		counted = "" // the test run adds up what is counted, and only its first run is not short
	}
	for _, s := range rowStates {
		t.Logf("%s%d RFC requirements %s", counted, states[s], s)
	}
}

// holds checks the column "where": `FILE: NAME, NAME` in backquotes, each a file and what it defines.
func (tr tree) holds(t *testing.T, r rfcRow) {
	t.Helper()
	for _, m := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(r.where, -1) {
		file, names, _ := strings.Cut(m[1], ": ")
		text, ok := tr.text[file]
		if !ok {
			t.Errorf("docs/rfc9293.md:%d: %s: there is no file %s", r.line, r.id, file)
			continue
		}
		defined := definitions(t, file, text)
		for name := range strings.SplitSeq(names, ", ") {
			if name != "" && !defined[name] {
				t.Errorf("docs/rfc9293.md:%d: %s: %s does not define %s; it has %s", r.line, r.id, file, name,
					strings.Join(slices.Sorted(maps.Keys(defined)), ", "))
			}
		}
	}
}

// definitions are the names that a file defines: functions, methods, types, constants, variables and fields.
func definitions(t *testing.T, file, text string) map[string]bool {
	f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	require.NoError(t, err)
	found := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			found[n.Name.Name] = true
		case *ast.TypeSpec:
			found[n.Name.Name] = true
		case *ast.ValueSpec:
			for _, name := range n.Names {
				found[name.Name] = true
			}
		case *ast.Field:
			for _, name := range n.Names {
				found[name.Name] = true
			}
		}
		return true
	})
	return found
}

// TestNamedTestsExist looks for each test that a document names in backquotes.
func TestNamedTestsExist(t *testing.T) {
	d := testDev(t)
	tr := goTree(t)
	docs, err := filepath.Glob(filepath.Join(d.root, "docs", "*.md"))
	require.NoError(t, err)
	named := 0
	for _, path := range docs {
		n := 0
		for line := range strings.Lines(readText(path)) {
			n++
			for _, m := range namedTest.FindAllStringSubmatch(line, -1) {
				if named++; tr.tests[m[1]] == nil {
					t.Errorf("docs/%s:%d: there is no test %s", filepath.Base(path), n, m[1])
				}
			}
		}
	}
	require.NotZero(t, named)
	t.Logf("%d names of tests, %d tests", named, len(tr.tests))
}

var link = regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)

// TestLinks looks where the documents' links go, and that the README has one to each document.
func TestLinks(t *testing.T) {
	d := testDev(t)
	linked := map[string]bool{}
	for _, path := range d.files(func(path string, _ fs.DirEntry) bool { return filepath.Ext(path) == ".md" }) {
		for _, m := range link.FindAllStringSubmatch(readText(filepath.Join(d.root, path)), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			to := filepath.Join(filepath.Dir(path), m[1])
			if _, err := os.Stat(filepath.Join(d.root, to)); err != nil {
				t.Errorf("%s: there is no %s", path, to)
			}
			linked[to] = linked[to] || path == "README.md"
		}
	}
	docs, err := filepath.Glob(filepath.Join(d.root, "docs", "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, docs)
	for _, path := range docs {
		if name := filepath.Join("docs", filepath.Base(path)); !linked[name] {
			t.Errorf("README.md: there is no link to %s", name)
		}
	}
}
