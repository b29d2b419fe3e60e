package stack_test

import (
	"fmt"
	"syscall"
	"testing"

	"ndpip/stack"
	"ndpip/tcp"
)

// Each kind of segment in each state, by RFC 9293 3.10.7: what is answered, what is taken, and where it leads.

// arrival is a segment in a synchronized state. Its seq is relative to RCV.NXT; it acknowledges SND.UNA unless ack says
// otherwise.
type arrival struct {
	name  string
	flags string
	seq   int
	ack   int // relative to SND.NXT, with ackSet
	with  []any

	ackSet bool
	reply  string // "": none; "ack": an ACK of RCV.NXT as it is then
	takes  int    // bytes of text in the states that receive
	fin    bool   // and the FIN behind them

}

const window = 65535 // of the connections that inState makes

var arrivals = []arrival{
	{name: "no flags", flags: "."},
	{name: "no flags, with text", flags: ".", with: []any{"text"}},
	{name: "PSH alone", flags: "P"},
	{name: "URG alone", flags: "U", with: []any{urg(5)}},
	{name: "FIN without ACK", flags: "F"},
	{name: "no flags, old text", flags: ".", seq: -4, with: []any{"text"}, reply: "ack"},
	{name: "no flags, beyond", flags: ".", seq: window + 1, with: []any{"text"}, reply: "ack"},

	{name: "the same ACK again", flags: "A"},
	{name: "ACK of what was not sent", flags: "A", ack: 1, ackSet: true, reply: "ack"},
	{name: "ACK of what was not sent, with text", flags: "A", ack: 1000, ackSet: true, with: []any{"text"}, reply: "ack"},
	{name: "ACK older than the window", flags: "A", ack: -70000, ackSet: true, reply: "ack"},
	{name: "ACK older than the window, with text", flags: "A", ack: -70000, ackSet: true, with: []any{"text"}, reply: "ack"},
	{name: "ACK from the future", flags: "A", seq: 100},
	{name: "ACK at the right edge", flags: "A", seq: window},
	{name: "ACK beyond the window", flags: "A", seq: window + 1, reply: "ack"},
	{name: "ACK from the past", flags: "A", seq: -1, reply: "ack"}, // a keep-alive probe

	{name: "text", flags: "A", with: []any{stream(100)}, takes: 100, reply: "ack"},
	{name: "text with PSH", flags: "PA", with: []any{stream(100)}, takes: 100, reply: "ack"},
	{name: "text with ECE and CWR", flags: "AEC", with: []any{stream(100)}, takes: 100, reply: "ack"},
	{name: "urgent text", flags: "UA", with: []any{stream(100), urg(10)}, takes: 100, reply: "ack"},
	{name: "urgent text, pointer beyond", flags: "UA", with: []any{stream(100), urg(60000)}, takes: 100, reply: "ack"},
	{name: "text behind options", flags: "A", with: []any{stream(100), opts{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2}}, takes: 100, reply: "ack"},
	{name: "text behind bad options", flags: "A", with: []any{stream(100), opts{9, 0, 2, 99}}, takes: 100, reply: "ack"},
	{name: "old text", flags: "A", seq: -100, with: []any{stream(100)}, reply: "ack"},
	{name: "one old byte", flags: "A", seq: -1, with: []any{stream(1)}, reply: "ack"}, // a keep-alive probe with garbage
	{name: "text, half of it old", flags: "A", seq: -60, with: []any{stream(100)}, takes: 40, reply: "ack"},
	{name: "text behind a gap", flags: "A", seq: 1, with: []any{stream(100)}, reply: "ack"},
	{name: "text at the end of the window", flags: "A", seq: window - 1, with: []any{stream(1)}, reply: "ack"},
	{name: "text beyond the window", flags: "A", seq: window, with: []any{stream(1)}, reply: "ack"},
	{name: "text far from the window", flags: "A", seq: 1 << 30, with: []any{stream(100)}, reply: "ack"},

	{name: "FIN", flags: "FA", fin: true, reply: "ack"},
	{name: "FIN behind text", flags: "FA", with: []any{stream(10)}, takes: 10, fin: true, reply: "ack"},
	{name: "FIN behind text, half of it old", flags: "FA", seq: -5, with: []any{stream(10)}, takes: 5, fin: true, reply: "ack"},
	{name: "FIN behind old text", flags: "FA", seq: -10, with: []any{stream(10)}, fin: true, reply: "ack"},
	{name: "FIN behind a gap", flags: "FA", seq: 1, reply: "ack"},
	{name: "old FIN", flags: "FA", seq: -2, reply: "ack"},
	{name: "FIN beyond the window", flags: "FA", seq: window + 1, reply: "ack"},
	{name: "FIN with PSH and URG", flags: "FPUA", fin: true, with: []any{urg(1)}, reply: "ack"},
}

