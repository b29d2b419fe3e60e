package link

import (
	"bytes"
	"fmt"
	"math/bits"
	"testing"
	"time"

	"ndpip/dpdk"
)

// run sends n frames of 100 bytes, one each microsecond, and returns what arrives.
func run(t *testing.T, cfg Config, n int) (l *Link, got [][]byte) {
	t.Helper()
	l = New(cfg)
	a, b := l.A.NewLane(true), l.B.NewLane(true)
	for _, f := range numbered(n, 100) {
		sendOn(t, a, 0, f)
		l.Advance(time.Microsecond)
		got = append(got, receiveOn(b)...)
	}
	l.Advance(time.Hour)
	got = append(got, receiveOn(b)...)
	l.A.FreeLane(a)
	l.B.FreeLane(b)
	if l.A.InUse() != 0 || l.B.InUse() != 0 {
		t.Errorf("%d and %d buffers in use at the end", l.A.InUse(), l.B.InUse())
	}
	return l, got
}

func near(t *testing.T, what string, got uint64, n int, p float64) {
	t.Helper()
	if want := p * float64(n); float64(got) < want/2 || float64(got) > want*2 {
		t.Errorf("%s: %d of %d, want about %v", what, got, n, want)
	}
}

var faulty = Path{Loss: 0.05, Corrupt: 0.04, Reorder: 0.03, ReorderBy: 3500 * time.Nanosecond, Duplicate: 0.02, Delay: 700}

func TestFaults(t *testing.T) {
	const n = 4000
	l, got := run(t, Config{Seed: 1, AB: faulty}, n)
	s := l.A.Stats()
	near(t, "lost", s.Lost, n, faulty.Loss)
	near(t, "corrupted", s.Corrupted, n, faulty.Corrupt)
	near(t, "reordered", s.Reordered, n, faulty.Reorder)
	near(t, "duplicated", s.Duplicated, n, faulty.Duplicate)
	if want := s.Sent + s.Duplicated - s.Lost; s.Sent != n || uint64(len(got)) != want || l.B.Stats().Received != want {
		t.Errorf("%d arrived, want %d", len(got), want)
	}

	// The same from what arrives, as far as it can be seen there.
	var late, flipped uint64
	last := -1
	original := numbered(n, 100)
	for _, f := range got {
		i := numbers([][]byte{f})[0]
		if i < last {
			late++
		}
		if i >= n || !bytes.Equal(f, original[i]) {
			flipped++
			continue
		}
		last = max(last, i)
	}
	if flipped < s.Corrupted*9/10 || late < s.Reordered*8/10 {
		t.Errorf("%d changed and %d late, want about %d and %d", flipped, late, s.Corrupted, s.Reordered)
	}
}

func TestSeed(t *testing.T) {
	trace := func(seed uint64, p Path) string {
		_, got := run(t, Config{Seed: seed, AB: p}, 500)
		return fmt.Sprintf("%x", got)
	}
	first := trace(1, faulty)
	if trace(1, faulty) != first {
		t.Error("the same seed gives something else")
	}
	if trace(2, faulty) == first {
		t.Error("another seed gives the same")
	}
	// A fault more leaves the others where they were.
	loss := func(p Path) []int {
		_, got := run(t, Config{Seed: 3, AB: p}, 500)
		return numbers(got)
	}
	slow := Path{Loss: 0.1, Reorder: 0.5, ReorderBy: time.Nanosecond}
	if a, b := loss(Path{Loss: 0.1}), loss(slow); fmt.Sprint(a) != fmt.Sprint(b) {
		t.Error("with reordering, other frames are lost")
	}
}

func TestCorruptBits(t *testing.T) {
	for _, n := range []int{0, 1, 2, 7} {
		_, got := run(t, Config{AB: Path{Corrupt: 1, CorruptBits: n}}, 20)
		for i, f := range numbered(20, 100) {
			flips := 0
			for k := range f {
				flips += bits.OnesCount8(f[k] ^ got[i][k])
			}
			if flips != max(n, 1) {
				t.Errorf("%d bits flipped, want %d", flips, max(n, 1))
			}
		}
	}
}

