package stack

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const portOwn = 0x0a000001

func newTestPorts(low, high uint16) *ports {
	return newPorts(secret{1, 2, 3, 4}, portOwn, newTable(secret{1, 2, 3, 4}, 0), low, high)
}

// connect chooses a port and puts the connection into the table, as the stack does.
func (p *ports) connect(raddr uint32, rport uint16) (k key, ref uint32, ok bool) {
	port, ref, ok := p.choose(raddr, rport, false)
	k = key{portOwn, raddr, port, rport}
	if ok {
		p.tab.put(k, ref)
	}
	return k, ref, ok
}

func (p *ports) gone(k key, ref uint32) {
	p.tab.del(k)
	p.drop(ref)
}

// Every port of the range is chosen once for a destination, and again for another; then there is none.
func TestPortsAll(t *testing.T) {
	for _, r := range [][2]uint16{{32768, 65535}, {32768, 60999}, {1000, 1000}, {1000, 1001}, {63, 64}, {1, 200}, {65472, 65535}, {100, 400}} {
		p := newTestPorts(r[0], r[1])
		n := int(r[1]) - int(r[0]) + 1
		for dest := range uint32(3) {
			seen := map[uint16]bool{}
			for range n {
				k, _, ok := p.connect(dest, 80)
				require.True(t, ok, "%v: a port is free", r)
				require.False(t, seen[k.lport])
				require.GreaterOrEqual(t, k.lport, r[0])
				require.LessOrEqual(t, k.lport, r[1])
				seen[k.lport] = true
			}
			_, _, ok := p.connect(dest, 80)
			require.False(t, ok)
		}
		require.Equal(t, 3*n, p.tab.len())
	}
}

// Random use, against a model: a port is refused only when all are taken, bound ones are never chosen, and nothing
// is left at the end.
func TestPortsModel(t *testing.T) {
	type conn struct {
		key
		ref  uint32
		wait bool
	}
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := newTestPorts(1000, 1299)
		conns := map[key]*conn{}
		bound := map[uint16]bool{}
		pick := func() *conn {
			for _, c := range conns { // any
				return c
			}
			return nil
		}
		for range 5000 {
			switch dest := uint32(r.IntN(3)); r.IntN(20) {
			default:
				free, waiting := 300, 0
				for port := uint16(1000); port < 1300; port++ {
					c := conns[key{portOwn, dest, port, 80}]
					if c != nil && c.wait {
						waiting++
					}
					if c != nil || bound[port] {
						free--
					}
				}
				k, ref, ok := p.connect(dest, 80)
				require.Equal(t, free+waiting > 0, ok, "%d free, %d waiting", free, waiting)
				if !ok {
					break
				}
				old := conns[k]
				require.Equal(t, free == 0, old != nil)
				if old != nil {
					require.True(t, old.wait)
					p.drop(old.ref) // the stack frees the old connection later than it starts the new one
				} else {
					require.False(t, bound[k.lport])
				}
				conns[k] = &conn{key: k, ref: ref}
			case 0, 1, 2, 3, 4:
				if c := pick(); c != nil {
					p.gone(c.key, c.ref)
					delete(conns, c.key)
				}
			case 5, 6:
				if c := pick(); c != nil {
					p.wait(c.ref)
					c.wait = true
				}
			case 7:
				if port, ok := p.bind(0, false); ok && len(bound) < 100 {
					require.False(t, bound[port])
					bound[port] = true
				} else if ok {
					p.release(port, false)
				}
			case 8:
				for port := range bound {
					p.release(port, false)
					delete(bound, port)
					break
				}
			}
		}
		for _, c := range conns {
			p.gone(c.key, c.ref)
		}
		for port := range bound {
			p.release(port, false)
		}
		p.checkEmpty(t)
	}
}

// checkEmpty says that nothing is in use.
func (p *ports) checkEmpty(t *testing.T) {
	t.Helper()
	fresh := newTestPorts(uint16(p.low), uint16(p.low+p.n-1))
	assert.Equal(t, fresh.bound, p.bound)
	assert.Equal(t, fresh.busy, p.busy)
	assert.Empty(t, p.byDest)
	for port := range 65536 {
		if p.pages[port>>8] != nil {
			require.Zero(t, *p.at(uint16(port)), "port %d", port)
		}
	}
	for i, m := range p.maps[1:] {
		assert.Equal(t, make([]uint64, len(m)), m, "bitmap %d", i+1)
	}
	assert.Len(t, p.mapFree, len(p.maps)-1)
}

