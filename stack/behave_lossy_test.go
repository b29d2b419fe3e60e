package stack_test

import (
	"encoding/binary"
	"testing"
	"time"

	"ndpip/stack"
	"ndpip/tcp"
)

// The lossy profile, segment by segment.

const sz = 1460

// sackOK is the option of a SYN, with the padding that the stack has.
var sackOK = opts{1, 1, 4, 2}

// sack is the option that tells of blocks: start and end of each, counted as in and out do.
func (f *flow) sack(base uint32, edges ...int) opts {
	o := opts{1, 1, 5, byte(2 + 4*len(edges))}
	for _, e := range edges {
		o = binary.BigEndian.AppendUint32(o, base+uint32(e))
	}
	return o
}

// lossy is an accepted connection of the lossy profile. What the peer's SYN offers besides an MSS is given.
func (r *rig) lossy(control string, with ...any) *flow {
	r.Helper()
	id, ok := tcp.ControlNamed(control)
	if !ok {
		r.Fatal(control)
	}
	return r.client(r.listen(16, stack.Options{Congestion: id})).handshake(append([]any{mss(sz)}, with...)...)
}

// burst writes n segments and looks at those that are sent at once.
func (f *flow) burst(at, n, sent int) {
	f.Helper()
	k, _ := f.Send(f.c, pattern(at, n*sz))
	f.run()
	if k != sent*sz {
		f.Fatalf("took %d bytes, want %d segments", k, sent)
	}
	for i := range sent {
		f.out("A", at+i*sz, 1, stream(sz))
	}
	f.quiet()
}

// The initial window, slow start, limited transmit, fast retransmit and NewReno, with a peer that has no selective
// acknowledgements.
func TestLossyNewReno(t *testing.T) {
	r := newRig(t)
	f := r.lossy("reno")
	f.burst(1, 20, 10) // RFC 6928
	f.in("A", 1, 1+2*sz)
	f.burst(1+10*sz, 20, 4) // two have gone, and the window is two larger
	f.in("A", 1, 1+2*sz)    // segments 2 and 4 are lost: duplicate ACKs come for 3 and 5
	f.burst(1+14*sz, 20, 1) // limited transmit (RFC 3042)
	f.in("A", 1, 1+2*sz)
	f.burst(1+15*sz, 20, 1)
	f.in("A", 1, 1+2*sz)
	f.out("A", 1+2*sz, 1, stream(sz))
	f.quiet()
	for range 5 {
		f.in("A", 1, 1+2*sz)
		if f.Writable(f.c) {
			t.Fatal("6 segments may be under way, and that many are")
		}
	}
	f.in("A", 1, 1+2*sz)
	f.burst(1+16*sz, 20, 1)
	f.in("A", 1, 1+4*sz) // a partial acknowledgement: segment 4 is lost as well
	f.out("A", 1+4*sz, 1, stream(sz))
	f.in("A", 1, 1+17*sz)
	f.burst(1+17*sz, 20, 6)
	if n := r.Counters().Retransmits; n != 2 {
		t.Errorf("%d segments were sent again, want 2", n)
	}
}

// With selective acknowledgements only what is missing is sent again, and what was sent again and lost once more, too.
func TestLossySack(t *testing.T) {
	r := newRig(t)
	f := r.lossy("reno", sackOK)
	f.burst(1, 20, 10)
	at := func(n int) int { return 1 + n*sz }
	f.in("A", 1, at(1))
	f.burst(at(10), 20, 2)
	f.in("A", 1, at(1), f.sack(f.iss, at(2), at(3)))
	f.burst(at(12), 20, 1)
	f.in("A", 1, at(1), f.sack(f.iss, at(4), at(7), at(2), at(3)))
	f.out("A", at(1), 1, stream(sz)) // 11 under way before, half of it now: what lies behind has to wait
	f.quiet()
	f.in("A", 1, at(1), f.sack(f.iss, at(4), at(12), at(2), at(3)))
	f.out("A", at(3), 1, stream(sz))
	f.burst(at(13), 20, 2)
	f.in("A", 1, at(1), f.sack(f.iss, at(2), at(15))) // segment 1 once more: all behind it has come
	f.burst(at(15), 20, 4)
	f.in("A", 1, at(1), f.sack(f.iss, at(2), at(19)))
	f.out("A", at(1), 1, stream(sz))
	f.in("A", 1, at(19))
	if n := r.Counters().Retransmits; n != 3 {
		t.Errorf("%d segments were sent again, want 3", n)
	}
}

// The timer's expiry: one segment, then slow start.
func TestLossyTimeout(t *testing.T) {
	r := newRig(t)
	f := r.lossy("reno")
	f.burst(1, 20, 10)
	r.after(200 * time.Millisecond)
	f.out("A", 1, 1, stream(sz))
	f.quiet()
	f.in("A", 1, 1+sz)
	f.out("A", 1+sz, 1, stream(sz))
	f.out("A", 1+2*sz, 1, stream(sz))
	f.quiet()
	f.in("A", 1, 1+3*sz)
	for i := 3; i < 7; i++ {
		f.out("A", 1+i*sz, 1, stream(sz))
	}
	f.quiet()
}

// The receiver keeps what comes early, tells of it, and gives it to the application in order.
func TestLossyQueue(t *testing.T) {
	r := newRig(t)
	f := r.lossy("reno", sackOK)
	at := func(n int) int { return 1 + n*100 }
	f.in("A", at(1), 1, stream(100))
	f.out("A", 1, 1, f.sack(f.irs, at(1), at(2)))
	f.in("A", at(3), 1, stream(100))
	f.out("A", 1, 1, f.sack(f.irs, at(3), at(4), at(1), at(2)))
	f.in("A", at(2), 1, stream(50))
	f.out("A", 1, 1, f.sack(f.irs, at(1), at(2)+50, at(3), at(4)))
	f.in("A", at(3), 1, stream(100)) // once more
	f.out("A", 1, 1)
	f.in("FA", at(4), 1, stream(100))
	f.out("A", 1, 1, f.sack(f.irs, at(3), at(5), at(1), at(2)+50))
	f.in("A", at(0), 1, stream(200))
	f.out("A", 1, at(2)+50, f.sack(f.irs, at(3), at(5)))
	f.in("A", at(2), 1, stream(200))
	f.out("A", 1, at(5)+1, noOpts{}) // the FIN, too
	f.recv(pattern(1, 500))
	f.outcome(0)
}

// Idle for longer than an RTO, a connection begins with the initial window again.
func TestLossyIdle(t *testing.T) {
	r := newRig(t)
	f := r.lossy("cubic")
	f.burst(1, 10, 10)
	f.in("A", 1, 1+10*sz)
	f.burst(1+10*sz, 30, 20)
	f.in("A", 1, 1+30*sz)
	r.silence(time.Second)
	f.burst(1+30*sz, 30, 10)
}

// A peer of the lossless profile keeps nothing that comes early: repairs go over to go-back-N.
func TestLossyMixed(t *testing.T) {
	r := newRig(t)
	f := r.lossy("reno")
	f.burst(1, 10, 10)
	for range 3 {
		f.in("A", 1, 1)
	}
	f.out("A", 1, 1, stream(sz))
	f.quiet()
	f.in("A", 1, 1+sz)
	for i := 1; i < 6; i++ {
		f.out("A", 1+i*sz, 1, stream(sz))
	}
	f.quiet()
}
