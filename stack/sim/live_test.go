package sim

import (
	"net/netip"
	"testing"
	"time"

	"ndpip/dpdk"
	"ndpip/stack"
	"ndpip/stack/link"
	"ndpip/stack/wire"
	"ndpip/tcp"
	"ndpip/udp"
)

// live is a stack at end A of a link whose end B is in the hands of a fuzzer.
type live struct {
	*stack.Stack
	tb          testing.TB
	link        *link.Link
	peer        *link.Peer
	worker, app *dpdk.Lane
	listener    *stack.Listener
	udp         *udp.Sock
	c           *tcp.Conn // the connection under test, as long as the application has it
	kept        []dpdk.Frame

	// The connection as the peer sees it: ports, its own next sequence number, and what it has from the stack.
	port, theirs uint16
	seq          uint32
	got          uint32 // the stack's next sequence number, as far as it has sent
	isn          uint32 // the stack's
}

const (
	portTCP = 80
	portUDP = 53
)

func newLive(tb testing.TB, seed uint64) *live {
	v := &live{tb: tb, port: 40000, theirs: portTCP, seq: 0xfffffff0}
	port := link.Port{Buffers: 300, TxBuffers: 300}
	v.link = link.New(link.Config{A: port})
	v.worker, v.app = v.link.A.NewLane(true), v.link.A.NewLane(false)
	v.peer = v.link.B.Peer()
	v.Stack = stack.New(stack.Config{MAC: mac(addrA), Addr: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, 1}), 24),
		RcvBuf: 20000, SndBuf: 20000, RxBuffers: 300, TxBuffers: 300, Seed: seed | 1,
		Neighbours: map[netip.Addr]stack.MAC{netip.AddrFrom4([4]byte{10, 0, 0, 2}): mac(addrB)}}, *v.worker, *v.app)
	return v
}

// in gives the stack a frame and a turn.
func (v *live) in(frame []byte) {
	v.peer.Inject(frame)
	v.turn()
}

// turn gives the stack a turn and looks at what it sends.
func (v *live) turn() {
	v.Turn()
	for _, b := range v.peer.Sent() {
		v.out(b)
	}
}

// out checks a frame of the stack's, and learns from it.
func (v *live) out(b []byte) {
	typ, drop := wire.ParseEthernet(b)
	if drop != wire.OK || wire.EthSrc(b) != mac(addrA) {
		v.tb.Fatalf("a malformed frame (%v): % x", drop, b)
	}
	if typ == wire.TypeARP {
		if _, drop = wire.ParseARP(b[wire.EthLen:]); drop != wire.OK {
			v.tb.Fatalf("a malformed ARP packet (%v): % x", drop, b)
		}
		return
	}
	h, drop := wire.ParseIPv4(b[wire.EthLen:], true)
	if drop != wire.OK || h.Src() != addrA || h.Len() != len(b)-wire.EthLen {
		v.tb.Fatalf("a malformed packet (%v): % x", drop, b)
	}
	if h.Proto() != wire.ProtoTCP {
		return
	}
	l4 := b[wire.EthLen+wire.IPv4Len:]
	t, drop := wire.ParseTCP(l4)
	if drop != wire.OK || !wire.TCPGood(l4, h.Src(), h.Dst()) {
		v.tb.Fatalf("a malformed segment (%v): % x", drop, b)
	}
	f := t.Flags()
	if f&wire.SYN != 0 {
		v.isn, v.got = t.Seq(), t.Seq()+1
		v.theirs, v.port = t.SrcPort(), t.DstPort()
	}
	end := t.Seq() + uint32(len(l4)-t.HdrLen())
	if f&wire.FIN != 0 {
		end++
	}
	if f&wire.RST == 0 && int32(end-v.got) > 0 {
		v.got = end
	}
}

// segment is a TCP segment from the peer.
func (v *live) segment(f wire.TCPFields, opts, data []byte) []byte {
	b := make([]byte, wire.EthLen+wire.IPv4Len+wire.TCPLen+len(opts)+len(data))
	at := wire.PutEthernet(b, mac(addrA), mac(addrB), wire.TypeIPv4)
	at += wire.PutIPv4(b[at:], addrB, addrA, wire.ProtoTCP, len(b)-at, 0)
	l4 := b[at:]
	at += wire.PutTCP(l4, v.port, v.theirs, f, len(opts))
	copy(b[at:], opts)
	copy(b[at+len(opts):], data)
	wire.SetTCPCheck(l4, addrB, addrA)
	return b
}

