// Command ndpip-perf measures and moves data over the stack: recv takes TCP connections or UDP datagrams and prints
// the goodput of each interval, send makes them; ping measures round trips, conn how fast connections come and go.
// 'ndpip-perf help' explains the options.
package main

import (
	"fmt"
	"io"
	"os"

	"ndpip/cmd/internal/cli"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run is the program; it returns the exit status. Help goes to stdout, a fault to stderr.
func run(args []string, stdout, stderr io.Writer) int {
	program := "ndpip-perf"
	verb, rest, err := command(args)
	if verb != "" {
		program += " " + verb
	}
	if err == nil {
		err = perform(program, verb, rest)
	}
	cli.Asked(stdout, err, func() string { return help(verb) })
	return cli.Report(stderr, program, err)
}

// verbs are the first arguments, for messages.
const verbs = "recv, send, ping, conn"

// command is the verb of a command line and what follows it.
func command(args []string) (verb string, rest []string, err error) {
	if len(args) == 0 {
		return "", nil, cli.Usagef("give a verb: %s; 'ndpip-perf help' explains them", verbs)
	}
	switch args[0] {
	case "recv", "send", "ping", "conn":
		if cli.WantsHelp(args[1:]) || len(args) == 2 && args[1] == "help" {
			return args[0], nil, cli.ErrHelp
		}
		return args[0], args[1:], nil
	case "help", "--help", "-h":
		if len(args) > 1 && helpOf[args[1]] != "" {
			return args[1], nil, cli.ErrHelp
		}
		return "", nil, cli.ErrHelp
	}
	return "", nil, cli.Usagef("%s is no verb; the first argument is %s or help, as in 'ndpip-perf recv --wire memif:/tmp/ndpip.sock'", args[0], verbs)
}

// perform parses the options, opens the host, does the work and closes the host again, whatever happened.
func perform(program, verb string, args []string) error {
	o, cfg, err := parse(verb, args)
	if err != nil {
		return err
	}
	stop := cli.Signals(program)
	work, err := prepare(o, stop)
	if err != nil {
		return err
	}
	defer work.closeFiles()
	h, err := o.Net.Open(cfg, os.Stderr, stop, o.connectTimeout)
	if h != nil {
		sent, received := h.PortChecksums()
		fmt.Fprintln(os.Stderr, checksums(cfg.Checksum, sent, received))
		err = work.on(h)
	}
	if closeErr := o.Net.Close(h); err == nil {
		err = closeErr
	}
	work.closed()
	return err
}