// receives says whether the peer may still send in a state.
func receives(s tcp.State) bool {
	return s == tcp.Established || s == tcp.FinWait1 || s == tcp.FinWait2
}

// una is SND.UNA in the states that inState makes: the FIN is not acknowledged in some of them.
func una(s tcp.State) int {
	switch s {
	case tcp.FinWait1, tcp.Closing, tcp.LastAck:
		return 1
	case tcp.FinWait2, tcp.TimeWait:
		return 2
	}
	return 1
}

func TestArrivals(t *testing.T) {
	for _, s := range synchronized {
		for _, c := range arrivals {
			t.Run(fmt.Sprintf("%v/%s", s, c.name), func(t *testing.T) {
				r := newRig(t)
				f := r.inState(s)
				ack := una(s)
				if c.ackSet {
					ack = f.snd + c.ack
				}
				base := r.link.A.InUse()
				seq := c.seq
				if seq >= window-1 && seq <= window+1 {
					seq -= f.rcv - 1 // the peer's FIN has used up some of the window
				}
				f.in(c.flags, f.rcv+seq, ack, c.with...)
				next, want, data := f.rcv, s, 0
				if receives(s) {
					data = c.takes
					next += data
					if c.fin {
						next++
						want = map[tcp.State]tcp.State{tcp.Established: tcp.CloseWait, tcp.FinWait1: tcp.Closing,
							tcp.FinWait2: tcp.TimeWait}[s]
					}
				}
				if c.reply == "ack" {
					f.out("A", f.snd, next)
				}
				f.quiet()
				f.state(want)
				if data > 0 {
					f.recv(pattern(f.rcv, data))
				}
				if next == f.rcv+data && receives(s) {
					f.outcome(syscall.EAGAIN)
				} else {
					f.outcome(0)
				}
				r.Flush()
				if n := r.link.A.InUse(); n != base {
					t.Errorf("%d buffers in use, before %d", n, base)
				}
			})
		}
	}
}

// TestAckOfFin are the steps that the acknowledgement of our FIN takes, alone and together with what else a segment may
// bring.
func TestAckOfFin(t *testing.T) {
	for _, c := range []struct {
		from  tcp.State
		flags string
		with  []any
		reply bool
		next  int // RCV.NXT moves on by this
		to    tcp.State
	}{
		{tcp.FinWait1, "A", nil, false, 0, tcp.FinWait2},
		{tcp.FinWait1, "A", []any{stream(10)}, true, 10, tcp.FinWait2},
		{tcp.FinWait1, "FA", nil, true, 1, tcp.TimeWait},
		{tcp.FinWait1, "FA", []any{stream(10)}, true, 11, tcp.TimeWait},
		{tcp.Closing, "A", nil, false, 0, tcp.TimeWait},
		{tcp.LastAck, "A", nil, false, 0, tcp.Closed},
	} {
		t.Run(fmt.Sprintf("%v %s %v", c.from, c.flags, c.with), func(t *testing.T) {
			r := newRig(t)
			f := r.inState(c.from)
			f.in(c.flags, f.rcv, 2, c.with...)
			if c.reply {
				f.out("A", 2, f.rcv+c.next)
			}
			f.quiet()
			f.state(c.to)
			n := c.next
			if c.flags == "FA" {
				n--
			}
			f.recv(pattern(f.rcv, n))
			f.close()
			f.quiet()
		})
	}
	// The peer's FIN, once more, with the ACK of ours: CLOSING and LAST-ACK take the ACK of a segment only if the segment
	// itself is acceptable; the peer's next ACK is.
	r := newRig(t)
	f := r.inState(tcp.Closing)
	f.in("FA", 1, 2)
	f.out("A", 2, 2)
	f.state(tcp.Closing)
	f.in("A", 2, 2)
	f.state(tcp.TimeWait)
}

