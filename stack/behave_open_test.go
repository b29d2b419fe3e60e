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
