package stack_test

import (
	"ndpip/stack"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// How flows come into being.

// listen is a listener on port 80 with the stack's defaults.
func (r *rig) listen(backlog int, o ...stack.Options) *stack.Listener {
	r.Helper()
	l, e := r.Listen(0, 80, backlog, append(o, stack.Options{})[0], 0)
	if e != 0 {
		r.Fatal(e)
	}
	r.Cleanup(func() { r.Unlisten(l) })
	return l
}

// client is a peer that is about to connect to port 80, from a port of its own.
func (r *rig) client(l *stack.Listener) *flow {
	f := r.flow()
	f.l, f.lport = l, 80
	return f
}

// flow is a flow of the peer's, from a port and with an initial sequence number of its own.
func (r *rig) flow() *flow {
	r.ports++
	f := &flow{rig: r, rport: r.ports, rip: peerIP, rmac: peerMAC, irs: 0x1000 * uint32(r.ports), wnd: 65535}
	r.flows = append(r.flows, f)
	return f
}

// syn sends the peer's SYN and takes the stack's SYN and ACK.
func (f *flow) syn(with ...any) segment {
	f.Helper()
	f.in("S", 0, 0, with...)
	return f.synAck()
}

// synAck takes the stack's SYN and ACK, the first of the connection or one sent again.
func (f *flow) synAck() segment {
	f.Helper()
	f.learn()
	return f.out("SA", 0, 1)
}

// learn takes the stack's initial sequence number from the next frame.
func (f *flow) learn() {
	f.Helper()
	if len(f.got) == 0 {
		f.Fatal("nothing was sent")
	}
	b := f.got[0].frame
	if t, drop := wire.ParseTCP(b[wire.EthLen+wire.IPv4Len:]); drop == wire.OK {
		f.iss = t.Seq()
	}
}

// handshake opens the flow from the peer's side and takes it as the application.
func (f *flow) handshake(with ...any) *flow {
	f.Helper()
	f.syn(with...)
	f.in("A", 1, 1)
	f.quiet()
	if f.c = f.Accept(f.l); f.c == nil {
		f.Fatal("nothing to accept after the handshake")
	}
	f.snd, f.rcv = 1, 1
	f.state(tcp.Established)
	return f
}

// accepted is a connection in ESTABLISHED that the peer has opened; with are the options of its SYN.
func (r *rig) accepted(with ...any) *flow {
	r.Helper()
	if len(with) == 0 {
		with = []any{mss(1460)}
	}
	return r.client(r.listen(16)).handshake(with...)
}

// dial is a connection to the peer whose SYN has been sent and taken. The peer's ISN is chosen.
func (r *rig) dial(o ...stack.Options) *flow {
	r.Helper()
	f := r.flow()
	f.connect(append(o, stack.Options{})[0])
	f.learn()
	f.out("S", 0, 0)
	f.snd, f.rcv = 1, 0
	return f
}

// connect is the application's connect to the flow's peer. It leaves the SYN to be looked at.
func (f *flow) connect(o stack.Options) {
	f.Helper()
	c, e := f.Connect(f.lport, f.rip, f.rport, o, 1)
	if e != 0 {
		f.Fatal(e)
	}
	f.run()
	f.c, f.lport = c, c.Lport
}

// connected is a connection in ESTABLISHED that the stack has opened; with are the options of the peer's SYN and ACK.
func (r *rig) connected(with ...any) *flow {
	r.Helper()
	if len(with) == 0 {
		with = []any{mss(1460)}
	}
	f := r.dial()
	f.in("SA", 0, 1, with...)
	f.out("A", 1, 1)
	f.rcv = 1
	f.state(tcp.Established)
	return f
}

// inState is a connection in any state, and its sequence numbers in f.snd and f.rcv. In TIME-WAIT, CLOSING, LAST-ACK
// the application still holds it. The connection was opened by the stack.
func (r *rig) inState(s tcp.State) *flow {
	r.Helper()
	switch s {
	case tcp.SynSent:
		return r.dial()
	case tcp.SynReceived: // by a SYN that crossed ours; for a listener's see client
		f := r.dial()
		f.in("S", 0, 0, mss(1460))
		f.out("SA", 0, 1)
		f.rcv = 1
		return f
	}
	f := r.connected()
	switch s {
	case tcp.Closed:
		f.in("R", 1, 1)
	case tcp.FinWait1, tcp.FinWait2, tcp.Closing, tcp.TimeWait:
		f.shut()
		f.out("FA", 1, 1)
		f.snd = 2
		switch s {
		case tcp.FinWait2:
			f.in("A", 1, 2)
		case tcp.Closing:
			f.in("FA", 1, 1)
			f.out("A", 2, 2)
			f.rcv = 2
		case tcp.TimeWait:
			f.in("FA", 1, 2)
			f.out("A", 2, 2)
			f.rcv = 2
		}
	case tcp.CloseWait, tcp.LastAck:
		f.in("FA", 1, 1)
		f.out("A", 1, 2)
		f.rcv = 2
		if s == tcp.LastAck {
			f.shut()
			f.out("FA", 1, 2)
			f.snd = 2
		}
	}
	f.quiet()
	f.state(s)
	return f
}

// synchronized are the states from ESTABLISHED on.
var synchronized = []tcp.State{tcp.Established, tcp.FinWait1, tcp.FinWait2, tcp.CloseWait, tcp.Closing, tcp.LastAck,
	tcp.TimeWait}