// TestSynSent is each kind of segment in SYN-SENT (RFC 9293 3.10.7.3).
func TestSynSent(t *testing.T) {
	for _, c := range []struct {
		name, flags   string
		seq, ack      int
		with          []any
		reply         string
		rseq, rack    int
		state         tcp.State
		outcome       syscall.Errno
		noDataIsTaken bool
	}{
		{name: "SYN and ACK", flags: "SA", ack: 1, reply: "A", rseq: 1, rack: 1, state: tcp.Established},
		{name: "SYN and ACK with text", flags: "SA", ack: 1, with: []any{"text"}, reply: "A", rseq: 1, rack: 1, state: tcp.Established},
		{name: "SYN, ACK and FIN", flags: "SFA", ack: 1, reply: "A", rseq: 1, rack: 1, state: tcp.Established},
		{name: "SYN, ACK, PSH, URG", flags: "SAPU", ack: 1, reply: "A", rseq: 1, rack: 1, state: tcp.Established},
		{name: "SYN and ACK of nothing", flags: "SA", ack: 0, reply: "R", rseq: 0, state: tcp.SynSent},
		{name: "SYN and ACK of too much", flags: "SA", ack: 2, reply: "R", rseq: 2, state: tcp.SynSent},
		{name: "SYN", flags: "S", reply: "SA", rseq: 0, rack: 1, state: tcp.SynReceived},
		{name: "SYN with text", flags: "S", with: []any{"text"}, reply: "SA", rseq: 0, rack: 1, state: tcp.SynReceived},
		{name: "ACK", flags: "A", ack: 1, state: tcp.SynSent},
		{name: "ACK with text", flags: "A", ack: 1, with: []any{"text"}, state: tcp.SynSent},
		{name: "FIN and ACK", flags: "FA", ack: 1, state: tcp.SynSent},
		{name: "ACK of too much", flags: "A", ack: 9, reply: "R", rseq: 9, state: tcp.SynSent},
		{name: "ACK of nothing", flags: "A", ack: 0, reply: "R", rseq: 0, state: tcp.SynSent},
		{name: "no flags", flags: ".", state: tcp.SynSent},
		{name: "FIN", flags: "F", state: tcp.SynSent},
		{name: "text", flags: ".", with: []any{"text"}, state: tcp.SynSent},
		{name: "RST", flags: "R", state: tcp.SynSent},
		{name: "RST and SYN", flags: "RS", state: tcp.SynSent},
		{name: "RST with a bad ACK", flags: "RA", ack: 3, state: tcp.SynSent},
		{name: "RST and ACK", flags: "RA", ack: 1, state: tcp.Closed, outcome: syscall.ECONNREFUSED},
		{name: "RST, SYN and ACK", flags: "RSA", ack: 1, state: tcp.Closed, outcome: syscall.ECONNREFUSED},
		{name: "SYN and ACK with bad options", flags: "SA", ack: 1, with: []any{opts{2, 5, 0, 0}}, state: tcp.SynSent},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			f := r.dial()
			f.in(c.flags, c.seq, c.ack, c.with...)
			if c.reply != "" {
				f.out(c.reply, c.rseq, c.rack)
			}
			f.quiet()
			f.state(c.state)
			if c.outcome == 0 {
				c.outcome = syscall.EAGAIN
			}
			f.outcome(c.outcome)
		})
	}
}

// TestListen is each kind of segment for a listener (RFC 9293 3.10.7.2).
func TestListen(t *testing.T) {
	for _, c := range []struct {
		name, flags string
		with        []any
		reply       string
		seq, ack    int
	}{
		{name: "SYN", flags: "S", reply: "SA", ack: 1},
		{name: "SYN with text", flags: "S", with: []any{"text"}, reply: "SA", ack: 1},
		{name: "SYN and FIN", flags: "SF", reply: "SA", ack: 1},
		{name: "SYN, PSH, URG", flags: "SPU", reply: "SA", ack: 1},
		{name: "SYN, ECE, CWR", flags: "SEC", reply: "SA", ack: 1}, // ECN is not accepted
		{name: "SYN with unknown options", flags: "S", with: []any{opts{4, 2, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0, 34, 6, 1, 2, 3, 4, 0, 0}}, reply: "SA", ack: 1},
		{name: "SYN with bad options", flags: "S", with: []any{opts{2, 1, 0, 0}}},
		{name: "SYN and ACK", flags: "SA", reply: "R", seq: 7},
		{name: "ACK", flags: "A", reply: "R", seq: 7},
		{name: "FIN and ACK with text", flags: "FA", with: []any{"text"}, reply: "R", seq: 7},
		{name: "RST", flags: "R"},
		{name: "RST and ACK", flags: "RA"},
		{name: "RST and SYN", flags: "RS"},
		{name: "no flags", flags: "."},
		{name: "FIN", flags: "F"},
		{name: "text", flags: ".", with: []any{"text"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			f := r.client(r.listen(1))
			f.in(c.flags, 0, 7, c.with...)
			if c.reply == "SA" {
				f.learn()
			}
			if c.reply != "" {
				f.out(c.reply, c.seq, c.ack)
			}
			f.quiet()
			half := 0
			if c.reply == "SA" {
				half = 1
				f.in("A", 1, 1, "text")
				f.out("A", 1, 5)
				if f.c = r.Accept(f.l); f.c == nil {
					t.Fatal("not accepted")
				}
				f.recv([]byte("text"))
			}
			if u := r.Usage(); u.Connections != half {
				t.Errorf("%d connections", u.Connections)
			}
		})
	}
}

