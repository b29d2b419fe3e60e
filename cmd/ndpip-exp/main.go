// Command ndpip-exp runs the experiments of the SlimTCP paper, and others like them, on one machine or two: it starts
// senders and receivers, repeats, and makes tables and plots. 'ndpip-exp help' explains the options.
//
// It is pure Go and imports nothing of the stack's: the programs that it measures are built when it runs, or lie on the two
// hosts. What draws the plots is the module bench/plot.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

//go:embed help.txt
var help string

// Exit statuses, besides 0.
const (
	statusFault       = 1
	statusUsage       = 2
	statusInterrupted = 130
)

// usageError is a fault in the command line.
type usageError struct{ error }

func usagef(format string, a ...any) error { return usageError{fmt.Errorf(format, a...)} }

// saidError is the exit status of a program that has said what is wrong.
type saidError int

func (e saidError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

var (
	errHelp        = errors.New("help asked for")
	errInterrupted = errors.New("interrupted")
)

func main() {
	// The programs that are started end with the thread that started them.
	runtime.LockOSThread()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is the program; it returns the exit status.
func run(args []string, stdout, stderr io.Writer) int {
	o, err := parse(args)
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if o.verb == "links" {
			err = links(ctx, args[1:], stdout, stderr)
		} else {
			err = perform(ctx, o, stdout, stderr)
		}
	}
	var usage usageError
	var said saidError
	switch {
	case errors.As(err, &said):
		return int(said)
	case errors.Is(err, errHelp):
		fmt.Fprint(stdout, help)
		return 0
	case err == nil:
		return 0
	}
	fmt.Fprintf(stderr, "ndpip-exp: %v\n", err)
	switch {
	case errors.As(err, &usage):
		return statusUsage
	case errors.Is(err, errInterrupted):
		return statusInterrupted
	}
	return statusFault
}

func perform(ctx context.Context, o *options, stdout, stderr io.Writer) error {
	root, err := findRoot()
	if err != nil {
		return err
	}
	if o.verb == "report" {
		st, err := openStore(o.out)
		if err != nil {
			return err
		}
		return report(ctx, root, o, st, stdout, stderr)
	}
	if o.dryRun && !o.resume {
		(&lab{st: &store{about: about{Plan: o.plan}}}).dryRun(stdout)
		return nil
	}
	st, err := o.store(ctx, root)
	if err != nil {
		return err
	}
	defer st.close()
	if o.dryRun {
		(&lab{st: st}).dryRun(stdout)
		return nil
	}
	fmt.Fprintf(stderr, "results in %s\n", st.dir)
	l := &lab{root: root, st: st, stderr: stderr}
	l.make = l.build
	if err := l.perform(ctx); err != nil {
		return err
	}
	// Tables and plots are also made of what an interrupted run has.
	if err := report(context.Background(), root, o, st, stdout, stderr); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w; 'ndpip-exp %s --resume --out %s' goes on", errInterrupted, o.verb, st.dir)
	}
	return st.complete()
}

// stamp is the time in a folder's name.
func stamp(t time.Time) string { return t.Format("20060102-150405") }
