// Command bench measures the data path: `go run ./cmd/dev bench` builds and runs it.
//
// A row is one way of moving segments, at one MSS and one number of connections. Each is measured in short samples, in
// turn with the floor loop (floor.go), because the machine's speed drifts and only what is measured at the same time
// can be compared. The figure that counts is the ratio of the two.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"
	"time"
)

// usageError is wrong use: exit status 2.
type usageError struct{ msg string }

func (e usageError) Error() string { return e.msg }

func usagef(format string, a ...any) error { return usageError{fmt.Sprintf(format, a...)} }

func main() {
	err := realMain(os.Args[1:])
	atEnd.run()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	var usage usageError
	if errors.As(err, &usage) {
		os.Exit(2)
	}
	os.Exit(1)
}

func realMain(args []string) error {
	ctx, stop := untilStopped()
	defer stop()
	if len(args) > 0 && args[0] == "pause" {
		return pause(ctx, args[1:])
	}
	if len(args) > 0 && args[0] == "counters" {
		return counters(ctx, args[1:])
	}
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		printHelp(os.Stdout)
		return nil
	}
	if err != nil {
		return err
	}
	rows := o.choose(allRows())
	if len(rows) == 0 {
		return usagef("no row is left by --only, --mss, --connections, --checksum and --quick together (--list shows all rows)")
	}
	if o.list {
		return list(os.Stdout, rows)
	}
	var before *stored
	if o.compare != "" {
		if before, err = load(o.compare); err != nil {
			return fmt.Errorf("--compare: %w", err)
		}
	}
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	results, err := runAll(ctx, o, rows)
	if len(results) > 0 {
		if e := o.publish(results, before); err == nil {
			err = e
		}
	}
	return err
}

// publish prints and keeps what was measured.
func (o *options) publish(results []result, before *stored) error {
	switch o.format {
	case "text":
		tableOf(os.Stdout, results).Render()
		fmt.Print(legend)
	case "markdown":
		tableOf(os.Stdout, results).RenderMarkdown()
	}
	if o.save != "" {
		if err := save(o.save, results); err != nil {
			return fmt.Errorf("--save: %w", err)
		}
	}
	if before != nil {
		out := io.Writer(os.Stdout)
		if o.format == "json" {
			out = os.Stderr
		}
		printComparison(out, before, results)
	}
	return nil
}

// untilStopped is a context that ends on SIGINT and SIGTERM and when the parent goes away. Whoever does not end within
// a few seconds of it is ended: a program that polls must not be left behind.
func untilStopped() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	sig := make(chan os.Signal, 2)
	signal.Notify(sig, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	parent := os.Getppid()
	tick := time.NewTicker(250 * time.Millisecond)
	end := func(why error) {
		cancel(why)
		time.Sleep(3 * time.Second)
		fmt.Fprintln(os.Stderr, "bench:", why, "- and did not end by itself")
		atEnd.run()
		os.Exit(1)
	}
	go func() {
		for {
			select {
			case s := <-sig:
				end(fmt.Errorf("stopped by %v", s))
			case <-tick.C:
				if os.Getppid() != parent {
					end(errors.New("the process that started this one is gone"))
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