func TestReorderAndDuplicate(t *testing.T) {
	_, got := run(t, Config{AB: Path{Duplicate: 1}}, 3)
	if s := fmt.Sprint(numbers(got)); s != "[0 0 1 1 2 2]" {
		t.Errorf("received %v", s)
	}
	l := New(Config{AB: Path{Reorder: 1, ReorderBy: 10}})
	a, b := l.A.NewLane(true), l.B.NewLane(true)
	sendOn(t, a, 0, numbered(1, 60)...)
	l.A.SetPath(Path{})
	sendOn(t, a, 0, numbered(3, 60)[1:]...)
	l.Advance(10)
	if s := fmt.Sprint(numbers(receiveOn(b))); s != "[1 2 0]" {
		t.Errorf("received %v", s)
	}
}

func TestMTUAndFilter(t *testing.T) {
	seen := 0
	l := New(Config{AB: Path{MTU: 1500, Filter: func(f []byte) Verdict {
		seen++
		switch f[3] {
		case 1:
			return Drop
		case 2:
			f[4] = 'X'
		case 3:
			return Verdict{Delay: time.Second}
		case 4:
			return Verdict{Copies: 1}
		}
		return Pass
	}}})
	a, b := l.A.NewLane(true), l.B.NewLane(true)
	sendOn(t, a, 0, numbered(6, 60)...)
	sendOn(t, a, 0, numbered(7, 1514)[6], numbered(8, 1515)[7])
	got := receiveOn(b)
	if s := fmt.Sprint(numbers(got)); s != "[0 2 4 4 5 6]" || got[1][4] != 'X' || seen != 8 {
		t.Errorf("received %v, the filter saw %d", s, seen)
	}
	l.Advance(time.Second)
	if s := fmt.Sprint(numbers(receiveOn(b))); s != "[3]" {
		t.Errorf("received %v a second later", s)
	}
	wantStats(t, l.A, Stats{Sent: 8, Filtered: 1, TooLong: 1, Duplicated: 1})
}

// Every frame that is taken is accounted for, whatever comes together.
func TestConservation(t *testing.T) {
	for seed := range uint64(5) {
		p := faulty
		p.Rate, p.Queue, p.MTU = 5e8, 6, 1000
		p.Filter = func(f []byte) Verdict { return Verdict{Drop: f[3]%16 == 0, Copies: int(f[3] % 16 / 15)} }
		l := New(Config{Seed: seed, AB: p, A: Port{TxRing: 8, Hold: seed%2 == 0}, B: Port{Buffers: 12, RxRing: 10}})
		a, b := l.A.NewLane(false), l.B.NewLane(true)
		for i, f := range numbered(3000, 100) {
			a.Exchange(dpdk.OpTx)
			if a.TxRoom() > 0 {
				sendOn(t, a, 0, f)
			}
			l.Advance(time.Microsecond)
			if i%16 == 0 {
				b.Exchange(dpdk.OpFree | dpdk.OpRx)
				for i := range b.Rx[:b.NRx] {
					b.Release(b.Rx[i].Handle)
				}
			}
		}
		l.A.FreeLane(a)
		l.Advance(time.Minute)
		receiveOn(b)
		s, r := l.A.Stats(), l.B.Stats()
		in, out := s.Sent+s.Duplicated, s.Filtered+s.TooLong+s.QueueFull+s.Lost+r.Received+r.Missed+r.NoBuffer
		if in != out || s.Filtered == 0 || s.QueueFull == 0 || r.Missed == 0 {
			t.Errorf("seed %d: %d frames in, %d out: %+v %+v", seed, in, out, s, r)
		}
		l.B.FreeLane(b)
		if l.A.InUse() != 0 || l.B.InUse() != 0 {
			t.Errorf("%d and %d buffers in use at the end", l.A.InUse(), l.B.InUse())
		}
	}
}
