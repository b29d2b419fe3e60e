package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// row is one line of the table to be.
type row struct {
	kind *kind
	point
	quick bool // part of a quick run
}

// point is what tells a row from the others of its kind. 0 and "": it does not apply.
type point struct {
	MSS         int    `json:"mss"`
	Connections int    `json:"connections"`
	Checksum    string `json:"checksum"` // off, software, or kernel where Linux does as it likes
}

func (r row) String() string { return r.kind.name + " " + r.point.String() }

func (p point) String() string {
	var parts []string
	if p.MSS != 0 {
		parts = append(parts, fmt.Sprintf("MSS %d", p.MSS))
	}
	if p.Connections != 0 {
		parts = append(parts, fmt.Sprintf("connections %d", p.Connections))
	}
	if p.Checksum != "" {
		parts = append(parts, "checksum "+p.Checksum)
	}
	return strings.Join(parts, ", ")
}

// kind is a way of moving segments.
type kind struct {
	name, what string
	each       time.Duration // usual time for a row
	quick      time.Duration // the same in a quick run
	// run measures one row; it gives more than one result where a row has parts.
	run    func(e *env, p point) ([]result, error)
	points []point
	first  func(p point) bool // is p part of a quick run?
}

// The sizes and numbers of the paper's experiments.
var (
	sizes  = []int{64, 256, 512, 1460}
	counts = []int{1, 64, 1024, 4096}
)

// grid is every combination.
func grid(mss, connections []int, checksums ...string) (out []point) {
	for _, sum := range checksums {
		for _, n := range connections {
			for _, m := range mss {
				out = append(out, point{m, n, sum})
			}
		}
	}
	return out
}

const (
	short = 300 * time.Millisecond
	brief = 100 * time.Millisecond
)

// judged are the rows whose ratios the project promises: one connection at each MSS, 4096 at the smallest and the
// largest, and checksums at the largest.
func judged(p point) bool {
	if p.Checksum == "software" {
		return p.Connections == 1 && p.MSS == 1460
	}
	return p.Connections == 1 || p.Connections == 4096 && (p.MSS == 64 || p.MSS == 1460)
}

func single(p point) bool { return p.Connections == 1 }

func large(p point) bool { return p.MSS == 1460 }

func ends(p point) bool { return single(p) && (p.MSS == 64 || p.MSS == 1460) }

