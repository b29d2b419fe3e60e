package stack

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
