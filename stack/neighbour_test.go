package stack

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"ndpip/dpdk"
	"ndpip/stack/wire"
)

const (
	testSec = int64(1e9)
	testNet = uint32(0x0a000000) // 10.0.0.0/24; host h is testNet | h and has the MAC 02::h, its second one 06::h
	testOwn = testNet | 1
	testFix = testNet | 9 // static
)

func hostMAC(h byte) wire.MAC  { return wire.MAC{2, 0, 0, 0, 0, h} }
func otherMAC(h byte) wire.MAC { return wire.MAC{6, 0, 0, 0, 0, h} }

// neighBench is a cache with its time and what it has put out.
type neighBench struct {
	tb  testing.TB
	n   *neighbours
	now int64
	out neighOut

	back int // frames that came out
}

func newNeighBench(tb testing.TB, entries int) *neighBench {
	return &neighBench{tb: tb, now: 1000 * testSec, n: newNeighbours(neighConfig{
		mac:     hostMAC(1),
		net:     wire.Net{Addr: testOwn, Mask: 0xffffff00},
		gateway: testNet | 254,
		static:  map[uint32]wire.MAC{testFix: wire.Broadcast},
		secret:  secret{1, 2, 3, 4},
		entries: entries,
	})}
}

// do performs words such as "resolve 2", "hold 2 7" (frame 7), "reply 2", "request 2", "gratuitous 2", each of these
// also with a trailing "other" for the host's second MAC, "pass 1.5" (seconds, in steps of 100 ms), "touch 2".
// It returns what came out, in words as well.
func (b *neighBench) do(words string) string {
	var f string
	var h uint32
	_, _ = fmt.Sscanf(words, "%s %d", &f, &h)
	ip, mac := testNet|h, hostMAC(byte(h))
	if strings.HasSuffix(words, "other") {
		mac = otherMAC(byte(h))
	}
	arp := wire.ARP{Op: wire.ARPReply, SenderMAC: mac, SenderIP: ip, TargetMAC: hostMAC(1), TargetIP: testOwn}
	result := ""
	switch f {
	case "resolve":
		to, _, st := b.n.resolve(ip, b.now, &b.out)
		result = [...]string{"ready " + macName(to), "wait", "unreachable"}[st]
	case "hold":
		var id uintptr
		_, _ = fmt.Sscanf(words, "hold %d %d", &h, &id)
		if !b.n.hold(ip, dpdk.Frame{Handle: dpdk.Handle(id)}) {
			result = "full"
		}
	case "reply":
		b.n.input(arp, b.now, &b.out)
	case "request":
		arp.Op, arp.TargetMAC = wire.ARPRequest, wire.MAC{}
		b.n.input(arp, b.now, &b.out)
	case "gratuitous":
		arp.Op, arp.TargetIP = wire.ARPRequest, ip
		b.n.input(arp, b.now, &b.out)
	case "probe": // RFC 5227, for our address
		arp.Op, arp.SenderIP = wire.ARPRequest, 0
		b.n.input(arp, b.now, &b.out)
	case "touch":
		b.n.touch(b.n.index[ip])
	case "pass":
		var s float64
		_, _ = fmt.Sscanf(words, "pass %f", &s)
		for end := b.now + int64(s*1e9); b.now < end; {
			b.now += testSec / 10
			b.n.tick(b.now, &b.out)
		}
	default:
		b.tb.Fatalf("unknown step %q", words)
	}
	return strings.TrimSpace(result + " " + b.take())
}

// macName shortens the tests' addresses.
func macName(m wire.MAC) string {
	switch {
	case m == wire.Broadcast:
		return "all"
	case m.IsZero():
		return "none"
	case m == otherMAC(m[5]):
		return fmt.Sprintf("%d'", m[5])
	case m == hostMAC(m[5]):
		return fmt.Sprint(m[5])
	}
	return m.String()
}

// take writes down the output and resets it.
func (b *neighBench) take() string {
	var w []string
	o := &b.out
	for _, k := range o.known {
		w = append(w, fmt.Sprintf("known(%d %s>%s)", k.ip&255, macName(k.old), macName(k.mac)))
	}
	for _, a := range o.arp {
		require.Equal(b.tb, hostMAC(1), a.arp.SenderMAC)
		require.Equal(b.tb, testOwn, a.arp.SenderIP)
		kind := "ask"
		if a.arp.Op == wire.ARPReply {
			kind = "answer"
			require.Equal(b.tb, a.to, a.arp.TargetMAC)
		}
		w = append(w, fmt.Sprintf("%s(%d at %s)", kind, a.arp.TargetIP&255, macName(a.to)))
	}
	for _, f := range o.send {
		w = append(w, fmt.Sprintf("send(%d to %s)", f.frame.Handle, macName(f.to)))
	}
	for _, f := range o.drop {
		w = append(w, fmt.Sprintf("drop(%d)", f.Handle))
	}
	for _, ip := range o.failed {
		w = append(w, fmt.Sprintf("failed(%d)", ip&255))
	}
	b.back += len(o.send) + len(o.drop)
	o.reset()
	return strings.Join(w, " ")
}