// kinds are all there are, in the order in which they run.
var kinds = []kind{
	{"lockstep-copy", "both ends on one core, turn by turn over a net_ring pair, copying calls of package stack", short, brief,
		runLockstep(false), grid(sizes, counts, "off", "software"), judged},
	{"lockstep-zerocopy", "the same with the zero-copy calls", short, brief,
		runLockstep(true), grid(sizes, counts, "off", "software"), func(p point) bool { return judged(p) && p.Checksum == "off" }},
	{"api-copy", "the same through package api: inline hosts, epoll, write and read", short, brief,
		runAPI(false), grid(sizes, counts, "off"), ends},
	{"api-zerocopy", "the same with alloc, send, recv and free", short, brief,
		runAPI(true), grid(sizes, counts, "off"), ends},
	{"cycle", "connect, accept, 64 bytes each way, close: both ends on one core, beside the kernel's over veth", time.Second, short,
		runCycle("cycle", -1), grid([]int{0}, []int{1, 32}, "off"), func(point) bool { return true }},
	{"cycle-archive", "the same with the archive of closed connections", time.Second, short,
		runCycle("cycle-archive", 0), grid([]int{0}, []int{1, 32}, "off"), func(point) bool { return true }},
	{"million", "lockstep-copy on one connection among a million idle ones, beside the same where it is alone", short, brief,
		runMillion, grid(sizes[3:], []int{1_000_000}, "off"), func(point) bool { return false }},
	{"syn", "a SYN of a flood at a listener without room, and a bulk connection of which every second frame is one", short, brief,
		runSyn, grid([]int{64, 1460}, []int{1}, "off"), func(point) bool { return false }},
	{"floor-hot", "the floor loop with one source and one target frame that never leave the first-level cache", short, brief,
		runFloorHot, grid(sizes, []int{1}, "off"), large},
	{"phase", "lockstep-copy taken apart: write, the receiver's turn, read, the sender's turn", short, brief,
		runPhases, grid(sizes, []int{1, 4096}, "off"), ends},
	{"stage", "Go benchmarks of single steps: encode, demultiplex, feed, ring, read", 1500 * time.Millisecond, 300 * time.Millisecond,
		runStages, []point{{}}, func(point) bool { return true }},
	{"threads", "applications on one core and workers on another, over a net_ring pair in one process", short, brief,
		runThreads, grid(sizes, []int{1, 64, 1024}, "off"), ends},
	{"send", "who sends: the sending end before a peer that costs next to nothing, in three placements by turns", time.Second, short,
		runPlaced("send", sendPlaced(false, false)), grid(sizes, []int{1}, "off"), func(point) bool { return false }},
	{"send-zerocopy", "the same with the zero-copy calls", time.Second, short,
		runPlaced("send-zerocopy", sendPlaced(false, true)), grid(sizes, []int{1}, "off"), func(point) bool { return false }},
	{"send-costly", "the same as send with a port that copies each frame, as net_memif does", time.Second, short,
		runPlaced("send-costly", sendPlaced(true, false)), grid(sizes, []int{1}, "off"), func(point) bool { return false }},
	{"both-ways", "who sends, with traffic both ways: applications on one core and workers on another, in three placements by turns", time.Second, short,
		runPlaced("both-ways", bothPlaced), grid(sizes, []int{1, 64}, "off"), func(point) bool { return false }},
	{"rx", "the receiving end alone, fed by a generator over a net_ring pair", short, brief,
		runRx, grid(sizes, []int{1, 1024}, "off"), ends},
	{"coalesce", "rx with receive coalescing, beside the same with each frame by itself: one connection, or 64 of a segment each in turn", time.Second, short,
		runCoalesce("coalesce"), grid([]int{64, 1460}, []int{1, 64}, "off"), func(point) bool { return false }},
	{"coalesce-udp", "the same with datagrams, which are no part of it", time.Second, short,
		runCoalesce("coalesce-udp"), grid([]int{64, 1460}, []int{1}, "off"), func(point) bool { return false }},
	{"tx", "the sending end alone, into net_null", short, brief,
		runTx, grid(sizes, []int{1, 1024}, "off"), ends},
	{"memif", "two ndpip-perf processes over shared memory, sender and receiver on a CPU each, one thread each", 3 * time.Second, time.Second,
		runMemif("memif", "--inline"), grid(sizes, counts, "off"), func(p point) bool { return single(p) || large(p) && p.Connections == 4096 }},
	{"worker-memif", "the same with a worker's thread beside the application's in each process, which yield to each other", 3 * time.Second, time.Second,
		runMemif("worker-memif", "--inline=false", "--yield"), grid(sizes, counts, "off"), func(point) bool { return false }},
	{"worker-sends-memif", "the same, and the workers send", 3 * time.Second, time.Second,
		runMemif("worker-sends-memif", "--inline=false", "--yield", "--worker-sends"), grid(sizes, []int{1}, "off"), func(point) bool { return false }},
	{"ping", "round trip of 64 bytes between two inline hosts on a thread and a CPU each, over a net_ring pair, beside the kernel's over veth", time.Second, short,
		runPing("ping", ringTrips), []point{{Connections: 1, Checksum: "off"}}, func(point) bool { return true }},
	{"memif-ping", "the same between two processes over shared memory", time.Second, short,
		runPing("memif-ping", memifTrips), []point{{Connections: 1, Checksum: "off"}}, func(point) bool { return true }},
	{"linux-veth", "the kernel's TCP over a veth pair with one segment per buffer, both ends on a CPU each", 3 * time.Second, 1200 * time.Millisecond,
		runVeth(2), grid(sizes, []int{1}, "kernel"), large},
	{"linux-veth-1cpu", "the same with both ends on one CPU", 2 * time.Second, 800 * time.Millisecond,
		runVeth(1), grid(sizes, []int{1}, "kernel"), func(point) bool { return false }},
}

func kindNames() string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return strings.Join(names, ", ")
}

func allRows() (out []row) {
	for i := range kinds {
		k := &kinds[i]
		for _, p := range k.points {
			out = append(out, row{k, p, k.first(p)})
		}
	}
	return out
}

func list(w io.Writer, rows []row) error {
	for _, r := range rows {
		mark := ""
		if r.quick {
			mark = "  (quick)"
		}
		if _, err := fmt.Fprintf(w, "%s%s\n", r, mark); err != nil {
			return err
		}
	}
	return nil
}
