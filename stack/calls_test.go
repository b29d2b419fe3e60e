package stack_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"ndpip/stack"
	"ndpip/tcp"
)

// Each call of the application in each state (RFC 9293 3.10): what is sent, and where it leads.
func TestCalls(t *testing.T) {
	none := ""
	for _, c := range []struct {
		from  tcp.State
		call  string
		sends string
		to    tcp.State
		gone  bool // the connection is released at once
		errno syscall.Errno
	}{
		{tcp.SynSent, "close", none, tcp.Closed, true, 0},
		{tcp.SynSent, "abort", none, tcp.Closed, true, 0},
		{tcp.SynSent, "send", none, tcp.SynSent, false, syscall.EAGAIN},
		{tcp.SynReceived, "close", "RA", tcp.Closed, true, 0},
		{tcp.SynReceived, "abort", "RA", tcp.Closed, true, 0},
		{tcp.SynReceived, "send", none, tcp.SynReceived, false, syscall.EAGAIN},
		{tcp.Established, "close", "FA", tcp.FinWait1, false, 0},
		{tcp.Established, "shutdown", "FA", tcp.FinWait1, false, 0},
		{tcp.Established, "abort", "RA", tcp.Closed, true, 0},
		{tcp.Established, "send", "A", tcp.Established, false, 0},
		{tcp.FinWait1, "close", none, tcp.FinWait1, false, 0},
		{tcp.FinWait1, "abort", "RA", tcp.Closed, true, 0},
		{tcp.FinWait1, "send", none, tcp.FinWait1, false, syscall.EPIPE},
		{tcp.FinWait2, "close", none, tcp.FinWait2, false, 0},
		{tcp.FinWait2, "abort", "RA", tcp.Closed, true, 0},
		{tcp.FinWait2, "send", none, tcp.FinWait2, false, syscall.EPIPE},
		{tcp.CloseWait, "close", "FA", tcp.LastAck, false, 0},
		{tcp.CloseWait, "shutdown", "FA", tcp.LastAck, false, 0},
		{tcp.CloseWait, "abort", "RA", tcp.Closed, true, 0},
		{tcp.CloseWait, "send", "A", tcp.CloseWait, false, 0},
		{tcp.Closing, "close", none, tcp.Closing, false, 0},
		{tcp.Closing, "abort", "RA", tcp.Closed, true, 0},
		{tcp.Closing, "send", none, tcp.Closing, false, syscall.EPIPE},
		{tcp.LastAck, "close", none, tcp.LastAck, false, 0},
		{tcp.LastAck, "abort", "RA", tcp.Closed, true, 0},
		{tcp.LastAck, "send", none, tcp.LastAck, false, syscall.EPIPE},
		{tcp.TimeWait, "close", none, tcp.TimeWait, false, 0},
		{tcp.TimeWait, "abort", none, tcp.Closed, true, 0}, // the peer is done
		{tcp.TimeWait, "send", none, tcp.TimeWait, false, syscall.EPIPE},
		{tcp.Closed, "close", none, tcp.Closed, true, 0},
		{tcp.Closed, "abort", none, tcp.Closed, true, 0},
		{tcp.Closed, "send", none, tcp.Closed, false, syscall.ECONNRESET},
	} {
		t.Run(fmt.Sprintf("%v/%s", c.from, c.call), func(t *testing.T) {
			r := newRig(t)
			f := r.inState(c.from)
			switch c.call {
			case "close":
				f.close()
			case "shutdown":
				f.shut()
			case "abort":
				r.Abort(f.c)
				r.run()
			case "send":
				n, e := f.Send(f.c, []byte("text"))
				if e != c.errno || (n == 4) != (e == 0) {
					t.Errorf("Send: %d, %v", n, e)
				}
				r.run()
			}
			switch c.sends {
			case "A":
				f.out("A", f.snd, f.rcv, "text")
			case "FA", "RA":
				f.out(c.sends, f.snd, f.rcv)
			}
			f.quiet()
			if u := r.Usage(); (u.Connections == 0) != c.gone {
				t.Errorf("%d connections", u.Connections)
			}
			if !c.gone {
				f.state(c.to)
			}
			if c.from == tcp.SynSent && c.gone { // a SYN and ACK that comes now
				f.in("SA", 0, 1)
				f.out("R", 1, 0)
			}
		})
	}
}

