package stack_test

import (
	"testing"
	"time"

	"ndpip/stack"
	"ndpip/tcp"
)

// flooded is a listener whose backlog is full of connections whose peers do not answer, for longer than they should.
func flooded(t *testing.T, backlog int) (*rig, *stack.Listener) {
	r := newRig(t)
	l := r.listen(backlog)
	for range backlog {
		r.client(l).syn(mss(1460))
	}
	late := r.client(l)
	late.in("S", 0, 0, mss(1460))
	r.quiet() // as yet it may be a crowd that answers in a moment
	r.advance(1100 * time.Millisecond)
	r.got = nil // the SYNs and ACKs, sent again
	return r, l
}

// A client gets in during a SYN flood, with the options that it asked for, and with its first data if that carries the
// first ACK that arrives. Nothing is kept for those that do not answer.
func TestCookie(t *testing.T) {
	for _, c := range []struct {
		name  string
		opts  []any
		mss   int // at which we then send
		scale int // of the peer's window
		reply []any
	}{
		{"none", []any{noOpts{}}, 536, 0, []any{mss(1460)}},
		{"MSS", []any{mss(1460)}, 1460, 0, []any{mss(1460)}},
		{"MSS between two that a cookie tells", []any{mss(1300)}, 1220, 0, []any{mss(1460)}},
		{"MSS and scale", []any{mss(1440), scale(7)}, 1440, 7, []any{mss(1460), scale(5)}},
		{"scale 14", []any{mss(536), scale(14)}, 536, 14, []any{mss(1460), scale(5)}},
		{"scale 15, which counts as 14", []any{mss(536), scale(15)}, 536, 14, []any{mss(1460), scale(5)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, l := flooded(t, 4)
			connections := r.Usage().Connections
			f := r.client(l)
			f.in("S", 0, 0, c.opts...)
			f.learn()
			f.out("SA", 0, 1, c.reply...)
			for range 100 {
				other := r.client(l)
				other.in("S", 0, 0, c.opts...)
				other.learn()
				other.out("SA", 0, 1, c.reply...)
			}
			if n := r.Usage().Connections; n != connections {
				t.Fatalf("%d connections, %d before", n, connections)
			}
			f.in("A", 1, 1, "hello", win(1000))
			f.out("A", 1, 6)
			if f.c = r.Accept(l); f.c == nil {
				t.Fatal("not accepted")
			}
			f.state(tcp.Established)
			f.recv([]byte("hello"))
			f.send(pattern(1, 1000))
			for at := 1; at <= 1000; at += c.mss {
				f.out("A", at, 6, stream(min(c.mss, 1001-at)))
			}
			if n := r.Counters(); n.CookiesSent != 101 || n.CookiesTaken != 1 || r.Usage().Connections != connections {
				t.Errorf("%d cookies sent, %d taken, %d connections", n.CookiesSent, n.CookiesTaken, r.Usage().Connections)
			}
			if c.scale > 0 { // 1000 units, not bytes
				f.in("A", 6, 1001, win(1000))
				f.send(pattern(1001, 3000))
				got := 0
				for len(r.got) > 0 {
					got += len(f.out("A", 1001+got, 6, stream(min(c.mss, 3000-got))).data)
				}
				if got != 3000 {
					t.Errorf("%d bytes sent", got)
				}
			}
		})
	}
}

// What is no cookie, or one that is too old, opens nothing.
func TestCookieRefused(t *testing.T) {
	r, l := flooded(t, 4)
	asked := func() *flow {
		f := r.client(l)
		f.in("S", 0, 0, mss(1460))
		f.learn()
		f.out("SA", 0, 1)
		return f
	}
	for _, d := range []struct{ seq, ack int }{{1, 2}, {1, 0}, {2, 1}, {0, 1}, {1, 1 + 1<<8}, {1, 1 + 1<<31}, {1, 1 - 32}} {
		f := asked()
		f.in("A", d.seq, d.ack)
		f.out("R", d.ack, 0)
	}
	f := asked()
	f.in("R", 1, 0)
	f.in("SA", 1, 1)
	f.out("R", 1, 0)
	if r.Accept(l) != nil {
		t.Error("accepted")
	}

	// A crowd without a flood: nobody is remembered who has no place, and no ACK opens anything.
	r = newRig(t)
	l = r.listen(1)
	g := r.client(l)
	g.in("A", 1, 1)
	g.out("R", 1, 0)
	first := r.client(l)
	first.syn()
	first.in("A", 1, 1)
	over := r.client(l)
	over.in("S", 0, 0)
	r.silence(2 * time.Second)
	over.in("S", 0, 0)
	r.quiet()
}

// While the backlog is full of connections that the application has not accepted, who brings a cookie waits.
func TestCookieWaits(t *testing.T) {
	r, l := flooded(t, 4)
	var in []*flow
	for range 6 {
		f := r.client(l)
		f.in("S", 0, 0, mss(1460))
		f.learn()
		f.out("SA", 0, 1)
		in = append(in, f)
	}
	for _, f := range in {
		f.in("A", 1, 1)
	}
	r.quiet() // nobody is reset
	for i := range 4 {
		if c := r.Accept(l); c == nil || c.Rport != in[i].rport {
			t.Fatalf("accepted %+v", c)
		} else {
			in[i].c = c
		}
	}
	if r.Accept(l) != nil {
		t.Fatal("a fifth one in a backlog of four")
	}
	in[4].in("A", 1, 1, "at last") // it had its SYN and ACK, so it sends
	in[4].out("A", 1, 8)
	if in[4].c = r.Accept(l); in[4].c == nil {
		t.Fatal("not accepted")
	}
	in[4].recv([]byte("at last"))

	// A cookie is good for its own epoch and the next one.
	r.advance(140 * time.Second)
	r.got = nil
	in[5].in("A", 1, 1)
	in[5].out("R", 1, 0)
}
