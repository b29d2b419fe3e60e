package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// links runs the experiments with congestion controls on long paths. They are in virtual time, in the simulator: what they
// need of the stack is the program stack/sim/links, which has the options, says what is wrong, and ends with this program's
// exit statuses.
func links(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	root, err := findRoot()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ndpip-exp-links-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "links")
	if err := goCommand(ctx, root, nil, "build", "-buildvcs=false", "-o", program, "./stack/sim/links"); err != nil {
		return err
	}
	c := exec.CommandContext(ctx, program, append(args, "--root", root)...)
	c.Stdout, c.Stderr = stdout, stderr
	err = c.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return errInterrupted
	case errors.As(err, &exit) && exit.Exited():
		return saidError(exit.ExitCode())
	}
	return err
}