// A listener that is closed resets what nobody has accepted, half open or open.
func TestUnlisten(t *testing.T) {
	r := newRig(t)
	l, e := r.Listen(0, 80, 8, stack.Options{}, 0)
	if e != 0 {
		t.Fatal(e)
	}
	open, text, half, taken := r.client(l), r.client(l), r.client(l), r.client(l)
	taken.handshake(mss(1460))
	open.syn()
	open.in("A", 1, 1)
	text.syn()
	text.in("A", 1, 1, "text")
	text.out("A", 1, 5)
	half.syn()
	r.quiet()
	r.Unlisten(l)
	r.run()
	open.out("RA", 1, 1)
	text.out("RA", 1, 5)
	half.out("RA", 1, 1)
	r.quiet()
	if u := r.Usage(); u.Connections != 1 {
		t.Errorf("%+v", u)
	}
	taken.in("A", 1, 1, "still here")
	taken.out("A", 1, 11)
	x := r.client(nil)
	x.in("S", 0, 0)
	x.out("RA", 0, 1)
}

// A connection that was reset before it was accepted is handed out, and tells.
func TestResetBeforeAccept(t *testing.T) {
	r := newRig(t)
	l := r.listen(1)
	f := r.client(l)
	f.syn()
	f.in("A", 1, 1, "text")
	f.out("A", 1, 5)
	f.in("R", 5, 0)
	if f.c = r.Accept(l); f.c == nil {
		t.Fatal("not accepted")
	}
	f.recv([]byte("text"))
	f.outcome(syscall.ECONNRESET)
	f.close()
	g := r.client(l).handshake(mss(1460)) // the place is free
	g.close()
}

// Ports and addresses are free as soon as a connection is closed, although the application still holds it.
func TestClosedIsFree(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	f.in("R", 1, 0)
	g := &flow{rig: r, l: f.l, lport: 80, rport: f.rport, rip: peerIP, rmac: peerMAC, irs: f.irs - 50, wnd: 65535}
	g.handshake(mss(1460))
	f.outcome(syscall.ECONNRESET)
	f.close()
	g.in("A", 1, 1, "new")
	g.out("A", 1, 4)
	// Even in the same burst as the RST.
	r.peer.Inject(g.segmentFrame("R", 4, 0))
	h := &flow{rig: r, l: f.l, lport: 80, rport: f.rport, rip: peerIP, rmac: peerMAC, irs: 99, wnd: 65535}
	h.syn(mss(1460))
	h.in("A", 1, 1)

	x := r.connected()
	x.in("R", 1, 0)
	y := r.flow()
	y.lport, y.rport = x.lport, x.rport
	r.flows = nil
	y.connect(stack.Options{})
	y.learn()
	y.out("S", 0, 0)
	if _, e := r.Connect(y.lport, peerIP, y.rport, stack.Options{}, 0); e != syscall.EADDRINUSE {
		t.Errorf("a connection with the addresses and ports of another: %v", e)
	}
}

// connect from a port whose connection to the same peer is in TIME-WAIT: it gives way, the numbers are higher.
func TestConnectFromTimeWait(t *testing.T) {
	for _, held := range []bool{false, true} {
		r := newRig(t)
		f := r.inState(tcp.TimeWait)
		if !held {
			f.close()
		}
		g := r.flow()
		g.lport, g.rport = f.lport, f.rport
		r.flows = nil
		g.connect(stack.Options{})
		g.learn()
		if d := int32(g.iss - (f.iss + 2)); d < 1 {
			t.Errorf("the new number lies %d before the end of the old connection", -d)
		}
		g.out("S", 0, 0)
		g.in("SA", 0, 1)
		g.out("A", 1, 1)
		if held {
			f.outcome(0)
			f.close()
		}
		r.advance(2 * time.Minute)
		g.state(tcp.Established)
	}
}
