package stack_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"syscall"

	"ndpip/stack"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// flow is one connection, or what might be one, as the test sees it. Sequence numbers are counted from the initial
// ones: the SYN is 0, the first byte is 1.
type flow struct {
	*rig
	c            *tcp.Conn // once the application has it
	l            *stack.Listener
	lport, rport uint16 // the stack's, the peer's
	rip          uint32 // the peer's address
	rmac         wire.MAC
	iss, irs     uint32 // initial sequence numbers of the stack, of the peer
	wnd          int    // the window of its segments
	snd, rcv     int    // next sequence number of the stack, of the peer: kept by what opens and by the states' set-up
}

// What may be given to in and out behind the sequence numbers: a payload as string or bytes, and these.
type (
	win    int    // the window field, as on the wire
	mss    int    // option: largest segment
	scale  int    // option: window scale
	opts   []byte // options as bytes, a multiple of 4
	stream int    // as many bytes of the pattern that belongs to the sequence number
	urg    uint16 // urgent pointer
	noOpts struct{}
)

// segment is a TCP segment in numbers.
type segment struct {
	flags    tcpFlags
	seq, ack uint32
	wnd      int
	urg      uint16
	opts     []byte
	data     []byte
}

type tcpFlags uint8

const flagLetters = "FSRPAUEC"

func flagsOf(s string) (f tcpFlags) {
	for _, c := range strings.Trim(s, ".") {
		i := strings.IndexRune(flagLetters, c)
		if i < 0 {
			panic("flags " + s + ": want letters of " + flagLetters + ", or . for none")
		}
		f |= 1 << i
	}
	return f
}

func (f tcpFlags) String() string {
	s := ""
	for i, c := range flagLetters {
		if f>>i&1 != 0 {
			s += string(c)
		}
	}
	if s == "" {
		return "."
	}
	return s
}

// pattern is the stream that both sides write in these tests: n bytes from position at on.
func pattern(at, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		x := uint32(at+i) * 2654435761
		b[i] = byte(x>>24 ^ x>>13)
	}
	return b
}

// build makes the segment that in and out speak of. Its sequence numbers are relative.
func build(flags string, seq, ack, wnd int, with []any) (s segment, optsGiven bool) {
	s = segment{flags: flagsOf(flags), seq: uint32(seq), ack: uint32(ack), wnd: wnd}
	for _, w := range with {
		switch w := w.(type) {
		case string:
			s.data = []byte(w)
		case []byte:
			s.data = w
		case stream:
			s.data = pattern(seq, int(w))
		case win:
			s.wnd = int(w)
		case urg:
			s.urg = uint16(w)
		case mss:
			s.opts = append(s.opts, 2, 4, byte(w>>8), byte(w))
			optsGiven = true
		case scale:
			s.opts = append(s.opts, 1, 3, 3, byte(w))
			optsGiven = true
		case opts:
			s.opts = append(s.opts, w...)
			optsGiven = true
		case noOpts:
			optsGiven = true
		default:
			panic(fmt.Sprintf("segment: what is %T?", w))
		}
	}
	return s, optsGiven
}

// frame puts a segment with absolute numbers into a frame from the peer.
func (f *flow) frame(s segment) []byte {
	n := wire.EthLen + wire.IPv4Len
	b := make([]byte, n+wire.TCPLen+len(s.opts)+len(s.data))
	wire.PutEthernet(b, ourMAC, f.rmac, wire.TypeIPv4)
	wire.PutIPv4(b[wire.EthLen:], f.rip, ourIP, wire.ProtoTCP, len(b)-wire.EthLen, 0)
	t := b[n:]
	wire.PutTCP(t, f.rport, f.lport, wire.TCPFields{Seq: s.seq, Ack: s.ack, Window: uint16(s.wnd), Flags: wire.Flags(s.flags)},
		len(s.opts))
	binary.BigEndian.PutUint16(t[18:], s.urg)
	copy(t[wire.TCPLen:], s.opts)
	copy(t[wire.TCPLen+len(s.opts):], s.data)
	wire.SetTCPCheck(t, f.rip, ourIP)
	return b
}

// segmentFrame is a segment of the peer as a frame.
func (f *flow) segmentFrame(flags string, seq, ack int, with ...any) []byte {
	s, _ := build(flags, seq, ack, f.wnd, with)
	s.seq += f.irs
	if s.flags&tcpFlags(wire.ACK) != 0 {
		s.ack += f.iss
	}
	return f.frame(s)
}

// in is a segment from the peer. Without win it advertises f.wnd.
func (f *flow) in(flags string, seq, ack int, with ...any) {
	f.Helper()
	f.inject(f.segmentFrame(flags, seq, ack, with...))
}

// out demands that the next frame that the stack has sent is this segment. PSH is not compared, the window and the
// options only if they are given; an ACK that no flag announces must be 0.
func (f *flow) out(flags string, seq, ack int, with ...any) (got segment) {
	f.Helper()
	want, optsGiven := build(flags, seq, ack, -1, with)
	b := f.next()
	got, err := f.parse(b)
	if err != nil {
		f.Fatalf("%v: %s; want %s", err, f.show(b), flags)
	}
	const psh = tcpFlags(wire.PSH)
	same := got.flags&^psh == want.flags&^psh && got.seq == want.seq && got.ack == want.ack &&
		bytes.Equal(got.data, want.data) && (want.wnd < 0 || got.wnd == want.wnd) &&
		(!optsGiven || bytes.Equal(got.opts, want.opts)) && got.urg == want.urg
	if !same {
		f.Fatalf("sent %v, want %v", got, want)
	}
	return got
}

