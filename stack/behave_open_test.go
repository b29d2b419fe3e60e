package stack_test

import (
	"syscall"
	"testing"
	"time"

	"ndpip/stack"
	"ndpip/tcp"
)

// C1: connect to a closed port.
func TestC1(t *testing.T) {
	r := newRig(t)
	f := r.dial()
	f.in("RA", 0, 2) // an RST that acknowledges what was not sent
	f.in("RA", 0, 0)
	f.in("R", 0, 1) // and one that acknowledges nothing
	f.quiet()
	f.state(tcp.SynSent)
	f.in("RA", 0, 1)
	f.quiet()
	f.outcome(syscall.ECONNREFUSED)
}

// C2: segments for a closed port are answered by the RST of RFC 9293 3.10.7.1, an RST by nothing.
func TestC2(t *testing.T) {
	r := newRig(t)
	f := r.flow()
	f.lport, f.irs = 81, 0
	for _, c := range []struct {
		flags   string
		data    string
		reply   string
		seq     int
		ack     int
		silence bool
	}{
		{flags: "S", reply: "RA", ack: 5001},
		{flags: "S", data: "text", reply: "RA", ack: 5005},
		{flags: "SF", reply: "RA", ack: 5002},
		{flags: ".", reply: "RA", ack: 5000},
		{flags: ".", data: "text", reply: "RA", ack: 5004},
		{flags: "F", data: "text", reply: "RA", ack: 5005},
		{flags: "A", reply: "R", seq: 7000},
		{flags: "SA", reply: "R", seq: 7000},
		{flags: "FA", data: "text", reply: "R", seq: 7000},
		{flags: "PUA", data: "text", reply: "R", seq: 7000},
		{flags: "R", silence: true},
		{flags: "RA", silence: true},
		{flags: "RS", silence: true},
		{flags: "RFSPAU", silence: true},
	} {
		f.in(c.flags, 5000, 7000, c.data)
		if !c.silence {
			f.out(c.reply, c.seq, c.ack, win(0), noOpts{})
		}
		f.quiet()
	}
	if n := r.Counters().Connections; n != 0 {
		t.Errorf("%d connections came of it", n)
	}
}

// C3: an RST at RCV.NXT resets; elsewhere in the window it is challenged, outside ignored. A SYN is challenged, too.
func TestC3(t *testing.T) {
	const w = 65535
	for _, s := range synchronized {
		if s == tcp.Closed {
			continue
		}
		t.Run(s.String(), func(t *testing.T) {
			r := newRig(t)
			f := r.inState(s)
			challenge := func() {
				t.Helper()
				f.out("A", f.snd, f.rcv)
				f.quiet()
				f.state(s)
				r.advance(2 * time.Second) // the budget is per second, and the retransmission timer may run
				r.got = nil
			}
			for _, seq := range []int{f.rcv + 1, f.rcv + w/2} {
				f.in("R", seq, 0)
				challenge()
				f.in("RA", seq, f.snd)
				challenge()
			}
			for _, seq := range []int{f.rcv - 1, f.rcv - 1000, f.rcv + 1<<21, f.rcv + 1<<30} {
				f.in("R", seq, 0)
				f.quiet()
				f.state(s)
			}
			for _, seq := range []int{f.rcv, f.rcv + 100, f.rcv - 1, f.rcv + 1<<30} {
				f.in("SA", seq, f.snd)
				challenge()
				if s == tcp.TimeWait && seq >= f.rcv {
					continue // see TestC7Reopen
				}
				f.in("S", seq, 0)
				challenge()
			}
			f.in("R", f.rcv, 0)
			f.quiet()
			f.state(tcp.Closed)
			switch s {
			case tcp.CloseWait, tcp.Closing, tcp.LastAck, tcp.TimeWait:
				f.outcome(0) // the peer had ended its stream already
			default:
				f.outcome(syscall.ECONNRESET)
			}
			f.in("A", f.rcv, f.snd) // nothing is there any more
			f.out("R", f.snd, 0)
		})
	}
}

