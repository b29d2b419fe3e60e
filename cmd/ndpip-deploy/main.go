// Command ndpip-deploy takes ndpip to the two hosts of a testbed: it copies the programs there with Nix, looks whether the
// hosts are ready, and runs the experiments, whose results are written here. 'ndpip-deploy --help' explains the options.
//
// The flake's app "deploy" is this program with the store path of the programs: nix run .#deploy -- --hosts hosts.toml
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"ndpip/cmd/internal/hosts"
)

//go:embed help.txt
var help string

// usageError is a fault in the command line.
type usageError struct{ error }

func usagef(format string, a ...any) error { return usageError{fmt.Errorf(format, a...)} }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program; it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := deploy(ctx, args, stdout, stderr)
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errHelp):
		fmt.Fprint(stdout, help)
		return 0
	}
	fmt.Fprintln(stderr, "ndpip-deploy:", err)
	if errors.As(err, &usage) {
		return 2
	}
	return 1
}

func deploy(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	pair, err := hosts.Read(o.hosts)
	if err != nil {
		return err
	}
	p := o.plan(pair)
	if o.dryRun {
		fmt.Fprint(stdout, p)
		return nil
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	// The file that the experiments read names the programs that were copied.
	if err := os.WriteFile(o.hostFile(), hosts.Format(pair), 0o644); err != nil {
		return err
	}
	return p.perform(ctx, stdout, stderr)
}

// perform does the steps in their order, up to the first that fails.
func (p plan) perform(ctx context.Context, stdout, stderr io.Writer) error {
	for _, part := range p {
		fmt.Fprintln(stdout, part.title)
		for _, s := range part.steps {
			fmt.Fprintf(stdout, "  %s\n", s)
			cmd := exec.CommandContext(ctx, s.argv[0], s.argv[1:]...)
			cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, stdout, stderr
			cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // ndpip-exp keeps what is done
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("%s: %s: %w", part.name, s.fault, err)
			}
		}
	}
	return nil
}

// step is one command.
type step struct {
	argv  []string
	dir   string // "": here
	fault string // what did not go well if it fails
}

// String is the command as a shell takes it.
func (s step) String() string {
	var words []string
	for _, a := range s.argv {
		if a == "" || strings.ContainsAny(a, " \t\n'\"\\$&|;<>()*?[]#~") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	line := strings.Join(words, " ")
	if s.dir != "" {
		line = "cd " + s.dir + " && " + line
	}
	return line
}

// part is what is done for one host, or here.
type part struct {
	name, title string
	steps       []step
}

type plan []part

func (p plan) String() string {
	var b strings.Builder
	for _, part := range p {
		fmt.Fprintln(&b, part.title)
		for _, s := range part.steps {
			fmt.Fprintf(&b, "  %s\n", s)
		}
	}
	return b.String()
}

// plan says what is done. The hosts' programs become those that are copied.
func (o *options) plan(pair *hosts.Pair) plan {
	var p plan
	for _, end := range []struct {
		name string
		h    *hosts.Host
	}{{"receiver", &pair.Receiver}, {"sender", &pair.Sender}} {
		end.h.Programs = filepath.Join(o.programs, "bin")
		p = append(p, part{end.name, describe(end.name, end.h), []step{
			{argv: []string{"nix", "--extra-experimental-features", "nix-command", "copy", "--to", "ssh://" + end.h.SSH, o.programs},
				fault: "the programs could not be copied"},
			{argv: append([]string{"ssh", end.h.SSH}, doctor(end.h)...),
				fault: "the host is not ready, as said above (docs/testbed.md)"},
		}})
	}
	if len(o.experiments) == 0 {
		return p
	}
	here := part{name: "experiments", title: "here, with the results in " + o.out}
	for _, name := range o.experiments {
		argv := []string{"ndpip-exp", name, "--hosts", o.hostFile(), "--out", filepath.Join(o.out, name)}
		here.steps = append(here.steps, step{argv: append(argv, o.rest...), dir: o.tree, fault: name + " is not complete"})
	}
	return append(p, here)
}

// hostFile is where the hosts' description with the copied programs is written.
func (o *options) hostFile() string { return filepath.Join(o.out, "hosts.toml") }

// doctor is the command that looks at a host.
func doctor(h *hosts.Host) []string {
	argv := []string{h.Program("ndpip-doctor"), "doctor", "--runtime", "--cpus", cpus(h)}
	if h.PCI != "" {
		argv = append(argv, "--pci", h.PCI)
	}
	if h.Driver != "" {
		argv = append(argv, "--driver", h.Driver)
	}
	return argv
}

func cpus(h *hosts.Host) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(h.Lcores), " ", ","), "[]")
}

func describe(name string, h *hosts.Host) string {
	text := fmt.Sprintf("%s: %s, %s on %s", name, h.SSH, h.Address, h.Port())
	if h.Driver != "" {
		text += " (" + h.Driver + ")"
	}
	return fmt.Sprintf("%s, CPUs %s, checksums: %s", text, cpus(h), h.Checksum)
}
