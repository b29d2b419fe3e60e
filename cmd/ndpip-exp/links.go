package main

import (
	"context"
	"errors"
	"io"
	"os/exec"
)

// links runs the experiments with congestion controls on long paths. They are in virtual time, in the simulator: what they
// need of the stack is the program stack/sim/links, which has the options.
func links(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	root, err := findRoot()
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, "go", append([]string{"run", "-buildvcs=false", "./stack/sim/links"}, args...)...)
	c.Dir, c.Stdout, c.Stderr = root, stdout, stderr
	err = c.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case errors.As(err, &exit):
		return usagef("links: the run ended with %v", err) // it has said what is wrong
	}
	return err
}