// Every state, and what each kind of input brings about in it. A step is "what is done: what comes out".
func TestNeighbourStates(t *testing.T) {
	const (
		toKnown = "resolve 2: wait ask(2 at all); reply 2: known(2 none>2)"
		toStale = toKnown + "; pass 31:"
		toProbe = toStale + "; resolve 2: ready 2 ask(2 at 2)"
		toFail  = "resolve 2: wait ask(2 at all); pass 3: ask(2 at all) ask(2 at all) failed(2)"
	)
	for name, script := range map[string]string{
		"none/reply is not learnt":          "reply 2: ; resolve 2: wait ask(2 at all)",
		"none/gratuitous is not learnt":     "gratuitous 2: ; resolve 2: wait ask(2 at all)",
		"none/request is learnt, answered":  "request 2: known(2 none>2) answer(2 at 2); resolve 2: ready 2",
		"none/conflict probe only answered": "probe 2: answer(0 at 2); resolve 2: wait ask(2 at all)",

		"incomplete/eight frames leave in order": "resolve 2: wait ask(2 at all); hold 2 1: ; resolve 2: wait; hold 2 2: ; hold 2 3: ; hold 2 4:; " +
			"hold 2 5: ; hold 2 6: ; hold 2 7: ; hold 2 8: ; pass 0.9: ; reply 2: known(2 none>2) send(1 to 2) send(2 to 2) " +
			"send(3 to 2) send(4 to 2) send(5 to 2) send(6 to 2) send(7 to 2) send(8 to 2); resolve 2: ready 2; pass 5:",
		"incomplete/asked each second": "resolve 2: wait ask(2 at all); pass 0.9: ; pass 0.1: ask(2 at all); pass 0.9: ; pass 0.1: ask(2 at all); pass 0.9: ; " +
			"pass 0.1: failed(2)",
		"incomplete/frames come back": "resolve 2: wait ask(2 at all); hold 2 1: ; hold 2 2: ; pass 2: ask(2 at all) ask(2 at all); " +
			"hold 2 3: ; pass 1: drop(1) drop(2) drop(3) failed(2)",
		"incomplete/late answer":            "resolve 2: wait ask(2 at all); hold 2 1: ; pass 2.9: ask(2 at all) ask(2 at all); reply 2: known(2 none>2) send(1 to 2); pass 9:",
		"incomplete/request serves as well": "resolve 2: wait ask(2 at all); hold 2 1: ; request 2: known(2 none>2) answer(2 at 2) send(1 to 2)",
		"incomplete/gratuitous, then confirmed": "resolve 2: wait ask(2 at all); hold 2 1: ; gratuitous 2: known(2 none>2) send(1 to 2); " +
			"resolve 2: ready 2 ask(2 at 2); reply 2: ; resolve 2: ready 2",
		"incomplete/another's reply": "resolve 2: wait ask(2 at all); reply 3: ; resolve 2: wait",
		"incomplete/two at once": "resolve 2: wait ask(2 at all); pass 0.5: ; resolve 3: wait ask(3 at all); hold 2 1: ; hold 3 2: ; " +
			"pass 0.5: ask(2 at all); pass 0.5: ask(3 at all); reply 3: known(3 none>3) send(2 to 3); pass 2: ask(2 at all) drop(1) failed(2)",

		"known/trusted for 30 s":           toKnown + "; pass 29.9: ; resolve 2: ready 2; pass 9:",
		"known/same address by gratuitous": toKnown + "; pass 20: ; gratuitous 2: ; pass 11: ; resolve 2: ready 2 ask(2 at 2)",
		"known/reply confirms":             toKnown + "; pass 20: ; reply 2: ; pass 20: ; resolve 2: ready 2",
		"known/request confirms":           toKnown + "; pass 20: ; request 2: answer(2 at 2); pass 20: ; resolve 2: ready 2",
		"known/moves by reply":             toKnown + "; reply 2 other: known(2 2>2'); resolve 2: ready 2'",
		"known/moves by request":           toKnown + "; request 2 other: known(2 2>2') answer(2 at 2'); resolve 2: ready 2'",
		"known/moves by gratuitous":        toKnown + "; gratuitous 2 other: known(2 2>2'); resolve 2: ready 2' ask(2 at 2'); reply 2 other: ; resolve 2: ready 2'",
		"known/unused is left alone":       toKnown + "; pass 3600:",

		"stale/used is probed, and answers": toProbe + "; reply 2: ; pass 29: ; resolve 2: ready 2; pass 9:",
		"stale/touch is use":                toStale + "; touch 2: ; pass 1: ask(2 at 2); reply 2: ; pass 9:",
		"stale/moves":                       toStale + "; gratuitous 2 other: known(2 2>2'); resolve 2: ready 2' ask(2 at 2')",

		"probing/unanswered but used":   toProbe + "; resolve 2: ready 2; pass 2: ask(2 at 2) ask(2 at 2); pass 1: ask(2 at all); resolve 2: wait; reply 2: known(2 2>2)",
		"probing/unanswered, touched":   toProbe + "; touch 2: ; pass 3: ask(2 at 2) ask(2 at 2) ask(2 at all); pass 3: ask(2 at all) ask(2 at all) failed(2)",
		"probing/unanswered, unused":    toProbe + "; pass 3: ask(2 at 2) ask(2 at 2); resolve 2: wait ask(2 at all)",
		"probing/answered the 3rd time": toProbe + "; resolve 2: ready 2; pass 2.9: ask(2 at 2) ask(2 at 2); reply 2: ; pass 9:",
		"probing/moves":                 toProbe + "; reply 2 other: known(2 2>2'); pass 9: ; resolve 2: ready 2'",
		"probing/comes back elsewhere":  toProbe + "; resolve 2: ready 2; pass 3: ask(2 at 2) ask(2 at 2) ask(2 at all); reply 2 other: known(2 2>2')",

		"failed/remembered, then tried anew": toFail + "; resolve 2: unreachable; hold 2 1: full; pass 0.9: ; resolve 2: unreachable; pass 0.1: ; resolve 2: wait ask(2 at all)",
		"failed/comes up":                    toFail + "; gratuitous 2: known(2 none>2); pass 9: ; resolve 2: ready 2 ask(2 at 2)",
		"failed/asks us":                     toFail + "; request 2: known(2 none>2) answer(2 at 2); resolve 2: ready 2; pass 9:",

		"static/never asked for, never changed": "resolve 9: ready all; pass 100: ; touch 9: ; resolve 9: ready all; pass 100: ; gratuitous 9: ; reply 9: ; " +
			"request 9: answer(9 at 9); resolve 9: ready all",

		"own/conflict is defended, at most every 10 s": "gratuitous 1 other: ask(1 at all); reply 1 other: ; pass 9: ; request 1 other: ; pass 1: ; gratuitous 1 other: ask(1 at all)",
		"own/echo": "gratuitous 1:",
	} {
		t.Run(name, func(t *testing.T) {
			b := newNeighBench(t, 0)
			for i, step := range strings.Split(script, ";") {
				do, want, ok := strings.Cut(strings.TrimSpace(step), ":")
				require.True(t, ok, "step %q has no colon", step)
				require.Equal(t, strings.TrimSpace(want), b.do(do), "step %d, %q", i+1, do)
				b.check()
			}
		})
	}
}

