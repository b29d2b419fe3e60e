package stack_test

import (
	"bytes"
	"encoding/binary"
	"syscall"
	"testing"
	"time"

	"ndpip/stack"
	"ndpip/stack/link"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// N6: ping, a closed UDP port, and ICMP errors.
func TestN6(t *testing.T) {
	r := newRig(t)
	for _, n := range []int{0, 1, 56, 1400, 1472} {
		data := pattern(0, n)
		r.inject(icmp(peerIP, wire.ICMPEcho, 0, 0x12340001, data))
		m := r.outIP(wire.ProtoICMP, peerMAC, peerIP)
		if m[0] != wire.ICMPEchoReply || m[1] != 0 || binary.BigEndian.Uint32(m[4:]) != 0x12340001 || !bytes.Equal(m[8:], data) {
			t.Errorf("%d bytes: answered % x", n, m)
		}
	}
	q := datagram(peerIP, 99, 1000, "nobody is there")
	r.inject(q)
	m := r.outIP(wire.ProtoICMP, peerMAC, peerIP)
	if m[0] != wire.ICMPUnreachable || m[1] != wire.UnreachPort || !bytes.Equal(m[8:], q[wire.EthLen:wire.EthLen+wire.IPv4Len+8]) {
		t.Errorf("a closed UDP port: % x", m)
	}
	// Not about what went to many, nor about an error, nor to a source that nobody has.
	b := datagram(peerIP, 99, 1000, "to all")
	copy(b, wire.Broadcast[:])
	r.inject(b)
	r.inject(icmp(peerIP, wire.ICMPUnreachable, wire.UnreachPort, 0, q[wire.EthLen:]))
	r.inject(datagram(0x0a0000ff, 99, 1000, "from the broadcast address"))
	r.inject(datagram(0xe0000001, 99, 1000, "from a group"))
	r.quiet()

	for _, c := range []struct {
		code uint8
		want syscall.Errno
	}{
		{wire.UnreachNet, syscall.EHOSTUNREACH}, {wire.UnreachHost, syscall.EHOSTUNREACH},
		{wire.UnreachProtocol, syscall.ECONNREFUSED}, {wire.UnreachPort, syscall.ECONNREFUSED},
	} {
		f := r.flow() // while connecting
		f.connect(stack.Options{})
		syn := r.next()
		forged := bytes.Clone(syn)
		forged[wire.EthLen+wire.IPv4Len+7]++ // another sequence number
		r.inject(unreachable(c.code, forged))
		f.state(tcp.SynSent)
		r.inject(unreachable(wire.UnreachFragment, syn))
		f.state(tcp.SynSent)
		r.inject(unreachable(c.code, syn))
		r.quiet()
		f.outcome(c.want)

		g := r.dial() // once connected: it is no proof
		g.in("SA", 0, 1)
		g.out("A", 1, 1)
		g.send(pattern(1, 10))
		data := r.next()
		r.inject(unreachable(c.code, data))
		g.state(tcp.Established)
		g.in("R", 1, 0)

		u := r.socket(0, 7)
		if e := r.SendTo(u, []byte("x"), peerIP, 7); e != 0 {
			t.Fatal(e)
		}
		r.run()
		sent := r.next()
		r.inject(unreachable(c.code, sent))
		if e := syscall.Errno(u.Err.Load()); e != c.want {
			t.Errorf("UDP, code %d: %v, want %v", c.code, e, c.want)
		}
		for _, at := range []int{12, 16, 20, 22} { // source, destination, ports of what it is about: not ours
			bogus := bytes.Clone(sent)
			bogus[wire.EthLen+at]++
			u.Err.Store(0)
			r.inject(unreachable(c.code, bogus))
			if e := u.Err.Load(); e != 0 {
				t.Errorf("a bogus error gives %d", e)
			}
		}
	}
}

// N6: errors are sent to one who asks for them no more than a thousand times a second.
func TestN6Budget(t *testing.T) {
	r := newRig(t)
	for range 5000 {
		r.inject(datagram(peerIP, 99, 1000, ""))
	}
	if len(r.got) != 1000 {
		t.Errorf("%d ICMP errors for 5000 datagrams at once", len(r.got))
	}
	r.got = nil
	r.advance(time.Second)
	r.inject(datagram(peerIP, 99, 1000, ""))
	r.outIP(wire.ProtoICMP, peerMAC, peerIP)
}

// N7: a datagram larger than the MTU allows.
func TestN7(t *testing.T) {
	r := newRig(t)
	u := r.socket(1, 0)
	for _, c := range []struct {
		n int
		e syscall.Errno
	}{{1472, 0}, {1473, syscall.EMSGSIZE}, {65507, syscall.EMSGSIZE}, {70000, syscall.EMSGSIZE}} {
		if e := r.SendTo(u, make([]byte, c.n), peerIP, 1); e != c.e {
			t.Errorf("%d bytes: %v, want %v", c.n, e, c.e)
		}
		r.run()
		if c.e == 0 {
			r.outIP(wire.ProtoUDP, peerMAC, peerIP)
		}
		r.quiet()
	}
}

// N8: an MTU of 9000 against a peer of 1500, and 9000 on both sides.
func TestN8(t *testing.T) {
	for _, peer := range []int{1500, 9000} {
		big := link.Port{Buffers: 4096, TxBuffers: 4096, BufSize: 9344}
		path := link.Path{MTU: peer}
		p := newPair(t, link.Config{A: big, B: big, AB: path, BA: path}, func(a, b *stack.Config) { a.MTU, b.MTU = 9000, peer })
		longest := 0
		p.link.A.Watch(func(_ time.Duration, _ bool, frame []byte) { longest = max(longest, len(frame)) })
		a, b := p.open(80)
		total := many(4 << 20)
		ab, ba := p.flood(p.a, p.b, a, b, total), p.flood(p.b, p.a, b, a, total)
		p.must("transfer", time.Minute, func() bool { return ab.done() && ba.done() })
		if longest != peer+wire.EthLen {
			t.Errorf("MTU %d: the longest frame has %d bytes", peer, longest)
		}
	}
}

// N8: the bounds of the MSS option.
func TestN8Bounds(t *testing.T) {
	for _, c := range []struct {
		with []any
		want int
	}{
		{nil, 536}, // RFC 9293 3.7.1
		{[]any{mss(0)}, 536},
		{[]any{mss(1)}, 48}, // see tcp.MinMSS
		{[]any{mss(47)}, 48},
		{[]any{mss(100)}, 100},
		{[]any{mss(1460)}, 1460},
		{[]any{mss(65535)}, 1460},
	} {
		r := newRig(t)
		f := r.client(r.listen(1)).handshake(c.with...)
		f.send(pattern(1, 2000))
		f.out("A", 1, 1, stream(c.want))
		r.got = nil
	}
}
