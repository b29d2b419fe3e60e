package stack

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"ndpip/dpdk"
	"ndpip/stack/wire"
)

func TestNeighbourBadSender(t *testing.T) {
	for name, c := range map[string]struct {
		mac wire.MAC
		ip  uint32
	}{
		"broadcast IP":         {hostMAC(2), 0xffffffff},
		"network's broadcast":  {hostMAC(2), testNet | 255},
		"network itself":       {hostMAC(2), testNet},
		"multicast IP":         {hostMAC(2), 0xe0000001},
		"loopback":             {hostMAC(2), 0x7f000001},
		"multicast MAC":        {wire.MAC{1, 0, 0x5e, 0, 0, 2}, testNet | 2},
		"broadcast MAC":        {wire.Broadcast, testNet | 2},
		"zero MAC":             {wire.MAC{}, testNet | 2},
		"zero MAC, own IP":     {wire.MAC{}, testOwn},
		"multicast MAC, probe": {wire.MAC{1}, 0},
	} {
		b := newNeighBench(t, 0)
		for _, op := range []uint16{wire.ARPRequest, wire.ARPReply} {
			b.n.input(wire.ARP{Op: op, SenderMAC: c.mac, SenderIP: c.ip, TargetIP: testOwn}, b.now, &b.out)
			assert.Empty(t, b.take(), name)
		}
		assert.EqualValues(t, 2, b.n.count.BadSource, name)
		assert.Len(t, b.n.index, 1, name)
	}
}

// A host outside the prefix that asks for us is answered but not learnt: packets to it go to the gateway.
func TestNeighbourOffLink(t *testing.T) {
	b := newNeighBench(t, 0)
	b.n.input(wire.ARP{Op: wire.ARPRequest, SenderMAC: hostMAC(7), SenderIP: 0x0b000007, TargetIP: testOwn}, b.now, &b.out)
	assert.Equal(t, "answer(7 at 7)", b.take())
	assert.Len(t, b.n.index, 1)
	// A request for somebody else is neither.
	b.n.input(wire.ARP{Op: wire.ARPRequest, SenderMAC: hostMAC(7), SenderIP: testNet | 7, TargetIP: testNet | 8}, b.now, &b.out)
	assert.Empty(t, b.take())
}

func TestNeighbourQueueLimits(t *testing.T) {
	b := newNeighBench(t, 0)
	b.do("resolve 2")
	for i := range neighEach {
		require.Empty(t, b.do(fmt.Sprintf("hold 2 %d", i)))
	}
	require.Equal(t, "full", b.do("hold 2 999"), "the newest is refused")
	require.EqualValues(t, 1, b.n.count.QueueFull)
	// Others still get their eight, until all places are taken.
	held := neighEach
	for h := 10; h < 200; h++ {
		b.do(fmt.Sprintf("resolve %d", h))
		for i := 0; b.do(fmt.Sprintf("hold %d %d", h, i)) == ""; i++ {
			held++
		}
		if held < neighFrames {
			require.GreaterOrEqual(t, b.n.entry[b.n.index[testNet|uint32(h)]].frames, neighEachLow)
		}
	}
	require.Equal(t, neighFrames, held)
	b.check()
	// All of them come back, and the places are used again.
	for range 40 {
		b.now += testSec / 10
		b.n.tick(b.now, &b.out)
	}
	require.Len(t, b.out.drop, neighFrames)
	require.Zero(t, b.n.heldN)
	b.out.reset()
	b.do("resolve 3")
	require.Empty(t, b.do("hold 3 1"))
	require.LessOrEqual(t, len(b.n.held), neighFrames+1)
}

func TestNeighbourEviction(t *testing.T) {
	b := newNeighBench(t, 3)
	for h := 2; h <= 4; h++ {
		b.do(fmt.Sprintf("resolve %d", h))
		b.do(fmt.Sprintf("reply %d", h))
	}
	// 2 was not used for longest, but has been marked: 3 goes.
	b.do("touch 2")
	require.Equal(t, "wait ask(5 at all)", b.do("resolve 5"))
	require.NotContains(t, b.n.index, testNet|3)
	b.do("hold 5 1")
	// One with frames stays, however old.
	b.do("resolve 6")
	b.do("reply 6")
	b.do("resolve 7")
	b.do("reply 7")
	b.do("resolve 8")
	require.Contains(t, b.n.index, testNet|5)
	// When all have frames, the oldest hands them back.
	b.do("reply 5")
	for h := 10; h <= 12; h++ {
		b.do(fmt.Sprintf("resolve %d", h))
		b.do(fmt.Sprintf("hold %d %d", h, h))
	}
	require.Equal(t, "wait ask(13 at all) drop(10) failed(10)", b.do("resolve 13"))
	require.Contains(t, b.n.index, testFix)
	b.check()
	// A flood of forged requests replaces only what it has itself brought, and what is not in use.
	b = newNeighBench(t, 3)
	b.do("resolve 2")
	b.do("reply 2")
	for h := 20; h < 200; h++ {
		b.do(fmt.Sprintf("request %d", h))
	}
	require.Equal(t, "ready 2", b.do("resolve 2"))
	b.check()
}

