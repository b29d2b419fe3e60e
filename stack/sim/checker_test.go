package sim

import (
	"strings"
	"testing"

	"ndpip/stack"
	"ndpip/stack/wire"
)

// tester is a connection on the wire whose frames a test makes up, under the eyes of a checker.
type tester struct {
	*world
	isnA, isnB uint32
}

// newTester makes one whose handshake is through: A has connected to B; both have a window of 1000 and an MSS of 500.
func newTester() *tester {
	cfg := func(seed uint64) Host {
		return Host{Stack: stack.Config{MTU: 1500, RcvBuf: 1000, Checksum: stack.ChecksumSoftware, Seed: seed}}
	}
	s := &Scenario{A: cfg(1), B: cfg(2), Static: true,
		Conns: []Conn{{A: Side{Write: 5000, WriteMax: 1, ReadMax: 1}, B: Side{Write: 5000, WriteMax: 1, ReadMax: 1}}}}
	w := newWorld(s)
	w.build(Options{})
	t := &tester{w, 0xffffff00, 77}
	t.pass(true, t.frame(true, "S", 0, 0, 1000, 0))
	t.pass(false, t.frame(false, "SA", 0, 1, 1000, 0))
	t.pass(true, t.frame(true, "A", 1, 1, 1000, 0))
	return t
}

// frame makes a segment from A, or from B: seq and ack are relative, n is how much of the stream it carries.
func (t *tester) frame(fromA bool, flags string, seq, ack uint32, wnd uint16, n int) []byte {
	var f wire.Flags
	for _, c := range flags {
		f |= map[rune]wire.Flags{'S': wire.SYN, 'A': wire.ACK, 'F': wire.FIN, 'R': wire.RST, 'P': wire.PSH, 'U': wire.URG}[c]
	}
	var opts [8]byte
	o := 0
	if f&wire.SYN != 0 {
		o = wire.PutOptions(opts[:], wire.Options{MSS: 500, Scale: wire.NoScale})
	}
	src, dst, port, peer := uint32(addrA), uint32(addrB), uint16(40000), uint16(firstPort)
	isn, other, key := t.isnA, t.isnB, t.sides[0].outKey
	if !fromA {
		src, dst, port, peer, isn, other, key = dst, src, peer, port, other, isn, t.sides[1].outKey
	}
	b := make([]byte, 54+o+n)
	at := wire.PutEthernet(b, mac(dst), mac(src), wire.TypeIPv4)
	at += wire.PutIPv4(b[at:], src, dst, wire.ProtoTCP, len(b)-at, 0)
	l4 := b[at:]
	at += wire.PutTCP(l4, port, peer, wire.TCPFields{Seq: isn + seq, Ack: other + ack, Window: wnd, Flags: f}, o)
	copy(b[at:], opts[:o])
	if n > 0 {
		fill(b[at+o:], key, uint64(seq-1))
	}
	wire.SetTCPCheck(l4, src, dst)
	return b
}

// send is what the sender's end sees, pass what both see.
func (t *tester) send(fromA bool, b []byte) {
	h := t.a
	if !fromA {
		h = t.b
	}
	t.check.frame(h, true, b)
}

func (t *tester) pass(fromA bool, b []byte) {
	t.send(fromA, b)
	h := t.b
	if !fromA {
		h = t.a
	}
	t.check.frame(h, false, b)
}