// TestSynReceived is what completes or ends a half-open connection, besides what TestC3SynReceived has.
func TestSynReceived(t *testing.T) {
	for _, active := range []bool{false, true} {
		for _, c := range []struct {
			name, flags string
			with        []any
			reply       string
			next        int
			state       tcp.State
		}{
			{"ACK", "A", nil, "", 1, tcp.Established},
			{"ACK with text", "A", []any{stream(10)}, "A", 11, tcp.Established},
			{"ACK and FIN", "FA", nil, "A", 2, tcp.CloseWait},
			{"ACK, text and FIN", "FA", []any{stream(10)}, "A", 12, tcp.CloseWait},
		} {
			t.Run(fmt.Sprintf("active %v/%s", active, c.name), func(t *testing.T) {
				r := newRig(t)
				var f *flow
				if active {
					f = r.inState(tcp.SynReceived)
				} else {
					f = r.client(r.listen(1))
					f.syn(mss(1460))
				}
				f.in(c.flags, 1, 1, c.with...)
				if c.reply != "" {
					f.out(c.reply, 1, c.next)
				}
				f.quiet()
				if !active {
					if f.c = r.Accept(f.l); f.c == nil {
						t.Fatal("not accepted")
					}
				}
				f.state(c.state)
				if len(c.with) > 0 {
					f.recv(pattern(1, 10))
				}
				if c.state == tcp.CloseWait {
					f.outcome(0)
				}
				f.send(pattern(1, 10))
				f.out("A", 1, c.next, stream(10))
			})
		}
	}
	// Of a connection that the application has opened, an RST says that it is refused (RFC 9293 3.10.7.4).
	r := newRig(t)
	f := r.inState(tcp.SynReceived)
	f.in("R", 1, 0)
	f.quiet()
	f.outcome(syscall.ECONNREFUSED)
}

// TestSimultaneousOpen is both sides connecting to each other: one connection comes of it (RFC 9293 figure 8).
func TestSimultaneousOpen(t *testing.T) {
	r := newRig(t)
	f := r.dial()
	f.in("S", 0, 0, mss(1460), scale(2))
	f.out("SA", 0, 1, mss(1460), scale(5))
	f.in("SA", 0, 1, mss(1460), scale(2))
	f.quiet()
	f.state(tcp.Established)
	f.in("SA", 0, 1, mss(1460), scale(2)) // once more
	f.out("A", 1, 1)
	f.in("A", 1, 1, "text", win(100))
	f.out("A", 1, 5)
	f.recv([]byte("text"))
	if n, _ := f.Send(f.c, pattern(1, 1000)); n != 400 { // the window is scaled
		t.Errorf("%d bytes sent into a window of 400", n)
	}
	r.run()
	r.got = nil

	// The SYN and ACK of either side is lost: it is sent again.
	f = r.dial()
	f.in("S", 0, 0)
	f.out("SA", 0, 1)
	f.in("S", 0, 0)
	f.out("SA", 0, 1)
	f.in("A", 1, 1)
	f.quiet()
	f.state(tcp.Established)
}

func TestSimultaneousOpenBoth(t *testing.T) {
	p := newPair(t, linkOfMillisecond)
	a, e := p.a.Connect(1000, peerIP, 2000, stack.Options{}, 0)
	if e != 0 {
		t.Fatal(e)
	}
	b, e := p.b.Connect(2000, ourIP, 1000, stack.Options{}, 0)
	if e != 0 {
		t.Fatal(e)
	}
	p.must("open", 5e9, func() bool { return a.State() == tcp.Established && b.State() == tcp.Established })
	ab, ba := p.flood(p.a, p.b, a, b, 1<<20), p.flood(p.b, p.a, b, a, 1<<20)
	p.must("transfer", 60e9, func() bool { return ab.done() && ba.done() })
}
