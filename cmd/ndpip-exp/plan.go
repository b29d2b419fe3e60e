package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"ndpip/cmd/internal/hosts"
)

// plan says what is measured.
type plan struct {
	Experiment  string   `json:"experiment"`
	Stacks      []string `json:"stacks"`
	MSS         []int    `json:"mss"`
	Connections []int    `json:"connections"`
	Window      []int    `json:"window"` // bytes of the receive buffer; 0: the stack's choice
	Burst       []int    `json:"burst"`
	Protocol    []string `json:"protocol"`
	Runs        int      `json:"runs"`
	Seconds     float64  `json:"seconds"` // measured in a run
	Warmup      float64  `json:"warmup"`  // before that
	Seed        int      `json:"seed"`
	Mbufs       int      `json:"mbufs"`
	Bidir       bool     `json:"bidir,omitempty"` // both ends send

	// The two hosts, and how they are reached; nil: this machine.
	Hosts    *hosts.Pair       `json:"hosts,omitempty"`
	SSH      []string          `json:"ssh,omitempty"`
	Programs map[string]string `json:"programs,omitempty"` // of the stacks that are given by path
}

// cell is one point of the plan.
type cell struct {
	Tx          string `json:"tx"` // stacks
	Rx          string `json:"rx"`
	MSS         int    `json:"mss"`
	Connections int    `json:"connections"`
	Window      int    `json:"window"`
	Burst       int    `json:"burst"`
	Protocol    string `json:"protocol"`
}

func (c cell) String() string {
	s := fmt.Sprintf("%s → %s, MSS %d, %s", c.Tx, c.Rx, c.MSS, count(c.Connections, "connection"))
	if c.Window != 0 {
		s += fmt.Sprintf(", window %d", c.Window)
	}
	if c.Burst != 32 {
		s += fmt.Sprintf(", burst %d", c.Burst)
	}
	if c.Protocol != "tcp" {
		s += ", " + c.Protocol
	}
	return s
}

func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return strconv.Itoa(n) + " " + what
}

// cells are all points, in the order of the tables.
func (p *plan) cells() (out []cell) {
	for _, tx := range p.Stacks {
		for _, rx := range p.Stacks {
			for _, protocol := range p.Protocol {
				for _, window := range p.Window {
					for _, burst := range p.Burst {
						for _, connections := range p.Connections {
							for _, mss := range p.MSS {
								out = append(out, cell{tx, rx, mss, connections, window, burst, protocol})
							}
						}
					}
				}
			}
		}
	}
	return out
}

// job is one run of a cell.
type job struct {
	cell cell
	run  int // from 1
}

// jobs are all runs in the order in which they are done: shuffled, so that what changes on the machine in the meantime
// does not fall on one cell alone. The seed makes the order.
func (p *plan) jobs() (out []job) {
	for run := range p.Runs {
		for _, c := range p.cells() {
			out = append(out, job{c, run + 1})
		}
	}
	r := rand.New(rand.NewPCG(uint64(p.Seed), 0))
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}
