package main

import (
	"context"
	"errors"
	"flag"
)

func demoVerb() verb {
	return verb{
		name: "demo", what: "two processes over shared memory, and as root against the kernel, with a table at the end",
		flags: func(*flag.FlagSet) {},
		run: func(ctx context.Context, d *dev, _ []string) error {
			return errors.New("not there yet")
		},
	}
}
