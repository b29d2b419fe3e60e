package stack

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// wheelModel is a wheel and what it should do: the time that each id is armed for, and when it was last looked at.
type wheelModel struct {
	tb    testing.TB
	w     *wheel
	now   int64
	armed map[uint32]int64
	fired int
}

func newWheelModel(tb testing.TB, now int64) *wheelModel {
	return &wheelModel{tb: tb, w: newWheel(now), now: now, armed: map[uint32]int64{}}
}

func (m *wheelModel) arm(id uint32, at int64) {
	m.w.arm(id, at)
	m.armed[id] = max(at, m.now)
}

func (m *wheelModel) cancel(id uint32) {
	m.w.cancel(id)
	delete(m.armed, id)
}

// advance checks that what fires is due, and afterwards that nothing that is due by a tick is left.
func (m *wheelModel) advance(now int64, then func(id uint32)) {
	m.now = max(m.now, now)
	m.w.advance(now, func(id uint32) {
		at, ok := m.armed[id]
		if !ok || at > m.now {
			m.tb.Fatalf("%d fired at %d, armed for %d (%t)", id, m.now, at, ok)
		}
		if m.w.armed(id) {
			m.tb.Fatalf("%d is armed while it fires", id)
		}
		delete(m.armed, id)
		m.fired++
		if then != nil {
			then(id)
		}
	})
}

func (m *wheelModel) check() {
	m.tb.Helper()
	require.Equal(m.tb, len(m.armed), m.w.count)
	first := int64(math.MaxInt64)
	for id, at := range m.armed {
		require.True(m.tb, m.w.armed(id))
		require.Greater(m.tb, at, m.now-tick, "%d is late", id)
		first = min(first, at)
	}
	at, ok := m.w.next()
	require.Equal(m.tb, len(m.armed) > 0, ok)
	if ok {
		require.LessOrEqual(m.tb, at, max(first, m.now)+tick, "a timer fires before next")
		require.Greater(m.tb, at, m.now-tick)
	}
}

// randomTime is a time from now: near, far and very far ones, past ones, and exact ticks.
func randomTime(r *rand.Rand, now int64) int64 {
	d := int64(1) << r.UintN(46)
	d = r.Int64N(d + 1)
	switch r.UintN(8) {
	case 0:
		return now - d
	case 1:
		return (now + d) &^ (tick - 1)
	default:
		return now + d
	}
}

func TestWheelModel(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := newWheelModel(t, r.Int64N(1<<40))
		for i := range 3000 {
			switch id := r.Uint32N(300) * (1 + uint32(seed)*77); r.UintN(10) {
			case 0, 1, 2, 3, 4:
				m.arm(id, randomTime(r, m.now))
			case 5:
				m.cancel(id)
			case 6, 7: // to the next timer, as a simulator does
				if at, ok := m.w.next(); ok {
					m.advance(max(at, m.now), nil)
				}
			default:
				m.advance(m.now+r.Int64N(1<<r.UintN(44)), func(uint32) {
					if id := r.Uint32N(300); r.UintN(3) == 0 {
						m.arm(id, randomTime(r, m.now))
					} else if r.UintN(3) == 0 {
						m.cancel(id)
					}
				})
				m.advance(m.now+tick, nil)
			}
			if i%10 == 0 {
				m.check()
			}
		}
		m.advance(math.MaxInt64-tick, nil)
		m.check()
		require.Empty(t, m.armed)
		require.Greater(t, m.fired, 500)
	}
}