// C3: challenge ACKs are limited, per connection.
func TestC3Budget(t *testing.T) {
	r := newRig(t)
	l := r.listen(2)
	f, g := r.client(l).handshake(mss(1460)), r.client(l).handshake(mss(1460))
	for range 1000 {
		f.in("R", 2, 0)
		f.in("S", 7, 0)
	}
	for range 10 {
		f.out("A", 1, 1)
	}
	f.quiet()
	g.in("R", 2, 0) // another connection has a budget of its own
	g.out("A", 1, 1)
	r.advance(time.Second)
	f.in("R", 2, 0)
	f.out("A", 1, 1)
	f.in("R", 1, 0)
	f.outcome(syscall.ECONNRESET)
}

// C3: SYN-RECEIVED, of a listener: a bad ACK is answered by an RST and the connection stays; an RST at RCV.NXT ends it and
// gives the listener its place back; elsewhere it is challenged or ignored. A SYN sent again is answered again.
func TestC3SynReceived(t *testing.T) {
	r := newRig(t)
	l := r.listen(1)
	f := r.client(l)
	f.syn(mss(1460))
	for _, ack := range []int{0, 2, 1000, 1 << 31} {
		f.in("A", 1, ack)
		f.out("R", ack, 0)
	}
	f.in("FA", 1, 2, "text")
	f.out("R", 2, 0)
	f.in("R", 1000, 0)
	f.out("A", 1, 1)
	f.in("R", 0, 0)
	f.in("R", 1<<20, 0)
	f.in(".", 1, 0)
	f.in("F", 1, 0)
	f.quiet()
	f.in("S", 0, 0, mss(1460))
	f.out("SA", 0, 1, mss(1460))
	f.in("S", 5000, 0) // another SYN: an honest peer resets what it does not know
	f.out("A", 1, 1)
	f.in("A", 70000, 1) // beyond the window
	f.out("A", 1, 1)
	f.quiet()
	g := r.client(l)
	g.in("S", 0, 0)
	g.quiet() // there is no room
	f.in("R", 1, 0)
	f.quiet()
	g.in("S", 0, 0)
	g.synAck()
	g.in("A", 1, 1)
	if g.c = r.Accept(l); g.c == nil {
		t.Fatal("not accepted")
	}
	f.in("A", 1, 1) // nothing is left of the first
	f.out("R", 1, 0)
}

// C4: either side half-closes, and data still flow the other way.
func TestC4(t *testing.T) {
	r := newRig(t)
	l := r.listen(2)
	f := r.client(l).handshake(mss(1460)) // the peer half-closes
	f.in("FA", 1, 1, "last words")
	f.out("A", 1, 12)
	f.recv([]byte("last words"))
	f.outcome(0)
	f.outcome(0)
	at := 1
	for range 100 {
		f.send(pattern(at, 1000))
		f.out("A", at, 12, stream(1000))
		at += 1000
		f.in("A", 12, at)
	}
	f.close()
	f.out("FA", at, 12)
	f.in("A", 12, at+1)
	f.quiet()

	g := r.client(l).handshake(mss(1460)) // we do
	g.send([]byte("mine"))
	g.shut()
	g.out("A", 1, 1, "mine")
	g.out("FA", 5, 1)
	if n, e := g.Send(g.c, []byte("more")); n != 0 || e != syscall.EPIPE {
		t.Errorf("a write after shutdown: %d, %v", n, e)
	}
	g.in("A", 1, 6)
	g.state(tcp.FinWait2)
	r.silence(10 * time.Minute) // the application has not closed: no limit
	at = 1
	for range 100 {
		g.in("A", at, 6, stream(1000))
		at += 1000
		g.out("A", 6, at)
		g.recv(pattern(at-1000, 1000))
	}
	g.in("FA", at, 6)
	g.out("A", 6, at+1)
	g.outcome(0)
	g.state(tcp.TimeWait)
	g.close()
	g.quiet()
}