// TestChecker shows the checker faults of every kind that it knows, and exchanges without any.
func TestChecker(t *testing.T) {
	const a, b = true, false
	for _, c := range []struct {
		want string // the start of what it says; empty: nothing
		do   func(x *tester)
	}{
		{"", func(x *tester) {
			x.pass(a, x.frame(a, "AP", 1, 1, 1000, 500))
			x.pass(b, x.frame(b, "A", 1, 501, 500, 0))
			x.send(a, x.frame(a, "AP", 501, 1, 1000, 500)) // lost
			x.pass(a, x.frame(a, "AP", 501, 1, 1000, 500))
			x.pass(b, x.frame(b, "AP", 1, 1001, 0, 100))
			x.pass(a, x.frame(a, "A", 1001, 101, 900, 1)) // a probe
			x.pass(b, x.frame(b, "A", 101, 1001, 0, 0))
			x.pass(a, x.frame(a, "A", 1000, 101, 900, 0)) // keeps alive
			x.pass(b, x.frame(b, "FA", 101, 1001, 0, 0))
			x.pass(a, x.frame(a, "RA", 1001, 102, 0, 0))
		}},
		{"text up to 1002, beyond", func(x *tester) {
			x.pass(a, x.frame(a, "A", 1, 1, 1000, 500))
			x.pass(a, x.frame(a, "A", 501, 1, 1000, 500))
			x.pass(a, x.frame(a, "A", 1001, 1, 1000, 1))
		}},
		{"text up to 1002, beyond", func(x *tester) {
			x.pass(a, x.frame(a, "A", 1, 1, 1000, 500))
			x.pass(a, x.frame(a, "A", 501, 1, 1000, 500))
			x.sides[1].read = 500
			x.send(b, x.frame(b, "A", 1, 1001, 500, 0)) // opens it, but is lost
			x.pass(a, x.frame(a, "A", 1001, 1, 1000, 1))
		}},
		{"a gap: only up to 1", func(x *tester) { x.pass(a, x.frame(a, "A", 2, 1, 1000, 5)) }},
		{"an ACK from 2; sent is up to 1", func(x *tester) { x.pass(a, x.frame(a, "A", 2, 1, 1000, 0)) }},
		{"a wrong byte at 3", func(x *tester) {
			f := x.frame(a, "A", 1, 1, 1000, 5)
			f[57] ^= 1
			wire.SetTCPCheck(f[34:], addrA, addrB)
			x.pass(a, f)
		}},
		{"A sent a malformed frame: TCP checksum", nil},
		{"acknowledges up to 2; only 1 arrived", func(x *tester) {
			x.send(b, x.frame(b, "A", 1, 1, 1000, 1))
			x.pass(a, x.frame(a, "A", 1, 2, 1000, 0))
		}},
		{"acknowledges up to 0", func(x *tester) { x.pass(a, x.frame(a, "A", 1, 0, 1000, 0)) }},
		{"the right edge moves left from 1001 to 1000", func(x *tester) { x.pass(a, x.frame(a, "A", 1, 1, 999, 0)) }},
		{"a window of 1001", func(x *tester) { x.pass(a, x.frame(a, "A", 1, 1, 1001, 0)) }},
		{"a right edge of 1021: read 0", func(x *tester) {
			x.pass(b, x.frame(b, "A", 1, 1, 1000, 20))
			x.pass(a, x.frame(a, "A", 1, 21, 1000, 0))
		}},
		{"501 bytes; the peer takes 500", func(x *tester) { x.pass(a, x.frame(a, "A", 1, 1, 1000, 501)) }},
		{"a FIN at 1, and another at 2", func(x *tester) {
			x.pass(a, x.frame(a, "FA", 1, 1, 1000, 0))
			x.pass(a, x.frame(a, "FA", 2, 1, 1000, 0))
		}},
		{"text behind the FIN at 1", func(x *tester) {
			x.pass(a, x.frame(a, "FA", 1, 1, 1000, 0))
			x.pass(a, x.frame(a, "A", 2, 1, 1000, 1))
		}},
		{"flags that exclude", func(x *tester) { x.pass(a, x.frame(a, "SFA", 1, 1, 1000, 0)) }},
		{"no ACK", func(x *tester) { x.pass(a, x.frame(a, "P", 1, 1, 1000, 1)) }},
		{"flags that the stack has no use for", func(x *tester) { x.pass(a, x.frame(a, "AU", 1, 1, 1000, 1)) }},
		{"an RST with text", func(x *tester) { x.pass(a, x.frame(a, "RA", 1, 1, 1000, 1)) }},
		{"the FIN of A came after 1 bytes of 2", func(x *tester) {
			x.pass(a, x.frame(a, "FA", 1, 1, 1000, 1))
			x.sides[0].wrote = 2
			x.check.finish()
		}},
	} {
		x := newTester()
		if c.do == nil {
			f := x.frame(a, "A", 1, 1, 1000, 5)
			f[len(f)-1] ^= 1
			x.pass(a, f)
		} else {
			c.do(x)
		}
		switch {
		case c.want == "" && len(x.errors) > 0:
			t.Errorf("no fault, and it says %q", x.errors)
		case c.want != "" && (len(x.errors) == 0 || !strings.Contains(x.errors[0], c.want)):
			t.Errorf("it says %q, want %q", x.errors, c.want)
		}
	}
}