// FuzzWheel reads operations of four bytes: what, id, mantissa and exponent of a time.
func FuzzWheel(f *testing.F) {
	f.Add([]byte{0, 1, 200, 20, 3, 0, 100, 30, 1, 1, 0, 0, 3, 0, 255, 40})
	f.Fuzz(func(t *testing.T, ops []byte) {
		m := newWheelModel(t, 1)
		for ; len(ops) >= 4; ops = ops[4:] {
			id, d := uint32(ops[1]), int64(ops[2])<<(ops[3]%42)
			switch ops[0] & 3 {
			case 0, 1:
				m.arm(id, m.now+d)
			case 2:
				m.cancel(id)
			default:
				m.advance(m.now+d, func(id uint32) {
					if id&1 == 0 {
						m.arm(id+1, m.now+d)
					}
				})
				m.advance(m.now+tick, nil)
				m.check()
			}
		}
	})
}

// One timer at each distance, watched tick by tick around its time: not early, and at most a tick late.
func TestWheelExact(t *testing.T) {
	const ms = 1000000
	for _, d := range []int64{0, 1, tick - 1, tick, tick + 1, 3 * ms, 200 * ms, 1073 * ms, 1074 * ms, 2147 * ms, 2148 * ms,
		60000 * ms, 7200000 * ms, 17592186 * ms, 17600000 * ms, 24 * 3600000 * ms, 30 * 24 * 3600000 * ms} {
		for _, start := range []int64{0, 5, tick - 1, 12345 * tick, 4095 * tick, 8191 * tick, 4096*tick - 1} {
			w, fired := newWheel(start), 0
			fire := func(uint32) { fired++ }
			w.arm(0, start+d)
			w.advance(start+d-1, fire)
			require.Zero(t, fired, "%d ns from %d: early", d, start)
			w.advance(start+d+tick-1, fire)
			w.advance(start+d+tick, fire)
			require.Equal(t, 1, fired, "%d ns from %d", d, start)
			_, ok := w.next()
			require.False(t, ok)
		}
	}
}

func TestWheelOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	w, at := newWheel(0), make([]int64, 2000)
	for id := range at {
		at[id] = 1 + r.Int64N(1<<r.UintN(45))
		w.arm(uint32(id), at[id])
	}
	var got []int64
	w.advance(1<<46, func(id uint32) { got = append(got, (at[id]-1)>>tickShift) })
	assert.Len(t, got, len(at))
	assert.True(t, slices.IsSorted(got), "timers of different ticks fire in order, in one jump too")
}

func TestWheelCallback(t *testing.T) {
	w := newWheel(0)
	var got []uint32
	// 1, 2 and 3 are due in the same tick. Whichever fires first cancels the others but one, which it delays.
	fire := func(id uint32) {
		got = append(got, id)
		if len(got) == 1 {
			w.cancel(id%3 + 1)
			w.arm((id+1)%3+1, 10*tick)
			w.arm(id, 20*tick)
		}
	}
	for id := uint32(1); id <= 3; id++ {
		w.arm(id, tick)
	}
	w.advance(9*tick, fire)
	require.Len(t, got, 1)
	w.advance(10*tick, fire)
	w.advance(20*tick, fire)
	assert.Equal(t, []uint32{got[0], (got[0]+1)%3 + 1, got[0]}, got)
	assert.Zero(t, w.count)

	// A timer that arms itself for now fires once per tick and does not hang.
	n := 0
	w.arm(9, 0)
	w.advance(120*tick, func(id uint32) { n++; w.arm(id, 0) })
	assert.Equal(t, 100, n)
}

// The ways of moving a timer: later keeps its place, earlier does not.
func TestWheelRearm(t *testing.T) {
	for _, c := range []struct{ first, then int64 }{{100, 200}, {200, 100}, {100, 100}, {5, 9000}, {9000, 5}, {9000, 90000}, {90000, 9000}} {
		w, fired := newWheel(0), 0
		w.arm(1, c.first*tick)
		w.arm(2, c.first*tick) // a neighbour in the list
		w.cancel(1)
		assert.False(t, w.armed(1))
		w.arm(1, c.then*tick)
		assert.True(t, w.armed(1))
		w.advance(c.then*tick-1, func(id uint32) { fired += int(id & 1) })
		require.Zero(t, fired)
		w.advance(c.then*tick, func(id uint32) { fired += int(id & 1) })
		require.Equal(t, 1, fired, "%v", c)
	}
}