func TestNeighbourDeadline(t *testing.T) {
	b := newNeighBench(t, 0)
	_, ok := b.n.deadline()
	require.False(t, ok)
	b.do("resolve 2")
	b.now += testSec / 2
	b.do("resolve 3")
	at, ok := b.n.deadline()
	require.True(t, ok)
	require.Equal(t, b.now+testSec/2, at)
	// Driven by deadlines alone it comes to the same end.
	for ok {
		b.n.tick(at, &b.out)
		at, ok = b.n.deadline()
	}
	require.Equal(t, "ask(2 at all) ask(3 at all) ask(2 at all) ask(3 at all) failed(2) failed(3)", b.take())
	require.Len(t, b.n.index, 1)
}

func TestNeighbourAnnounce(t *testing.T) {
	b := newNeighBench(t, 0)
	b.n.announce(&b.out)
	require.Equal(t, "ask(1 at all)", b.take())
}

func TestNeighbourPut(t *testing.T) {
	b := newNeighBench(t, 0)
	b.n.resolve(testNet|2, b.now, &b.out)
	buf := make([]byte, 64)
	n := b.out.arp[0].put(buf)
	require.Equal(t, wire.EthLen+wire.ARPLen, n)
	require.Equal(t, wire.Broadcast, wire.EthDst(buf))
	a, reason := wire.ParseARP(buf[wire.EthLen:n])
	require.Equal(t, wire.OK, reason)
	require.Equal(t, b.out.arp[0].arp, a)
}

func TestNeighbourSnapshot(t *testing.T) {
	b := newNeighBench(t, 0)
	get := func(h uint32) string {
		mac, ok := b.n.snapshot().lookup(testNet | h)
		if !ok {
			return "?"
		}
		return macName(mac)
	}
	assert.Equal(t, "all", get(9))
	assert.Equal(t, "?", get(2))
	_, ok := b.n.snapshot().lookup(0)
	assert.False(t, ok)
	b.do("request 2")
	old := b.n.snapshot()
	b.n.publish(b.now)
	assert.Equal(t, "2", get(2))
	_, ok = old.lookup(testNet | 2)
	assert.False(t, ok, "a snapshot does not change")
	b.n.publish(b.now)
	b.do("reply 2 other")
	b.n.publish(b.now)
	assert.Equal(t, "2'", get(2))
	// A look-up is use: it has the entry probed when it is old.
	b.do("pass 40")
	get(2)
	assert.Equal(t, "ask(2 at 2')", b.do("pass 1"))
	get(2)
	b.do("pass 3")
	b.n.publish(b.now)
	assert.Equal(t, "?", get(2), "not known any more")
}

// Readers on other threads, for the race detector: what they see is whole, one of the two addresses.
func TestNeighbourReaders(t *testing.T) {
	b := newNeighBench(t, 0)
	b.do("request 2")
	b.n.publish(b.now)
	_, ref, _ := b.n.resolve(testNet|2, b.now, &b.out)
	stop, bad := make(chan struct{}), make(chan bool)
	go func() {
		wrong := false
		for {
			select {
			case <-stop:
				bad <- wrong
				return
			default:
				mac, ok := b.n.snapshot().lookup(testNet | 2)
				wrong = wrong || !ok || mac != hostMAC(2) && mac != otherMAC(2)
				b.n.touch(ref)
			}
		}
	}()
	for range 1000 {
		b.do("request 2 other")
		b.n.publish(b.now)
		b.do("request 2")
		b.n.publish(b.now)
		b.do("pass 1")
	}
	close(stop)
	require.False(t, <-bad)
}

// With many neighbours the snapshot is made anew less often.
func TestNeighbourSnapshotRate(t *testing.T) {
	b := newNeighBench(t, 0)
	for h := 10; h < 200; h++ {
		b.do(fmt.Sprintf("request %d", h))
	}
	b.n.publish(b.now)
	made := 0
	for range 1000 { // 1 ms of turns, each with news
		b.now += 1000
		old := b.n.snapshot()
		b.do("request 10 other")
		b.do("request 10")
		b.n.publish(b.now)
		if b.n.snapshot() != old {
			made++
		}
	}
	require.Less(t, made, 5)
	b.now += testSec
	b.n.publish(b.now)
	require.False(t, b.n.dirty)
}