// parse reads a frame of the stack's as a segment of this flow, with relative sequence numbers.
func (f *flow) parse(b []byte) (s segment, err error) {
	if typ, _ := wire.ParseEthernet(b); typ != wire.TypeIPv4 {
		return s, fmt.Errorf("type %#04x", typ)
	}
	h, _ := wire.ParseIPv4(b[wire.EthLen:], false)
	if h.Proto() != wire.ProtoTCP {
		return s, fmt.Errorf("protocol %d", h.Proto())
	}
	l4 := b[wire.EthLen+wire.IPv4Len:]
	t, _ := wire.ParseTCP(l4)
	if h.Dst() != f.rip || t.SrcPort() != f.lport || t.DstPort() != f.rport {
		return s, fmt.Errorf("from port %d to %#x port %d, not of the flow from %d to %#x port %d", t.SrcPort(), h.Dst(),
			t.DstPort(), f.lport, f.rip, f.rport)
	}
	if wire.EthDst(b) != f.rmac {
		return s, fmt.Errorf("to the MAC address %v", wire.EthDst(b))
	}
	s = segment{flags: tcpFlags(t.Flags()), seq: t.Seq() - f.iss, ack: t.Ack(), wnd: int(t.Window()),
		urg: binary.BigEndian.Uint16(l4[18:]), opts: l4[wire.TCPLen:t.HdrLen()], data: l4[t.HdrLen():]}
	if s.flags&tcpFlags(wire.ACK) != 0 {
		s.ack -= f.irs
	}
	return s, nil
}

func (s segment) String() string {
	text := fmt.Sprintf("%v seq %d ack %d", s.flags, s.seq, s.ack)
	if s.wnd >= 0 {
		text += fmt.Sprintf(" win %d", s.wnd)
	}
	if s.urg != 0 {
		text += fmt.Sprintf(" urg %d", s.urg)
	}
	if len(s.opts) > 0 {
		text += fmt.Sprintf(" options % x", s.opts)
	}
	if n := len(s.data); n > 0 {
		text += fmt.Sprintf(" %d bytes % x", n, s.data[:min(n, 16)])
	}
	return text
}

// show is a frame in words.
func (r *rig) show(b []byte) string {
	typ, _ := wire.ParseEthernet(b)
	if typ == wire.TypeARP {
		a, _ := wire.ParseARP(b[wire.EthLen:])
		return fmt.Sprintf("ARP %+v to %v", a, wire.EthDst(b))
	}
	h, drop := wire.ParseIPv4(b[wire.EthLen:], false)
	if drop != wire.OK || h.Proto() != wire.ProtoTCP {
		return fmt.Sprintf("% x", b)
	}
	for _, f := range r.flows {
		if s, err := f.parse(b); err == nil {
			return fmt.Sprintf("port %d to %d: %v", f.lport, f.rport, s)
		}
	}
	t, _ := wire.ParseTCP(b[wire.EthLen+wire.IPv4Len:])
	f := flow{rig: r, lport: t.SrcPort(), rport: t.DstPort(), rip: h.Dst(), rmac: wire.EthDst(b)}
	s, err := f.parse(b)
	return fmt.Sprintf("port %d to %d: %v, numbers absolute (%v)", f.lport, f.rport, s, err)
}

// send is the application's write; all of p must be taken.
func (f *flow) send(p []byte) {
	f.Helper()
	if n, e := f.Send(f.c, p); n != len(p) {
		f.Fatalf("Send took %d of %d bytes (%v)", n, len(p), e)
	}
	f.run()
}

// recv is the application's read: it must give exactly these bytes.
func (f *flow) recv(want []byte) {
	f.Helper()
	if got := f.read(len(want)); !bytes.Equal(got, want) {
		f.Fatalf("read %d bytes %.32q, want %d bytes %.32q", len(got), got, len(want), want)
	}
	f.run()
}

// read reads what is there, at most n bytes, in as many calls as that takes. It leaves the worker alone.
func (f *flow) read(n int) []byte {
	p := make([]byte, n)
	at := 0
	for at < n {
		k, _ := f.Recv(f.c, p[at:])
		if k == 0 {
			break
		}
		at += k
	}
	return p[:at]
}

// outcome demands that a read gives no data and this errno; 0 is the end of the stream.
func (f *flow) outcome(want syscall.Errno) {
	f.Helper()
	f.run()
	if n, e := f.Recv(f.c, make([]byte, 100)); n != 0 || e != want {
		f.Fatalf("Recv gives %d bytes, %v; want %v", n, e, want)
	}
}

// state demands a state of the connection.
func (f *flow) state(want tcp.State) {
	f.Helper()
	if got := f.c.State(); got != want {
		f.Fatalf("the connection is in %v, want %v", got, want)
	}
}

// close and shut are the application's close and shutdown(SHUT_WR).
func (f *flow) close() { f.Close(f.c); f.run() }
func (f *flow) shut()  { f.Shutdown(f.c); f.run() }