// A hundred thousand connections to one server, each in TIME-WAIT for as long as 40,000 others take: far more than
// there are ports. All get a port, those in TIME-WAIT are reused in order, and none of those in use is.
func TestPortsCycles(t *testing.T) {
	p := newTestPorts(portLow, portHigh)
	type old struct {
		key
		ref uint32
	}
	var waiting []old
	live := map[uint16]bool{}
	for range 100 {
		k, _, ok := p.connect(7, 80)
		require.True(t, ok)
		live[k.lport] = true
	}
	for i := range 100000 {
		k, ref, ok := p.connect(7, 80)
		require.True(t, ok, "connection %d", i)
		require.False(t, live[k.lport])
		p.wait(ref)
		waiting = append(waiting, old{k, ref})
		if len(waiting) > 40000 {
			if p.tab.get(waiting[0].key) == waiting[0].ref {
				p.tab.del(waiting[0].key)
			}
			p.drop(waiting[0].ref)
			waiting = waiting[1:]
		}
	}
	for i := len(waiting) - 1; i > len(waiting)-30000; i-- {
		require.Equal(t, waiting[i].ref, p.tab.get(waiting[i].key), "the last ones were not reused")
	}
	assert.LessOrEqual(t, p.refs.n, uint32(40102))
}

// A connection that a listener accepted on a port of the range may outlive the listener. Its 4-tuple is not chosen.
func TestPortsForeign(t *testing.T) {
	p := newTestPorts(1000, 1003)
	p.tab.put(key{portOwn, 7, 1002, 80}, 99)
	for range 3 {
		k, _, ok := p.connect(7, 80)
		require.True(t, ok)
		require.NotEqual(t, uint16(1002), k.lport)
	}
	_, _, ok := p.connect(7, 80)
	require.False(t, ok)
}

func TestPortsBind(t *testing.T) {
	const p1 = 80
	for name, c := range map[string]struct {
		before func(p *ports)
		reuse  bool
		ok     bool
	}{
		"free":                            {func(*ports) {}, false, true},
		"bound":                           {func(p *ports) { p.bind(p1, false) }, false, false},
		"bound, we reuse":                 {func(p *ports) { p.bind(p1, false) }, true, false},
		"bound with reuse, we do not":     {func(p *ports) { p.bind(p1, true) }, false, false},
		"both reuse":                      {func(p *ports) { p.bind(p1, true) }, true, true},
		"both reuse, it listens":          {func(p *ports) { p.bind(p1, true); p.listen(p1) }, true, false},
		"both reuse, it has listened":     {func(p *ports) { p.bind(p1, true); p.listen(p1); p.unlisten(p1) }, true, true},
		"another port":                    {func(p *ports) { p.bind(81, false) }, false, true},
		"released":                        {func(p *ports) { p.bind(p1, false); p.release(p1, false) }, false, true},
		"accepted left":                   {func(p *ports) { p.bind(p1, false); p.hold(p1, false); p.release(p1, false) }, false, false},
		"accepted left, we reuse":         {func(p *ports) { p.bind(p1, false); p.hold(p1, false); p.release(p1, false) }, true, false},
		"accepted left, both reuse":       {func(p *ports) { p.bind(p1, true); p.hold(p1, true); p.release(p1, true) }, true, true},
		"one of two without reuse":        {func(p *ports) { p.bind(p1, true); p.hold(p1, false) }, true, false},
		"one of two without reuse, ended": {func(p *ports) { p.bind(p1, true); p.hold(p1, false); p.release(p1, false) }, true, true},
	} {
		p := newTestPorts(portLow, portHigh)
		c.before(p)
		got, ok := p.bind(p1, c.reuse)
		assert.Equal(t, c.ok, ok, name)
		if ok {
			assert.EqualValues(t, p1, got, name)
		}
	}
	p := newTestPorts(portLow, portHigh)
	p.bind(p1, true)
	p.bind(p1, true)
	assert.True(t, p.listen(p1))
	assert.False(t, p.listen(p1), "two listeners on one port")
}

// A chosen port counts as in use for bind, and a bound one is never chosen.
func TestPortsBindAndChoose(t *testing.T) {
	p := newTestPorts(1000, 1001)
	k, ref, _ := p.connect(7, 80)
	_, ok := p.bind(k.lport, false)
	assert.False(t, ok)
	other, ok := p.bind(0, false)
	require.True(t, ok)
	assert.NotEqual(t, k.lport, other)
	_, _, ok = p.connect(8, 80)
	assert.True(t, ok, "the same port serves another destination")
	_, _, ok = p.connect(7, 80)
	assert.False(t, ok, "the bound port is not chosen")
	// With no port quite free, bind(0) takes one that connections alone use.
	p.release(other, false)
	p.connect(7, 80)
	port, ok := p.bind(0, false)
	assert.True(t, ok)
	p.release(port, false)
	// SO_REUSEADDR of the connection's socket counts as well.
	p.gone(k, ref)
	p = newTestPorts(1000, 1000)
	p.choose(7, 80, true)
	_, ok = p.bind(1000, true)
	assert.True(t, ok)
	_, ok = p.bind(0, false)
	assert.False(t, ok)
}

