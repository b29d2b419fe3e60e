package stack_test

import (
	"flag"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"ndpip/stack"
	"ndpip/tcp"
)

var cycles = flag.Int("cycles", 0, "TestCycles: connections one after the other (0: 150,000, and less in a short run)")

// lives opens and closes connections between the two stacks, some at a time: connect, accept, 64 bytes and 64 back, close
// by either side first.
type lives struct {
	*memEnds
	l       *stack.Listener
	x, y    []*tcp.Conn
	out, in []byte
}

func newLives(t testing.TB, n int, archive int, tap func([]byte)) *lives {
	v := &lives{memEnds: newMemEndsWith(t, 1460, stack.ChecksumOff, archive, tap), x: make([]*tcp.Conn, n), y: make([]*tcp.Conn, n),
		out: make([]byte, 64), in: make([]byte, 100)}
	var e syscall.Errno
	v.l, e = v.b.Listen(0, 80, 64, stack.Options{}, 0)
	require.Zero(t, e)
	return v
}

func (v *lives) turns() {
	for range 2 * (len(v.x)/burstLen + 1) {
		v.b.Turn()
		v.a.Turn()
	}
}

func (v *lives) round(t testing.TB, serverFirst bool) {
	for i := range v.x {
		var e syscall.Errno
		if v.x[i], e = v.a.Connect(0, v.b.Addr(), 80, stack.Options{}, 0); e != 0 {
			t.Fatalf("connect: %v", e)
		}
	}
	v.turns()
	if n := v.b.AcceptBurst(v.l, v.y); n != len(v.y) {
		t.Fatalf("%d of %d connections accepted: %+v", n, len(v.y), v.b.Counters())
	}
	move := func(call string, n int, e syscall.Errno, want int) {
		if n != want || e != 0 {
			t.Fatalf("%s moved %d of %d bytes (%v)", call, n, want, e)
		}
	}
	for _, c := range v.x {
		n, e := v.a.Send(c, v.out)
		move("write", n, e, len(v.out))
	}
	v.turns()
	for _, c := range v.y {
		n, e := v.b.Recv(c, v.in)
		move("read", n, e, len(v.out))
		n, e = v.b.Send(c, v.out)
		move("answer", n, e, len(v.out))
	}
	v.turns()
	first, last, s, r := v.x, v.y, v.a, v.b
	if serverFirst {
		first, last, s, r = last, first, r, s
	}
	for _, c := range v.x {
		n, e := v.a.Recv(c, v.in)
		move("read of the answer", n, e, len(v.out))
	}
	for _, c := range first {
		s.Close(c)
	}
	v.turns()
	for _, c := range last {
		n, e := r.Recv(c, v.in)
		move("read of the end", n, e, 0)
		r.Close(c)
	}
	v.turns()
}

// TestCycles lets many connections live and die: the process's memory stays where it was after the first of them, nothing
// is allocated, and the counters of both ends add up. A long run: go test ./stack -run TestCycles -v -cycles 10000000
func TestCycles(t *testing.T) {
	for _, first := range []string{"client", "server"} {
		t.Run(first+" closes first", func(t *testing.T) { testCycles(t, first == "server") })
	}
}

func testCycles(t *testing.T, serverFirst bool) {
	warm := 1 << 16 // all 32,768 ports have been in TIME-WAIT, at either end
	if underRace {
		warm >>= 5
	}
	n := *cycles
	if n == 0 {
		n = 150_000
		if testing.Short() {
			n = 2 * warm
		}
	}
	v := newLives(t, 32, 0, nil)
	done := 0
	run := func(to int) {
		for ; done < to; done += len(v.x) {
			v.round(t, serverFirst)
		}
	}
	run(max(n/100, warm))
	debug.FreeOSMemory()
	before := resident(t)
	t.Logf("%d connections: %d KiB resident", done, before>>10)
	allocs := testing.AllocsPerRun(1, func() { run(done + 32*100) }) // twice
	if !underRace {                                                  // with the short start there are still places to be made
		require.Zero(t, allocs, "allocations in 3200 connections")
	}
	run(n)
	debug.FreeOSMemory()
	after := resident(t)
	t.Logf("%d connections: %d KiB resident", done, after>>10)
	if !underRace && after > before+before/100+4<<20 { // the runtime's own comes and goes
		t.Errorf("resident memory has grown from %d to %d KiB", before>>10, after>>10)
	}
	a, b := v.a.Counters(), v.b.Counters()
	all, bytes := uint64(done)+1, uint64(done*64) // and the one of newMemEnds
	for _, c := range []struct {
		what      string
		got, want uint64
	}{
		{"opened at A", a.Opened, all}, {"accepted at B", b.Accepted, all},
		{"closed at A, and still there", a.Closed + a.Connections, all}, {"closed at B, and still there", b.Closed + b.Connections, all},
		{"segments sent at A", a.TxSegments, uint64(done)}, {"segments taken at B", b.RxData, uint64(done)},
		{"segments sent at B", b.TxSegments, uint64(done)}, {"segments taken at A", a.RxData, uint64(done)},
		{"bytes written at A", a.TxPayload, bytes}, {"bytes read at B", b.RxPayload, bytes},
		{"bytes written at B", b.TxPayload, bytes}, {"bytes read at A", a.RxPayload, bytes},
		{"frames from A to B", b.RxFrames, a.TxFrames}, {"frames from B to A", a.RxFrames, b.TxFrames},
		{"resets", a.Resets + b.Resets, 0}, {"retransmissions", a.Retransmits + b.Retransmits, 0},
		{"want of buffers", a.NoBuffer + b.NoBuffer, 0}, {"frames not sent", a.TxDropped + b.TxDropped, 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.what, c.got, c.want)
		}
	}
	require.Zero(t, a.Drop, "drops at A")
	require.Zero(t, b.Drop, "drops at B")
	for _, s := range []*stack.Stack{v.a, v.b} {
		s.AbortAll()
		if u := s.Usage(); u.Connections != 0 || u.RingBytes != 0 || u.Unread != 0 {
			t.Errorf("at the end %+v", u)
		}
	}
}

// resident is the resident memory of this process in bytes.
func resident(t testing.TB) int {
	text, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	n, err := strconv.Atoi(strings.Fields(string(text))[1])
	require.NoError(t, err)
	return n * os.Getpagesize()
}