// check looks at what must hold at any time.
func (b *neighBench) check() {
	n := b.n
	lists := map[uint32]string{}
	frames := 0
	for i := n.idle.first; i != 0; i = n.entry[i].links[lruLinks].next {
		lists[i] += "idle"
		require.Zero(b.tb, n.entry[i].frames)
	}
	for i := n.full.first; i != 0; i = n.entry[i].links[lruLinks].next {
		lists[i] += "full"
		require.Equal(b.tb, neighIncomplete, n.entry[i].state)
		count := 0
		for h := n.entry[i].first; h != 0; h = n.held[h].next {
			count++
		}
		require.Equal(b.tb, n.entry[i].frames, count)
		frames += count
	}
	require.Equal(b.tb, n.heldN, frames)
	last := int64(0)
	for i := n.timers.first; i != 0; i = n.entry[i].links[timerLinks].next {
		lists[i] += "timer"
		require.GreaterOrEqual(b.tb, n.entry[i].at, last, "timers are in order")
		last = n.entry[i].at
	}
	require.LessOrEqual(b.tb, len(n.index)-n.fixed, n.max)
	for ip, i := range n.index {
		e := &n.entry[i]
		require.Equal(b.tb, ip, e.ip)
		switch e.state {
		case neighIncomplete:
			require.Contains(b.tb, []string{"idletimer", "fulltimer"}, lists[i])
		case neighKnown:
			require.Equal(b.tb, "idle", lists[i])
		case neighProbing, neighFailed:
			require.Equal(b.tb, "idletimer", lists[i])
		case neighStatic:
			require.Empty(b.tb, lists[i])
		default:
			b.tb.Fatalf("entry %d is unused but indexed", i)
		}
		delete(lists, i)
	}
	require.Empty(b.tb, lists)
}

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
