package main

import (
	"strconv"
)

// stack is a TCP whose sender and receiver can be started. A new one is a new entry of stacks; its programs print
// the lines of 'ndpip-perf --format json'.
type stack interface {
	// source is the package of the program.
	source() string
	// receiver and sender are the arguments of the two.
	receiver(e end, c cell) []string
	sender(e end, c cell) []string
}

// end is where one of the two programs stands.
type end struct {
	wire      string // ndpip: of --wire
	own, peer string // addresses; "" where the stack's defaults are right
	cpu       int
	mbufs     int
}

var stacks = map[string]stack{"ndpip": ndpip{}, "linux": linux{}}

func stackNames() []string { return []string{"ndpip", "linux"} }

// interval is the time between the programs' lines, in seconds.
const interval = 0.1

// common are the options that both stacks' programs have.
func common(verb string, e end, c cell) []string {
	args := []string{verb, "--format", "json", "--interval", strconv.FormatFloat(interval, 'g', -1, 64),
		"--mss", strconv.Itoa(c.MSS), "--burst", strconv.Itoa(c.Burst), "--cpu", strconv.Itoa(e.cpu)}
	if c.Window != 0 {
		args = append(args, "--rcvbuf", strconv.Itoa(c.Window))
	}
	if verb == "send" {
		args = append(args, "--connections", strconv.Itoa(c.Connections), "--connect-timeout", "30")
		if e.peer != "" {
			args = append(args, "--connect-ip", e.peer)
		}
	}
	return args
}

type ndpip struct{}

func (ndpip) source() string { return "./cmd/ndpip-perf" }

func (ndpip) receiver(e end, c cell) []string { return ndpipArgs("recv", e, c) }
func (ndpip) sender(e end, c cell) []string   { return ndpipArgs("send", e, c) }

func ndpipArgs(verb string, e end, c cell) []string {
	args := append(common(verb, e, c), "--wire", e.wire, "--mbufs", strconv.Itoa(e.mbufs))
	if e.own == "" {
		// The wire is memory, and the paper's cards did the checksums.
		args = append(args, "--checksum", "off")
	} else {
		args = append(args, "--bind-ip", e.own+"/24")
	}
	if c.Protocol == "udp" {
		args = append(args, "--udp")
	}
	return args
}

type linux struct{}

func (linux) source() string { return "./cmd/linux-perf" }

func (linux) receiver(e end, c cell) []string { return common("recv", e, c) }
func (linux) sender(e end, c cell) []string   { return common("send", e, c) }
