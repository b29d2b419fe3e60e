package main

import (
	"encoding/json"
	"io"
	"slices"
)

// result is a row that was measured. Times are in nanoseconds per segment: for both ends together where both take
// part on one core, and between two segments that arrive where the ends have cores of their own.
type result struct {
	Bench string `json:"bench"`
	point
	NsPerSegment float64 `json:"ns_per_segment"` // median over the blocks
	FloorNs      float64 `json:"floor_ns"`       // of the floor loop at the same MSS, in the same blocks
	Ratio        float64 `json:"ratio"`          // of the two
	Gbps         float64 `json:"gbps"`           // of payload
	// Allocs is how many objects Go's heap got per segment: null where the segments are moved by other processes or
	// by the kernel.
	Allocs *float64 `json:"allocs_per_segment"`
	Spread float64  `json:"spread"` // half the distance between the quartiles over the blocks, as a part of the median

	// Of rows whose unit is the life of a connection; FloorNs and Ratio are by the kernel's then.
	NsPerCycle, LinuxNsPerCycle float64 `json:"-"`

	// Of rows whose unit is a round trip, the median; FloorNs and Ratio are by the kernel's then.
	NsPerTrip, P99Ns, LinuxNsPerTrip float64 `json:"-"`
	LineNs                           float64 `json:"-"` // of a cache line alone, there and back between the same two CPUs

	blocks []block
}

// block is a part of a row's time: long enough for its own figures, short against the machine's moods.
type block struct {
	ns, floor, allocs float64
}

// newResult sums up blocks.
func newResult(bench string, p point, blocks []block) result {
	r := result{Bench: bench, point: p, blocks: blocks}
	q := quartiles(blocks, func(b block) float64 { return b.ns })
	r.NsPerSegment = q[1]
	if q[1] > 0 {
		r.Spread = (q[2] - q[0]) / 2 / q[1]
		r.Gbps = float64(p.MSS) * 8 / q[1]
	}
	r.FloorNs = quartiles(blocks, func(b block) float64 { return b.floor })[1]
	if r.FloorNs > 0 {
		r.Ratio = r.NsPerSegment / r.FloorNs
	}
	return r
}

// counted adds what was allocated.
func (r result) counted() result {
	a := quartiles(r.blocks, func(b block) float64 { return b.allocs })[1]
	r.Allocs = &a
	return r
}

// perCycle makes a result of one whose samples are of connections, with the kernel's for the floor.
func (r result) perCycle() result {
	r.NsPerCycle, r.LinuxNsPerCycle, r.Gbps = r.NsPerSegment, r.FloorNs, 0
	return r
}

// quartiles of a figure over blocks: the lower, the median, the upper.
func quartiles(blocks []block, of func(block) float64) (q [3]float64) {
	if len(blocks) == 0 {
		return q
	}
	v := make([]float64, len(blocks))
	for i, b := range blocks {
		v[i] = of(b)
	}
	slices.Sort(v)
	return [3]float64{v[len(v)/4], v[len(v)/2], v[len(v)*3/4]}
}

// print writes the result as a line of JSON.
func (r result) print(w io.Writer) error {
	switch {
	case r.NsPerTrip != 0:
		return json.NewEncoder(w).Encode(struct {
			Bench string  `json:"bench"`
			Size  int     `json:"bytes"`
			Ns    float64 `json:"ns_per_round_trip"`
			P99   float64 `json:"p99_ns"`
			Linux float64 `json:"linux_ns_per_round_trip"`
			Ratio float64 `json:"ratio"`
			Line  float64 `json:"line_ns_per_round_trip"`
		}{r.Bench, pingSize, r.NsPerTrip, r.P99Ns, r.LinuxNsPerTrip, r.Ratio, r.LineNs})
	case r.NsPerCycle == 0:
		return json.NewEncoder(w).Encode(r)
	}
	return json.NewEncoder(w).Encode(struct {
		Bench  string   `json:"bench"`
		Conns  int      `json:"connections"`
		Sum    string   `json:"checksum"`
		Ns     float64  `json:"ns_per_cycle"`
		Linux  float64  `json:"linux_ns_per_cycle"`
		Ratio  float64  `json:"ratio"`
		Allocs *float64 `json:"allocs_per_cycle"`
		Spread float64  `json:"spread"`
	}{r.Bench, r.Connections, r.Checksum, r.NsPerCycle, r.LinuxNsPerCycle, r.Ratio, r.Allocs, r.Spread})
}
