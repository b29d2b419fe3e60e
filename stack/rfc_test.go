package stack_test

import (
	"syscall"
	"testing"
	"time"

	"ndpip/stack"
	"ndpip/tcp"
)

// What docs/rfc9293.md claims of TCP and no other test looks at.

// The PSH bit is set in the last segment of each write, and in no other (RFC 9293 3.9.1.2, MUST-61).
func TestPush(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	at := 1
	look := func(segments ...bool) {
		t.Helper()
		f.run()
		for i, want := range segments {
			s, err := f.parse(r.next())
			if err != nil || s.flags&flagsOf("P") != 0 != want {
				t.Fatalf("segment %d: %v, %v; want PSH %v", i, s, err, want)
			}
			at += len(s.data)
		}
		f.quiet()
		f.in("A", 1, at)
	}
	f.Send(f.c, pattern(at, 10))
	look(true)
	f.Send(f.c, pattern(at, 3000))
	look(false, false, true)
	for range 2 { // two writes are two segments: nothing is held back, so there is nothing to collapse
		f.Send(f.c, pattern(at, 10))
	}
	look(true, true)
	b := bufs(r, 3)
	for i := range b {
		b[i].Len = 100
	}
	if n, e := f.SendBufs(f.c, b); n != 3 {
		t.Fatal(n, e)
	}
	look(false, false, true)
}

// Only a SYN carries options: the MSS always, behind it the window scale (RFC 9293 3.1 and 3.2, MUST-65, -68, -69).
func TestOptionsSent(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		theirs []any
		ours   opts
	}{
		{[]any{mss(1460), scale(3)}, opts{2, 4, 1460 >> 8, 1460 & 255, 1, 3, 3, 5}},
		{[]any{mss(1460)}, opts{2, 4, 1460 >> 8, 1460 & 255}},
		{nil, opts{2, 4, 1460 >> 8, 1460 & 255}},
	} {
		f := r.client(r.listen(1))
		f.in("S", 0, 0, c.theirs...)
		f.learn()
		f.out("SA", 0, 1, c.ours)
		f.in("A", 1, 1, "text")
		f.out("A", 1, 5, noOpts{})
		f.c = r.Accept(f.l)
		f.send(pattern(1, 10))
		f.out("A", 1, 5, stream(10), noOpts{})
		r.after(200 * time.Millisecond)
		f.out("A", 1, 5, stream(10), noOpts{})
		f.in("A", 5, 11)
		f.shut()
		f.out("FA", 11, 5, noOpts{})
		f.c.SetLinger0(true)
		f.close()
		f.out("RA", 12, 5, noOpts{})
		r.Unlisten(f.l)
	}
}

// The sender avoids silly windows (RFC 9293 3.8.6.2.1): what the window cuts short is sent only if it makes a full segment
// or half of the largest window seen; but all that there is, and when nothing is under way, anything.
func TestSenderSWS(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	f.in("A", 1, 1, win(4000)) // the largest was 65535
	f.send(pattern(1, 1460))
	f.out("A", 1, 1, stream(1460))
	if n, _ := f.Send(f.c, pattern(1461, 5000)); n != 1460 {
		t.Errorf("a segment and a rest: %d bytes were taken", n)
	}
	f.run()
	f.out("A", 1461, 1, stream(1460))
	if n, e := f.Send(f.c, pattern(2921, 5000)); n != 0 || e != syscall.EAGAIN {
		t.Errorf("1080 bytes of window: %d, %v", n, e)
	}
	if f.Writable(f.c) {
		t.Error("writable")
	}
	f.send(pattern(2921, 1080)) // all that there is
	f.out("A", 2921, 1, stream(1080))
	f.in("A", 1, 4001, win(500))
	if n, _ := f.Send(f.c, pattern(4001, 5000)); n != 500 {
		t.Errorf("nothing is under way: %d bytes of 500 were taken", n)
	}
	f.run()
	f.out("A", 4001, 1, stream(500))
	f.in("A", 1, 4501)
}

// All segments of a burst are processed, and then there is one ACK (RFC 9293 3.10.7.4, MUST-58 and -59), at once.
func TestOneAckForABurst(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	for i := range 20 {
		r.peer.Inject(f.segmentFrame("A", 1+100*i, 1, stream(100)))
	}
	r.Turn()
	r.collect()
	f.out("A", 1, 2001)
	f.quiet()
	r.silence(time.Second)
	f.recv(pattern(1, 2000))
}

// An RST may carry text (RFC 9293 3.5.3, SHLD-2), and one counts although the window is closed (3.10.7.4, MUST-66).
func TestResetWithText(t *testing.T) {
	for _, closed := range []bool{false, true} {
		r := newRig(t, func(u *setup) { u.RcvBuf = 4000 })
		f := r.accepted()
		at := 1
		if closed {
			f.in("A", 1, 1, stream(1460))
			f.in("A", 1461, 1, stream(1460))
			f.in("A", 2921, 1, stream(1080))
			at = 4001
			r.got = nil
		}
		f.in("RA", at+1, 1, "why it has to end") // not the next: challenged, or beyond the window
		r.got = nil
		f.state(tcp.Established)
		f.in("R", at, 0, "why it has to end")
		f.quiet()
		f.state(tcp.Closed)
		f.recv(pattern(1, at-1))
		f.outcome(syscall.ECONNRESET)
	}
}

// A port may be listened on while it is in use by a connection in SYN-SENT (RFC 9293 3.9.1.1, MUST-42), and neither gets
// in the way of the other (MUST-41).
func TestListenBesideConnect(t *testing.T) {
	r := newRig(t)
	for range 2 {
		if _, e := r.Bind(80, true); e != 0 {
			t.Fatal(e)
		}
		defer r.Unbind(80, true)
	}
	f := r.flow()
	f.lport = 80
	f.connect(stack.Options{ReuseAddr: true})
	f.learn()
	f.out("S", 0, 0)
	l := r.listen(4, stack.Options{ReuseAddr: true})
	g := r.client(l).handshake(mss(1460))
	h := r.client(l)
	h.syn() // and one in SYN-RECEIVED
	f.state(tcp.SynSent)
	f.in("SA", 0, 1)
	f.out("A", 1, 1)
	f.state(tcp.Established)
	g.state(tcp.Established)
	h.in("A", 1, 1)
	if h.c = r.Accept(l); h.c == nil {
		t.Fatal("not accepted")
	}
}

// TCP_USER_TIMEOUT is R2 (RFC 9293 3.8.3, MUST-21): it may be longer than the retransmissions usually take, too.
func TestUserTimeoutLong(t *testing.T) {
	r := newRig(t)
	f := r.accepted()
	const limit = 20 * time.Minute // 15 retransmissions take a little more than 15
	r.SetUserTimeout(f.c, int64(limit))
	f.send(pattern(1, 100))
	start := r.link.Now()
	r.advanceUntil(limit-time.Second, func() bool { r.got = nil; return f.c.State() == tcp.Closed })
	if f.c.State() != tcp.Established {
		t.Fatalf("given up after %v", r.link.Now()-start)
	}
	r.advance(2 * time.Second)
	r.got = nil
	f.outcome(syscall.ETIMEDOUT)
}
