package main

import (
	"strconv"
)

// stack is a TCP whose sender and receiver can be started. A new one is a new entry of stacks; its programs print
// the lines of 'ndpip-perf --format json'.
type stack interface {
	// source is the package of the program, or "" when it is given by path.
	source() string
	// receiver and sender are the arguments of the two.
	receiver(e end, c cell) []string
	sender(e end, c cell) []string
}

// end is where one of the two programs stands.
type end struct {
	place
	program   string // how it is called there
	wire      string // ndpip: of --wire
	own, peer string // addresses; "" where the stack's defaults are right
	length    string // ndpip: of the prefix, as in /24
	peerMAC   string // ndpip: "" asks for it
	checksum  string // ndpip
	cpu       int
	worker    int // ndpip: CPU of the worker; -1: as the program thinks right; -2: none
	mbufs     int
	bidir     bool
}

// The values of end.worker that are no CPU.
const (
	anyWorker = -1
	noWorker  = -2
)

var stacks = map[string]stack{"ndpip": ndpip{}, "linux": linux{}, "f-stack": foreign{}, "mtcp": foreign{}}

// stackNames are those that are built here, and foreignNames those whose program is given by path.
func stackNames() []string   { return []string{"ndpip", "linux"} }
func foreignNames() []string { return []string{"f-stack", "mtcp"} }

// interval is the time between the programs' lines, in seconds.
const interval = 0.1

// common are the options that all stacks' programs have.
func common(verb string, e end, c cell) []string {
	args := []string{verb, "--mss", strconv.Itoa(c.MSS), "--burst", strconv.Itoa(c.Burst), "--cpu", strconv.Itoa(e.cpu)}
	if c.Window != 0 {
		args = append(args, "--rcvbuf", strconv.Itoa(c.Window))
	}
	if verb == "send" {
		args = append(args, "--connections", strconv.Itoa(c.Connections))
		if e.peer != "" {
			args = append(args, "--connect-ip", e.peer)
		}
	}
	if c.Protocol == "udp" {
		args = append(args, "--udp")
	}
	if e.bidir {
		args = append(args, "--bidir")
	}
	return args
}

// ours are common, and what our own programs understand besides.
func ours(verb string, e end, c cell) []string {
	args := append(common(verb, e, c), "--format", "json", "--interval", strconv.FormatFloat(interval, 'g', -1, 64))
	if verb == "send" {
		args = append(args, "--connect-timeout", "30")
	}
	return args
}

type ndpip struct{}

func (ndpip) source() string { return "./cmd/ndpip-perf" }

func (ndpip) receiver(e end, c cell) []string { return ndpipArgs("recv", e, c) }
func (ndpip) sender(e end, c cell) []string   { return ndpipArgs("send", e, c) }

func ndpipArgs(verb string, e end, c cell) []string {
	args := append(ours(verb, e, c), "--wire", e.wire, "--mbufs", strconv.Itoa(e.mbufs), "--checksum", e.checksum)
	if e.own != "" {
		args = append(args, "--bind-ip", e.own+e.length)
	}
	if e.peerMAC != "" {
		args = append(args, "--arp", e.peer+"="+e.peerMAC)
	}
	switch e.worker {
	case anyWorker:
	case noWorker:
		args = append(args, "--inline")
	default:
		args = append(args, "--worker-cpu", strconv.Itoa(e.worker))
	}
	return args
}

type linux struct{}

func (linux) source() string { return "./cmd/linux-perf" }

func (linux) receiver(e end, c cell) []string { return linuxArgs("recv", e, c) }
func (linux) sender(e end, c cell) []string   { return linuxArgs("send", e, c) }

func linuxArgs(verb string, e end, c cell) []string {
	args := ours(verb, e, c)
	if e.remote() { // here the interface has its address only once the peer runs, and there is no other
		args = append(args, "--bind-ip", e.own)
	}
	return args
}

// foreign is a stack of others, with a program that understands the common options, or a script around one. Its lines may
// also be those that ndpip-perf prints as text, then one per second.
type foreign struct{}

func (foreign) source() string { return "" }

func (foreign) receiver(e end, c cell) []string {
	return append(common("recv", e, c), "--bind-ip", e.own)
}

func (foreign) sender(e end, c cell) []string {
	return append(common("send", e, c), "--bind-ip", e.own)
}
