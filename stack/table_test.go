package stack

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// randomKey draws from a small space, so that keys return and look alike.
func randomKey(r *rand.Rand, space uint32) key {
	return key{0x0a000001, 0x0a000000 | r.Uint32N(4), uint16(r.Uint32N(2)), uint16(r.Uint32N(space))}
}

// check compares the whole table with the model.
func (t *table) check(tb testing.TB, model map[key]uint32) {
	tb.Helper()
	require.Equal(tb, len(model), t.len())
	for k, id := range model {
		require.Equal(tb, id, t.get(k), "key %v", k)
	}
	used := 0
	for _, a := range []array{t.cur, t.old} {
		for _, e := range a.slots {
			if e.id != 0 {
				used++
				require.Equal(tb, model[e.key], e.id, "key %v", e.key)
			}
		}
	}
	require.Equal(tb, len(model), used, "slots in use")
}

func TestTableModel(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		tab := newTable(secret{seed, 2, 3, 4}, 0)
		model := map[key]uint32{}
		// Puts outweigh dels at first and the other way round later, so the table grows and empties again.
		for i := range 20000 {
			k := randomKey(r, 600)
			del := uint32(30)
			if i > 12000 {
				del = 60
			}
			switch n := r.Uint32N(100); {
			case n < del:
				tab.del(k)
				delete(model, k)
			case n < 85:
				id := 1 + r.Uint32N(1<<20)
				tab.put(k, id)
				model[k] = id
			case n < 90:
				tab.step()
			default:
				require.Equal(t, model[k], tab.get(k))
			}
			if i%500 == 0 {
				tab.check(t, model)
			}
		}
		for k := range model {
			tab.del(k)
			delete(model, k)
		}
		tab.check(t, model)
	}
}

// FuzzTable reads operations from the input: an operation, then a key out of 256.
func FuzzTable(f *testing.F) {
	f.Add([]byte{0, 1, 0, 2, 1, 1, 2, 2})
	f.Fuzz(func(t *testing.T, ops []byte) {
		tab := newTable(secret{1, 2, 3, 4}, 0)
		tab.cur = newArray(8) // small, so that it soon grows and wraps around
		model := map[key]uint32{}
		for i := 0; i+1 < len(ops); i += 2 {
			k := key{raddr: uint32(ops[i+1]), rport: uint16(ops[i] >> 4)}
			switch ops[i] & 3 {
			case 0, 1:
				tab.put(k, uint32(i+1))
				model[k] = uint32(i + 1)
			case 2:
				tab.del(k)
				delete(model, k)
			default:
				if tab.get(k) != model[k] {
					t.Fatalf("get(%v) = %d, want %d", k, tab.get(k), model[k])
				}
			}
		}
		tab.check(t, model)
	})
}

func TestTableZeroKey(t *testing.T) {
	tab := newTable(newSecret(), 0)
	assert.Zero(t, tab.get(key{}))
	tab.put(key{}, 7)
	assert.EqualValues(t, 7, tab.get(key{}))
	tab.del(key{})
	assert.Zero(t, tab.get(key{}))
	assert.Panics(t, func() { tab.put(key{}, 0) })
}

func TestTableBurst(t *testing.T) {
	tab := newTable(newSecret(), 0)
	var keys [256]key
	for i := range keys {
		keys[i] = benchKey(i)
		if i%3 != 0 {
			tab.put(keys[i], uint32(i))
		}
	}
	var ids [256]uint32
	tab.getBurst(keys[:], ids[:])
	for i, k := range keys {
		assert.Equal(t, tab.get(k), ids[i])
	}
}

func TestSecretSumIsXXH64(t *testing.T) {
	for i := range 1000 {
		s, k := newSecret(), benchKey(i)
		d := xxhash.NewWithSeed(s[0])
		b := binary.LittleEndian.AppendUint64(nil, s[1]^(uint64(k.laddr)<<32|uint64(k.raddr)))
		b = binary.LittleEndian.AppendUint64(b, s[2]^(uint64(k.lport)<<16|uint64(k.rport)))
		_, _ = d.Write(b)
		require.Equal(t, d.Sum64(), s.sum(k))
	}
}