// say sends a segment as a decent peer would.
func (v *live) say(f wire.Flags, data int) {
	var opts [8]byte
	n := 0
	if f&wire.SYN != 0 {
		n = wire.PutOptions(opts[:], wire.Options{MSS: 1000, Scale: 2})
	}
	fields := wire.TCPFields{Seq: v.seq, Window: 5000, Flags: f}
	if f&wire.ACK != 0 {
		fields.Ack = v.got
	}
	v.seq += uint32(data)
	if f&(wire.SYN|wire.FIN) != 0 {
		v.seq++
	}
	v.in(v.segment(fields, opts[:n], make([]byte, data)))
}

// states are the states that a fuzzed stack is in when the first frame comes.
var states = []struct {
	name string
	want tcp.State
	set  func(v *live)
}{
	{"nothing", 0, func(*live) {}},
	{"LISTEN", 0, func(v *live) { v.listen() }},
	{"SYN-SENT", tcp.SynSent, func(v *live) { v.connect() }},
	{"SYN-RECEIVED", 0, func(v *live) {
		v.listen()
		v.say(wire.SYN, 0)
	}},
	{"SYN-RECEIVED, both open", tcp.SynReceived, func(v *live) {
		v.connect()
		v.say(wire.SYN, 0)
	}},
	{"ESTABLISHED by accept", tcp.Established, func(v *live) { v.accepted() }},
	{"ESTABLISHED by connect", tcp.Established, func(v *live) {
		v.connect()
		v.say(wire.SYN|wire.ACK, 0)
	}},
	{"ESTABLISHED, data both ways", tcp.Established, func(v *live) {
		v.accepted()
		v.say(wire.ACK, 300)
		_, _ = v.Send(v.c, make([]byte, 3000))
		v.turn()
	}},
	{"ESTABLISHED, sending again", tcp.Established, func(v *live) {
		v.accepted()
		_, _ = v.Send(v.c, make([]byte, 3000))
		v.wait(2 * time.Second)
	}},
	{"ESTABLISHED, the window closed", tcp.Established, func(v *live) {
		v.accepted()
		v.in(v.segment(wire.TCPFields{Seq: v.seq, Ack: v.got, Flags: wire.ACK}, nil, nil))
		_, _ = v.Send(v.c, make([]byte, 3000))
		v.turn()
	}},
	{"ESTABLISHED, the own window full", tcp.Established, func(v *live) {
		v.accepted()
		for range 200 {
			v.say(wire.ACK, 100)
		}
	}},
	{"FIN-WAIT-1", tcp.FinWait1, func(v *live) {
		v.accepted()
		v.Shutdown(v.c)
		v.turn()
	}},
	{"FIN-WAIT-2", tcp.FinWait2, func(v *live) {
		v.accepted()
		v.Shutdown(v.c)
		v.turn()
		v.say(wire.ACK, 0)
	}},
	{"CLOSE-WAIT", tcp.CloseWait, func(v *live) {
		v.accepted()
		v.say(wire.FIN|wire.ACK, 20)
	}},
	{"CLOSING", tcp.Closing, func(v *live) {
		v.accepted()
		before := v.got
		v.Shutdown(v.c)
		v.turn()
		after := v.got
		v.got = before
		v.say(wire.FIN|wire.ACK, 0)
		v.got = after
	}},
	{"LAST-ACK", tcp.LastAck, func(v *live) {
		v.accepted()
		v.say(wire.FIN|wire.ACK, 0)
		v.Shutdown(v.c)
		v.turn()
	}},
	{"TIME-WAIT", tcp.TimeWait, func(v *live) {
		v.accepted()
		v.Shutdown(v.c)
		v.turn()
		v.say(wire.FIN|wire.ACK, 0)
	}},
	{"FIN-WAIT-1 without an application", 0, func(v *live) {
		v.accepted()
		v.close()
		v.turn()
	}},
}

func (v *live) listen() {
	_, _ = v.Bind(portTCP, false)
	v.listener, _ = v.Listen(0, portTCP, 4, stack.Options{}, 0)
	v.udp, _ = v.OpenUDP(0, portUDP, stack.Options{})
}

func (v *live) connect() {
	v.c, _ = v.Connect(0, addrB, portTCP, stack.Options{}, 0)
	v.turn()
}

// accepted brings a connection up and accepts it.
func (v *live) accepted() {
	v.listen()
	v.say(wire.SYN, 0)
	v.say(wire.ACK, 0)
	v.c = v.Accept(v.listener)
}

func (v *live) close() {
	if v.c != nil {
		v.Close(v.c)
		v.c = nil
	}
}

// wait lets time pass, with a turn at each moment at which the stack wants one.
func (v *live) wait(d time.Duration) {
	end := v.link.Now() + d
	for range 1000 {
		zero := v.link.Now() - v.Now()
		at, ok := v.Deadline()
		if at = zero + at; !ok || at >= end {
			break
		}
		v.link.AdvanceTo(max(at, v.link.Now()+time.Millisecond))
		v.turn()
	}
	v.link.AdvanceTo(end)
	v.turn()
}
