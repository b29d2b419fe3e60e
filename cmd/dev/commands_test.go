package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// documented are the programs whose commands in the documents are checked, and those of their verbs that have a help of
// their own.
var documented = map[string]string{
	"ndpip-perf": "recv send ping conn", "ndpip-cat": "", "ndpip-stat": "", "ndpip-exp": "", "linux-perf": "",
	"dev": "demo test bench lint install doctor soak",
}

// command is a line of a document that calls a program of ours.
type command struct {
	at, program string
	args        []string
}

var (
	commandEnd = regexp.MustCompile(`\s(\||;|&&|&|#)(\s|$)`)
	word       = regexp.MustCompile(`"[^"]*"|\S+`)
)

// commands finds our programs in the blocks without a language of a document.
func commands(name, text string) (all []command) {
	fenced, plain := false, false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			plain = fenced && strings.TrimSpace(line) == "```"
			continue
		}
		if !plain {
			continue
		}
		line, _, _ = strings.Cut(" "+line, " #")
		for _, part := range commandEnd.Split(line, -1) {
			words := word.FindAllString(part, -1)
			for i, w := range words {
				program := filepath.Base(w)
				if _, ok := documented[program]; !ok || i > 0 && words[i-1] != "run" {
					continue
				}
				if words[0] == "go" && !strings.HasPrefix(w, "./cmd/") {
					continue
				}
				all = append(all, command{at: name + ": " + strings.TrimSpace(part), program: program, args: words[i+1:]})
				break
			}
		}
	}
	return all
}

// TestDocumentedCommands looks at each command in the documents: its program takes such a verb and such options. What the
// programs can check without a port they check (--print-config).
func TestDocumentedCommands(t *testing.T) {
	d := testDev(t)
	dir := t.TempDir()
	var pkgs []string
	for name := range documented {
		pkgs = append(pkgs, "./cmd/"+name)
	}
	build := d.goJob(5*time.Minute, append([]string{"build", "-o", dir + "/"}, pkgs...)...)
	require.NoError(t, d.run(t.Context(), build))
	docs, err := filepath.Glob(filepath.Join(d.root, "docs", "*.md"))
	require.NoError(t, err)
	docs = append(docs, filepath.Join(d.root, "README.md"), filepath.Join(d.root, ".github", "CONTRIBUTING.md"))
	helps := map[string]string{}
	help := func(program, verb string) string {
		key := program + " " + verb
		if helps[key] == "" {
			args := append(strings.Fields(verb), "--help")
			out, err := exec.Command(filepath.Join(dir, program), args...).CombinedOutput()
			require.NoError(t, err, "%s: %s", key, out)
			helps[key] = string(out)
		}
		return helps[key]
	}
	count := 0
	for _, path := range docs {
		for _, c := range commands(filepath.Base(path), readText(path)) {
			count++
			verb := ""
			if len(c.args) > 0 && strings.Contains(" "+documented[c.program]+" ", " "+c.args[0]+" ") {
				verb = c.args[0]
			} else if documented[c.program] != "" {
				t.Errorf("%s: %s has no such verb: want one of %s", c.at, c.program, documented[c.program])
				continue
			}
			if testing.Short() && c.program == "dev" && verb == "bench" {
				continue // builds a module whose dependencies only the whole run is sure to have
			}
			if verb == "bench" && len(c.args) > 1 && !strings.HasPrefix(c.args[1], "-") {
				verb += " " + c.args[1] // which has a help of its own
			}
			text := help(c.program, verb)
			for _, a := range c.args {
				name, _, _ := strings.Cut(a, "=")
				if strings.HasPrefix(name, "--") && len(name) > 2 && !regexp.MustCompile(regexp.QuoteMeta(name)+`\b`).MatchString(text) {
					t.Errorf("%s: %s has no option %s", c.at, c.program, name)
				}
			}
			if (c.program == "ndpip-perf" || c.program == "ndpip-cat") && !strings.Contains(c.at, "…") {
				out, err := exec.Command(filepath.Join(dir, c.program), append(c.args, "--print-config")...).CombinedOutput()
				require.NoError(t, err, "%s: %s", c.at, out)
			}
		}
	}
	require.Greater(t, count, 30)
	t.Logf("%d commands", count)
}