// The secret decides where a key lies: two tables order the same keys differently.
func TestTableKeyed(t *testing.T) {
	a, b := newSecret(), newSecret()
	require.NotEqual(t, a, b)
	same := 0
	for i := range 1000 {
		if a.sum(benchKey(i))>>56 == b.sum(benchKey(i))>>56 {
			same++
		}
	}
	assert.Less(t, same, 50, "of 1000 keys, 1 in 256 should agree by chance")
}

// Keys that differ little must spread over the slots as random ones would: probes stay short.
func TestTableProbes(t *testing.T) {
	tab := newTable(newSecret(), 100000)
	for i := range 100000 {
		tab.put(benchKey(i), uint32(i+1))
	}
	mask := uint64(len(tab.cur.slots) - 1)
	longest, sum := uint64(0), uint64(0)
	for i, e := range tab.cur.slots {
		if e.id != 0 {
			d := (uint64(i) - tab.hash(e.key)>>tab.cur.shift) & mask
			longest, sum = max(longest, d), sum+d
		}
	}
	assert.Less(t, longest, uint64(64))
	assert.Less(t, float64(sum)/100000, 1.0)
}

func TestTableNoAlloc(t *testing.T) {
	tab := newTable(newSecret(), 1000)
	keys, ids := []key{benchKey(1), benchKey(2)}, make([]uint32, 2)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		tab.put(benchKey(1), 1)
		tab.get(benchKey(1))
		tab.get(benchKey(2))
		tab.getBurst(keys, ids)
		tab.del(benchKey(1))
	}))
}

// No put moves more than a few slots, whatever the size of the table.
func TestTableGrowsInSteps(t *testing.T) {
	tab := newTable(newSecret(), 0)
	for i := range 200000 {
		before := tab.old.n
		tab.put(benchKey(i), uint32(i+1))
		if tab.old.n < before {
			require.Less(t, before-tab.old.n, 200)
		}
	}
}

// benchKey is the i-th of many connections to one listening address.
func benchKey(i int) key {
	return key{0x0a000001, 0x0a010000 + uint32(i>>15), 5000, uint16(i) | 0x8000}
}

func BenchmarkTable(b *testing.B) {
	for _, n := range []int{1, 4096, 1000000} {
		tab := newTable(newSecret(), 0)
		for i := range n {
			tab.put(benchKey(i), uint32(i+1))
		}
		for tab.old.slots != nil {
			tab.step()
		}
		order := rand.New(rand.NewPCG(1, 2)).Perm(n)
		keys := make([]key, max(n, 32))
		for i := range keys {
			keys[i] = benchKey(order[i%n])
		}
		var sum uint32
		run := func(name string, shift int) {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				b.ReportAllocs()
				for i, j := 0, 0; i < b.N; i++ {
					k := keys[j]
					k.lport += uint16(shift)
					sum += tab.get(k)
					if j++; j == n {
						j = 0
					}
				}
			})
		}
		run("hit", 0)
		run("miss", 1)
		b.Run(fmt.Sprintf("burst32/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			var ids [32]uint32
			for i, j := 0, 0; i < b.N; i += 32 {
				tab.getBurst(keys[j:j+32], ids[:])
				if j += 32; j+32 > len(keys) {
					j = 0
				}
			}
		})
		b.Run(fmt.Sprintf("delput/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for i, j := 0, 0; i < b.N; i++ {
				tab.del(keys[j])
				tab.put(keys[j], uint32(j+1))
				if j++; j == n {
					j = 0
				}
			}
		})
		_ = sum
	}
	b.Run("fill1000000", func(b *testing.B) {
		for range b.N {
			tab := newTable(newSecret(), 0)
			for i := range 1000000 {
				tab.put(benchKey(i), uint32(i+1))
			}
		}
	})
}