// Seeded random steps, with what must hold checked after each; and every frame comes out exactly once.
func TestNeighbourRandom(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		b := newNeighBench(t, 5)
		in := 0
		for range 2000 {
			h := 2 + r.IntN(12)
			suffix := []string{"", " other"}[r.IntN(2)]
			switch r.IntN(8) {
			case 0, 1:
				if b.do(fmt.Sprintf("resolve %d", h)) == "ready" {
					b.do(fmt.Sprintf("touch %d", h))
				}
			case 2, 3:
				if e := b.n.index[testNet|uint32(h)]; b.n.entry[e].state == neighIncomplete && b.n.hold(testNet|uint32(h), dpdk.Frame{Handle: 1}) {
					in++
				}
			case 4:
				b.n.input(wire.ARP{Op: uint16(1 + r.IntN(2)), SenderMAC: hostMAC(byte(h)), SenderIP: testNet | uint32(h), TargetIP: testNet | uint32(r.IntN(3))}, b.now, &b.out)
			case 5:
				if r.IntN(8) == 0 {
					b.do(fmt.Sprintf("gratuitous %d%s", h, suffix))
				}
			default:
				b.now += r.Int64N(2 * testSec)
				b.n.tick(b.now, &b.out)
			}
			b.take()
			b.check()
			require.Equal(t, in, b.back+b.n.heldN)
		}
		for range 100 {
			b.now += testSec
			b.n.tick(b.now, &b.out)
		}
		b.take()
		require.Equal(t, in, b.back)
	}
}

func TestNextHop(t *testing.T) {
	n := newNeighBench(t, 0).n
	for _, c := range []struct {
		dst, hop uint32
		kind     hopKind
	}{
		{testNet | 2, testNet | 2, hopDirect},
		{testNet | 254, testNet | 254, hopDirect},
		{testOwn, testOwn, hopSelf},
		{0x08080808, testNet | 254, hopGateway},
		{testNet | 255, testNet | 255, hopBroadcast},
		{0xffffffff, 0xffffffff, hopBroadcast},
		{0xe0000001, 0xe0000001, hopMulticast},
		{0xeffffffa, 0xeffffffa, hopMulticast},
		{0, 0, hopNone},
		{0x7f000001, 0, hopNone},
		{0xf0000001, 0, hopNone},
	} {
		hop, kind := n.nextHop(c.dst)
		assert.Equal(t, c.hop, hop, "%08x", c.dst)
		assert.Equal(t, c.kind, kind, "%08x", c.dst)
		_, err := n.unicastHop(c.dst)
		if c.kind == hopDirect || c.kind == hopGateway {
			assert.NoError(t, err)
		} else {
			assert.Equal(t, unix.ENETUNREACH, err)
		}
	}
	// Without a gateway there is no way off the link, but to a static neighbour.
	r := route{net: wire.Net{Addr: testOwn, Mask: 0xffffffff}, static: map[uint32]bool{testNet | 2: true}}
	_, kind := r.nextHop(testNet | 3)
	assert.Equal(t, hopNone, kind)
	_, kind = r.nextHop(testNet | 2)
	assert.Equal(t, hopDirect, kind)
	assert.Equal(t, wire.MAC{1, 0, 0x5e, 0x7f, 0xff, 0xfa}, groupMAC(0xeffffffa, hopMulticast))
	assert.Equal(t, wire.Broadcast, groupMAC(0xffffffff, hopBroadcast))
}

func BenchmarkNeighbour(b *testing.B) {
	n := newNeighbours(neighConfig{mac: hostMAC(1), net: wire.Net{Addr: testOwn, Mask: 0xffff0000}, secret: newSecret()})
	var out neighOut
	for i := range uint32(neighEntries) {
		ip := testNet | (i + 512)
		n.input(wire.ARP{Op: wire.ARPRequest, SenderMAC: hostMAC(2), SenderIP: ip, TargetIP: testOwn}, 0, &out)
		out.reset()
	}
	n.publish(1)
	n.build(2)
	b.Run("resolve", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			n.resolve(testNet|(uint32(i)&4095+512), 3, &out)
		}
	})
	b.Run("lookup", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			n.snapshot().lookup(testNet | (uint32(i)&4095 + 512))
		}
	})
	b.Run("touch", func(b *testing.B) {
		for range b.N {
			n.touch(7)
		}
	})
	b.Run("forged-requests", func(b *testing.B) {
		b.ReportAllocs()
		for i := range b.N {
			n.input(wire.ARP{Op: wire.ARPRequest, SenderMAC: hostMAC(2), SenderIP: testNet | uint32(i)&0x7fff, TargetIP: testOwn}, 3, &out)
			out.reset()
		}
	})
	b.Run("tick", func(b *testing.B) {
		for i := range b.N {
			n.tick(int64(i)*neighLook, &out)
			out.reset()
		}
	})
	b.Run("snapshot4096", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			n.build(4)
		}
	})
}
