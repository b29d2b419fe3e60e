// Command ndpip-cat is netcat over the stack: standard input goes to the peer, what the peer sends goes to standard
// output. 'ndpip-cat help' explains the options.
package main

import (
	"io"
	"os"

	"ndpip/cmd/internal/cli"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the program; it returns the exit status. Help goes to stdout, a fault to stderr.
func run(args []string, stdout, stderr io.Writer) int {
	err := perform(args)
	cli.Asked(stdout, err, helpText)
	return cli.Report(stderr, program, err)
}

// perform parses the options, opens the host, joins the two ends and closes the host again, whatever happened.
func perform(args []string) error {
	o, cfg, err := parse(args)
	if err != nil {
		return err
	}
	stop := cli.Signals(program)
	h, err := o.Net.Open(cfg, os.Stderr, stop, o.connectTimeout)
	if h != nil {
		err = newCat(h, o, stop, os.Stdin, os.Stdout).run()
	}
	if closeErr := o.Net.Close(h); err == nil {
		err = closeErr
	}
	return err
}
