// Command dev sets up a machine for ndpip and runs what a developer runs: the demo, the tests, the soak, the
// benchmarks, the lints, the installation of the C library.
//
//	go run ./cmd/dev demo|test|soak|bench|lint|install|doctor [options]
//
// It is pure Go and imports nothing of the project, so it runs where no C compiler and no DPDK are installed yet. Each
// verb looks for what it needs, installs it on Debian and Ubuntu when it runs as root, and otherwise prints the one
// command that does. What it takes from the machine (hugepages, namespaces, files) it gives back at the end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// verb is one thing that dev can do.
type verb struct {
	name  string
	what  string        // one line for the help text
	limit time.Duration // the verb ends within this time, whatever hangs; 0: no limit

	anywhere bool // it needs neither the source tree nor the go command
	flags    func(*flag.FlagSet)
	run      func(ctx context.Context, d *dev, args []string) error
}

func verbs() []verb {
	return []verb{demoVerb(), testVerb(), soakVerb(), benchVerb(), lintVerb(), installVerb(), doctorVerb(), vendorHashVerb()}
}

// dev is what every verb works with.
type dev struct {
	root   string // the folder that holds go.mod
	goTool string // path of the go command
	uid    int
	out    *screen
}

// usageError is wrong use: exit status 2.
type usageError struct{ msg string }

func (e usageError) Error() string { return e.msg }

func usagef(format string, a ...any) error { return usageError{fmt.Sprintf(format, a...)} }

func main() {
	enterOwnRoot()
	os.Exit(report(os.Stderr, realMain(os.Args[1:])))
}

// report says what went wrong, if anything, and gives the exit status: 0 for success, 2 for wrong use, 1 for all else.
func report(w io.Writer, err error) int {
	if err == nil {
		return 0
	}
	var said exitError
	if errors.As(err, &said) {
		return int(said)
	}
	fmt.Fprintln(w, "dev:", err)
	var usage usageError
	if errors.As(err, &usage) {
		return 2
	}
	return 1
}

func realMain(args []string) error {
	if len(args) == 0 {
		return usagef("say what to do: go run ./cmd/dev %s [options] (help tells more)", verbNames("|"))
	}
	if args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		printHelp(os.Stdout)
		return nil
	}
	for _, v := range verbs() {
		if v.name == args[0] {
			return runVerb(v, args[1:])
		}
	}
	return usagef("%q is not a verb: use one of %s", args[0], verbNames(", "))
}

func runVerb(v verb, args []string) error {
	fs := flag.NewFlagSet(v.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard) // wrong use is one line, not the whole help
	if v.flags != nil {
		v.flags(fs)
	}
	rest := args
	if v.flags != nil {
		if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
			printVerbHelp(os.Stdout, v, fs)
			return nil
		} else if err != nil {
			return usagef("%s: %v (go run ./cmd/dev %s --help lists the options)", v.name, err, v.name)
		}
		if rest = fs.Args(); len(rest) > 0 {
			return usagef("%s takes options only, not %q (go run ./cmd/dev %s --help lists them)", v.name, rest[0], v.name)
		}
	}
	d, err := newDev(v.anywhere)
	if err != nil {
		return err
	}
	ctx, stop := untilStopped()
	defer stop()
	if v.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, v.limit,
			fmt.Errorf("%s did not end within %s", v.name, v.limit))
		defer cancel()
	}
	if !v.anywhere && needsOwnRoot() {
		return inOwnRoot(ctx)
	}
	d.tellOfRoot()
	err = v.run(ctx, d, rest)
	d.out.Status("")
	if ctx.Err() != nil {
		return fmt.Errorf("%s stopped early: %w", v.name, context.Cause(ctx))
	}
	return err
}

// untilStopped is a context that ends on SIGINT and SIGTERM, and when the parent goes away: "go run" that is killed
// leaves its program running, and a program that polls must not be left behind.
func untilStopped() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	sig := make(chan os.Signal, 2)
	signal.Notify(sig, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	parent := os.Getppid()
	tick := time.NewTicker(250 * time.Millisecond)
	go func() {
		for {
			select {
			case s := <-sig:
				cancel(fmt.Errorf("%v; cleaned up", s))
			case <-tick.C:
				if os.Getppid() != parent {
					cancel(errors.New("the process that started dev is gone"))
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(sig)
		tick.Stop()
		cancel(nil)
	}
}

func verbNames(sep string) string {
	var names []string
	for _, v := range verbs() {
		names = append(names, v.name)
	}
	return strings.Join(names, sep)
}

func printHelp(w io.Writer) {
	fmt.Fprintf(w, "usage: go run ./cmd/dev %s [options]\n\n", verbNames("|"))
	for _, v := range verbs() {
		fmt.Fprintf(w, "  %-8s%s\n", v.name, v.what)
	}
	fmt.Fprintf(w, "\nEach verb installs what it needs when it runs as root on Debian or Ubuntu; otherwise it prints the command that does.\n")
	fmt.Fprintf(w, "Options of a verb: go run ./cmd/dev VERB --help\n")
}

func printVerbHelp(w io.Writer, v verb, fs *flag.FlagSet) {
	fmt.Fprintf(w, "usage: go run ./cmd/dev %s [options]\n%s\n", v.name, v.what)
	fs.VisitAll(func(f *flag.Flag) {
		kind, text := flag.UnquoteUsage(f)
		fmt.Fprintf(w, "  --%-22s %s\n", strings.TrimSpace(f.Name+" "+kind), text)
	})
}