// C5: close with unread data, or with SO_LINGER 0: exactly one RST.
func TestC5(t *testing.T) {
	for _, c := range []struct {
		name   string
		state  tcp.State
		unread bool
	}{
		{"unread", tcp.Established, true},
		{"linger", tcp.Established, false},
		{"unread after the peer's FIN", tcp.CloseWait, true},
		{"linger after the peer's FIN", tcp.CloseWait, false},
		{"unread after shutdown", tcp.FinWait1, true},
		{"linger after shutdown", tcp.FinWait1, false},
		{"unread after both", tcp.FinWait2, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			f := r.connected()
			if c.unread {
				f.in("A", 1, 1, "unread")
				f.out("A", 1, 7)
			}
			next, seq := 1, 1
			if c.unread {
				next = 7
			}
			switch c.state {
			case tcp.CloseWait:
				f.in("FA", next, 1)
				next++
				f.out("A", 1, next)
			case tcp.FinWait1, tcp.FinWait2:
				f.shut()
				f.out("FA", 1, next)
				seq++
				if c.state == tcp.FinWait2 {
					f.in("A", next, 2)
				}
			}
			f.state(c.state)
			if !c.unread {
				f.c.SetLinger0(true)
			}
			f.close()
			f.out("RA", seq, next)
			f.quiet()
			if n := r.Counters(); n.Connections != 0 || n.Resets != 1 {
				t.Errorf("%d connections, %d resets", n.Connections, n.Resets)
			}
			f.in("R", next, 0)
			r.silence(time.Minute)
		})
	}
}

// C5: data that arrive when nobody is left to read them are answered by an RST (RFC 2525 2.17).
func TestC5Late(t *testing.T) {
	for _, half := range []bool{false, true} {
		r := newRig(t)
		f := r.connected()
		f.close()
		f.out("FA", 1, 1)
		if half {
			f.in("A", 1, 2)
		}
		f.in("A", 1, 1, "too late")
		f.out("RA", 2, 1)
		f.quiet()
		if n := r.Counters().Connections; n != 0 {
			t.Errorf("%d connections are left", n)
		}
	}
}

// C6: the peer vanishes after our FIN, at any stage; the connection is gone within a bound.
func TestC6(t *testing.T) {
	for _, c := range []struct {
		name  string
		limit time.Duration
		prep  func(r *rig) *flow
	}{
		{"FIN-WAIT-1", 3 * time.Minute, func(r *rig) *flow {
			f := r.connected()
			f.close()
			return f
		}},
		{"FIN-WAIT-1 with data", 3 * time.Minute, func(r *rig) *flow {
			f := r.connected()
			f.send(pattern(1, 5000))
			f.close()
			return f
		}},
		{"FIN-WAIT-2", time.Minute + time.Second, func(r *rig) *flow {
			f := r.connected()
			f.close()
			f.in("A", 1, 2)
			return f
		}},
		{"FIN-WAIT-2 before close", time.Minute + time.Second, func(r *rig) *flow {
			f := r.inState(tcp.FinWait2)
			f.close()
			return f
		}},
		{"CLOSING", 3 * time.Minute, func(r *rig) *flow {
			f := r.connected()
			f.close()
			f.in("FA", 1, 1)
			return f
		}},
		{"LAST-ACK", 3 * time.Minute, func(r *rig) *flow {
			f := r.inState(tcp.CloseWait)
			f.close()
			return f
		}},
		{"TIME-WAIT", time.Minute + time.Second, func(r *rig) *flow {
			f := r.inState(tcp.TimeWait)
			f.close()
			return f
		}},
		{"closed window", 3 * time.Minute, func(r *rig) *flow {
			f := r.connected()
			f.in("A", 1, 1, win(0))
			f.close()
			return f
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			f := c.prep(r)
			if u := r.Usage(); u.Connections != 1 {
				t.Fatalf("%+v", u)
			}
			r.advanceUntil(c.limit, func() bool { return r.Counters().Connections == 0 })
			if u := r.Usage(); u.Connections != 0 || u.Timers != 0 || u.RingBytes != 0 {
				t.Errorf("after %v there is still %+v", c.limit, u)
			}
			_ = f
		})
	}
}

