package stack_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ndpip/stack"
)

// The steps of the data path by themselves, in nanoseconds per segment: everything is in the first-level cache, and the
// port is memory, so what is missing to the figures of bench/ is DPDK and cold lines. "go run ./cmd/dev bench --only
// stage" runs them and puts them in its table.

// stage times one part of a round: before and after belong to the round and are not timed. The figure is the lower
// quartile over the rounds, because other threads can only make a round longer.
func stage(b *testing.B, before, timed, after func()) {
	cost := time.Hour // of reading the clock
	for range 100 {
		start := time.Now()
		cost = min(cost, time.Since(start))
	}
	took := make([]time.Duration, 0, 10000)
	for i := range 10 + b.N {
		if i == 10 {
			b.ReportAllocs()
			b.ResetTimer()
		}
		before()
		start := time.Now()
		timed()
		d := time.Since(start)
		after()
		if i >= 10 && len(took) < cap(took) {
			took = append(took, d-cost)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/4].Nanoseconds())/burstLen, "ns/segment")
}

func stages(b *testing.B, run func(b *testing.B, e *memEnds, write, input, read, ack func())) {
	for _, mss := range []int{64, 256, 512, 1460} {
		b.Run(fmt.Sprintf("mss=%d/connections=1/checksum=off", mss), func(b *testing.B) {
			e := newMemEnds(b, mss, stack.ChecksumOff)
			out, in := make([]byte, burstLen*mss), make([]byte, burstLen*mss)
			run(b, e, func() { e.write(b, out) }, func() { e.b.Turn() }, func() { e.read(b, in) }, func() { e.a.Turn() })
		})
	}
}

// BenchmarkStageEncode is a write: headers, the copy into buffers, the entries in the transmit ring.
func BenchmarkStageEncode(b *testing.B) {
	stages(b, func(b *testing.B, _ *memEnds, write, input, read, ack func()) {
		stage(b, func() {}, write, func() { input(); read(); ack() })
	})
}

// BenchmarkStageFeed is the receiver's turn: headers checked, segments fed to their connection, made known to the
// application, and acknowledged at once.
func BenchmarkStageFeed(b *testing.B) {
	stages(b, func(b *testing.B, _ *memEnds, write, input, read, ack func()) {
		stage(b, write, input, func() { read(); ack() })
	})
}

// BenchmarkStageRead is a read: entries of the receive ring, the copy out, the buffers given back.
func BenchmarkStageRead(b *testing.B) {
	stages(b, func(b *testing.B, _ *memEnds, write, input, read, ack func()) {
		stage(b, func() { write(); input() }, read, ack)
	})
}

// BenchmarkStageAck is the sender's turn: the acknowledgement of a burst, and its buffers given back.
func BenchmarkStageAck(b *testing.B) {
	stages(b, func(b *testing.B, _ *memEnds, write, input, read, ack func()) {
		stage(b, func() { write(); input(); read() }, ack, func() {})
	})
}