func TestPortsBindFree(t *testing.T) {
	p := newTestPorts(1000, 1099)
	seen := map[uint16]bool{}
	var order []uint16
	for range 100 {
		port, ok := p.bind(0, false)
		require.True(t, ok)
		require.False(t, seen[port])
		seen[port] = true
		order = append(order, port)
	}
	_, ok := p.bind(0, false)
	require.False(t, ok)
	next := 0
	for i := range order[1:] {
		if order[i+1] == order[i]+1 {
			next++
		}
	}
	assert.Less(t, next, 60, "free ports are given out at random")
}

// Where a destination's ports start is not to be told from those of another, nor from another run's.
func TestPortsRandom(t *testing.T) {
	a := newPorts(newSecret(), portOwn, newTable(newSecret(), 0), portLow, portHigh)
	b := newPorts(newSecret(), portOwn, newTable(newSecret(), 0), portLow, portHigh)
	same, near := 0, 0
	last := uint16(0)
	for dest := range uint32(1000) {
		x, _, _ := a.choose(dest, 80, false)
		y, _, _ := b.choose(dest, 80, false)
		if x == y {
			same++
		}
		if x-last < 33 || last-x < 33 {
			near++
		}
		last = x
	}
	assert.Less(t, same, 10)
	assert.Less(t, near, 20)
	// One after the other to the same destination: a port comes back only when all others were used.
	seen := map[uint16]int{}
	for i := range 70000 {
		x, ref, _ := a.choose(5, 80, false)
		if at, ok := seen[x]; ok {
			require.Greater(t, i-at, 30000)
		}
		seen[x] = i
		a.drop(ref)
	}
}

// A destination gets a bitmap when it has many connections, gives it back when it has few, and another uses it.
func TestPortsBitmaps(t *testing.T) {
	p := newTestPorts(portLow, portHigh)
	p.wait(0) // the ref of a port that was not chosen
	p.drop(0)
	for dest := range uint32(3) {
		var ks []key
		var refs []uint32
		for range portDense {
			k, ref, _ := p.connect(dest, 80)
			ks, refs = append(ks, k), append(refs, ref)
		}
		require.Len(t, p.maps, 2)
		require.Empty(t, p.mapFree)
		for i, k := range ks {
			p.wait(refs[i])
			p.gone(k, refs[i])
		}
	}
	p.checkEmpty(t)
}

func TestPortsNoAlloc(t *testing.T) {
	p := newTestPorts(portLow, portHigh)
	p.connect(7, 80)
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		k, ref, _ := p.connect(7, 80)
		p.wait(ref)
		p.gone(k, ref)
	}))
}

func TestPaged(t *testing.T) {
	var p paged[int]
	for i := range 3 * pageLen {
		require.EqualValues(t, i+1, p.add())
		*p.at(uint32(i + 1)) = i
	}
	assert.Zero(t, *p.at(0))
	assert.Equal(t, 3*pageLen-1, *p.at(3 * pageLen))
}

// BenchmarkPortsMillion opens a million connections to 31 servers, which leaves 1.6 % of the 4-tuples, and compares
// the first and the last thousand. Each of them is one choose and one put.
func BenchmarkPortsMillion(b *testing.B) {
	const dests, n = 31, 1000000
	p := newTestPorts(portLow, portHigh)
	for i := range n {
		if _, _, ok := p.connect(0x0a000100+uint32(i%dests), 80); !ok {
			b.Fatal("no port")
		}
	}
	few := newTestPorts(portLow, portHigh)
	for _, c := range []struct {
		name string
		p    *ports
	}{{"first1000", few}, {"last1000", p}} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var ks [1000]key
			var refs [1000]uint32
			for i := 0; i < b.N; i += 1000 {
				for j := range ks {
					ks[j], refs[j], _ = c.p.connect(0x0a000100+uint32(j%dests), 80)
				}
				b.StopTimer()
				for j := range ks {
					c.p.gone(ks[j], refs[j])
				}
				b.StartTimer()
			}
		})
	}
}

func BenchmarkPorts(b *testing.B) {
	for _, dests := range []int{1, 100, 1000000} {
		b.Run(fmt.Sprintf("choose+drop/%d", dests), func(b *testing.B) {
			b.ReportAllocs()
			p := newTestPorts(portLow, portHigh)
			for i := range b.N {
				_, ref, _ := p.choose(uint32(i%dests), 80, false)
				p.drop(ref)
			}
		})
	}
	b.Run("all-in-time-wait", func(b *testing.B) {
		p := newTestPorts(portLow, portHigh)
		for range 32768 {
			_, ref, _ := p.connect(7, 80)
			p.wait(ref)
		}
		for b.Loop() {
			_, ref, _ := p.connect(7, 80)
			p.wait(ref)
		}
	})
}