// C6: a peer that answers, but never opens its window, does not hold what we have closed for ever.
func TestC6Window(t *testing.T) {
	r := newRig(t)
	f := r.connected()
	f.in("A", 1, 1, win(0))
	f.Send(f.c, pattern(1, 1))
	f.close()
	probes := 0
	for start := r.link.Now(); r.Counters().Connections != 0; {
		r.advance(10 * time.Millisecond)
		for len(r.got) > 0 {
			r.next()
			if r.Counters().Connections == 0 {
				break
			}
			probes++
			f.in("A", 1, 1, win(0))
		}
		if r.link.Now()-start > 10*time.Minute {
			t.Fatalf("still there after %d probes", probes)
		}
	}
	if probes < 5 {
		t.Errorf("gave up after %d probes", probes)
	}
}

// C10: the same at the socket interface of the stack; listen twice, bind to what is in use.
func TestC10(t *testing.T) {
	r := newRig(t)
	p, e := r.Bind(80, false)
	if p != 80 || e != 0 {
		t.Fatal(p, e)
	}
	l, e := r.Listen(0, 80, 1, stack.Options{}, 0)
	if e != 0 {
		t.Fatal(e)
	}
	if _, e := r.Listen(0, 80, 1, stack.Options{}, 0); e != syscall.EADDRINUSE {
		t.Errorf("another listener on the port: %v", e)
	}
	for _, reuse := range []bool{false, true} {
		if _, e := r.Bind(80, reuse); e != syscall.EADDRINUSE {
			t.Errorf("bind to a port that is listened on, reuse %v: %v", reuse, e)
		}
	}
	// A second listen changes the backlog, to less and to more.
	for _, n := range []int{3, 1, 200} {
		r.SetBacklog(l, n)
		var flows []*flow
		for range n {
			f := r.client(l)
			f.syn()
			flows = append(flows, f)
		}
		f := r.client(l)
		f.in("S", 0, 0)
		f.quiet()
		for _, f := range flows {
			f.in("R", 1, 0)
		}
	}
	r.Unlisten(l)
	r.Unbind(80, false)
	if _, e := r.Bind(80, false); e != 0 {
		t.Errorf("bind again: %v", e)
	}
	r.Unbind(80, false)

	// Free ports, and ephemeral ones, come at random.
	seen := map[uint16]bool{}
	for range 100 {
		p, e := r.Bind(0, false)
		if e != 0 || seen[p] || p < 1024 {
			t.Fatal(p, e)
		}
		seen[p] = true
		defer r.Unbind(p, false)
	}
	follow := 0
	for range 100 {
		f := r.dial()
		if seen[f.lport] {
			t.Fatalf("port %d was chosen twice", f.lport)
		}
		if seen[f.lport-1] {
			follow++
		}
		seen[f.lport] = true
	}
	if follow > 20 {
		t.Errorf("%d of 100 ports follow the one before", follow)
	}
}

// C11: a thousand connects before anything is sent or received; all come up.
func TestC11(t *testing.T) {
	r := newRig(t)
	var flows []*flow
	r.Do(func() {})
	for range 1000 {
		f := r.flow()
		c, e := r.Connect(0, peerIP, f.rport, stack.Options{}, 1)
		if e != 0 {
			t.Fatal(e)
		}
		f.c, f.lport = c, c.Lport
		flows = append(flows, f)
	}
	r.run()
	for _, f := range flows {
		f.learn()
		f.out("S", 0, 0)
	}
	r.quiet()
	for _, f := range flows {
		r.peer.Inject(f.segmentFrame("SA", 0, 1, mss(1460)))
	}
	r.run()
	if len(r.got) != 1000 {
		t.Errorf("%d ACKs", len(r.got))
	}
	r.got = nil
	for _, f := range flows {
		f.state(tcp.Established)
	}
}

// C12: a segment for a connection goes there, not to the listener on the same port.
func TestC12(t *testing.T) {
	r := newRig(t)
	l := r.listen(4)
	f := r.client(l).handshake(mss(1460))
	g := r.client(l).handshake(mss(1460))
	f.in("A", 1, 1, "for f")
	f.out("A", 1, 6)
	g.in("A", 1, 1, "for g")
	g.out("A", 1, 6)
	f.in("S", 100, 0) // a SYN in the window as well
	f.out("A", 1, 6)
	f.recv([]byte("for f"))
	g.recv([]byte("for g"))
	if r.Accept(l) != nil {
		t.Error("the listener has got something")
	}
}