func TestWheelUnknownID(t *testing.T) {
	w := newWheel(-5)
	assert.False(t, w.armed(12345))
	w.cancel(12345)
	w.advance(-10, nil)
	w.arm(4096*3, math.MaxInt64)
	w.advance(math.MaxInt64-tick, func(uint32) { t.Error("fired") })
}

// A million timers in one far span are moved ahead of time: no tick has much to do.
func TestWheelDrainsAhead(t *testing.T) {
	w := newWheel(0)
	const n = 100000
	for id := range uint32(n) {
		w.arm(id, 50<<(spanBits+tickShift)|int64(id)<<(tickShift+spanBits-17))
	}
	for s := range int64(49 << spanBits) {
		w.advance(s<<tickShift, nil)
	}
	for i := range int64(n/drainMax + 1) {
		w.advance((49<<spanBits+i)<<tickShift, nil)
	}
	_, ok := w.nextFar()
	assert.False(t, ok, "the far ring is empty long before the span begins")
	fired := 0
	w.advance(51<<(spanBits+tickShift), func(uint32) { fired++ })
	assert.Equal(t, n, fired)
}

func TestWheelNoAlloc(t *testing.T) {
	w, now := newWheel(0), int64(0)
	fire := func(id uint32) {}
	w.arm(99, 0)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		w.arm(1, now+5*tick)
		w.arm(2, now+tick)
		w.cancel(1)
		now += 3 * tick / 2
		w.advance(now, fire)
	}))
}

func BenchmarkWheel(b *testing.B) {
	for _, n := range []int{1, 4096, 1000000} {
		const rto = 200000000
		w, now := newWheel(0), int64(0)
		order := rand.New(rand.NewPCG(1, 2)).Perm(n)
		var fired int
		fire := func(uint32) { fired++ }
		for id := range n {
			w.arm(uint32(id), rto+int64(id)*37)
		}
		run := func(name string, op func(id uint32)) {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for i, j := 0, 0; i < b.N; i++ {
					op(uint32(order[j]))
					if j++; j == n {
						j = 0
					}
				}
			})
		}
		run("later", func(id uint32) { w.arm(id, now+2*rto) })
		run("cancel+arm", func(id uint32) { w.cancel(id); w.arm(id, now+2*rto) })
		run("earlier", func(id uint32) { w.arm(id, now+rto); w.arm(id, now+rto/2); w.arm(id, now+2*rto) })
		run("idle-turn", func(uint32) { now += 1000; now &= tick - 1; w.advance(now, fire) })
		w = newWheel(0)
		for id := range n {
			w.arm(uint32(id), 1e15)
		}
		now = 0
		run("idle-tick", func(uint32) { now += tick; w.advance(now, fire) })
		run("arm+fire", func(id uint32) { w.arm(id, now); now += tick; w.advance(now, fire) })
	}
}

// Real time with a million connections: each tick some send (arm), some are acknowledged (later or cancel), and each
// has a keep-alive hours away.
func BenchmarkWheelMillion(b *testing.B) {
	const n = 1000000
	r := rand.New(rand.NewPCG(1, 2))
	w, now := newWheel(0), int64(0)
	for id := range uint32(2 * n) {
		w.arm(id, 1+r.Int64N(7200e9))
	}
	ids := make([]uint32, 1<<16)
	for i := range ids {
		ids[i] = r.Uint32N(n)
	}
	fire := func(id uint32) { w.arm(id, now+7200e9) }
	b.ResetTimer()
	for i := range b.N {
		id := ids[i&0xffff]
		if i&3 == 3 {
			w.cancel(id)
		} else {
			w.arm(id, now+200e6)
		}
		now += 1000
		w.advance(now, fire)
	}
}
