package stack_test

import (
	"testing"
	"time"

	"ndpip/tcp"
)

// Where the worker sends, a call sends nothing and the next turn all of it: in order, with PSH on the last, and with the
// acknowledgement of what has come in that turn.
func TestWorkerSends(t *testing.T) {
	r := newRig(t, func(u *setup) { u.WorkerSends = true })
	f := r.accepted(mss(100))
	put := func(p []byte) {
		t.Helper()
		if n, e := f.Send(f.c, p); n != len(p) || e != 0 {
			t.Fatalf("took %d of %d bytes (%v)", n, len(p), e)
		}
		r.collect()
		r.quiet()
	}
	put(pattern(1, 250))
	put(pattern(251, 50))
	f.run()
	f.out("A", 1, 1, stream(100))
	f.out("A", 101, 1, stream(100))
	f.out("A", 201, 1, stream(50))
	f.out("PA", 251, 1, stream(50))

	put([]byte("hi!"))
	f.in("A", 1, 301, "hello")
	f.out("PA", 301, 6, "hi!")
	r.quiet() // and no ACK
	f.recv([]byte("hello"))
	f.in("A", 6, 304)

	// Buffers are handed to the port as they are: nothing is copied.
	mine := filled(r, 2, 304, 100)
	base := r.link.A.InUse()
	if n, e := f.SendBufs(f.c, mine); n != 2 || e != 0 {
		t.Fatal(n, e)
	}
	r.collect()
	r.quiet()
	f.run()
	f.out("A", 304, 6, stream(100))
	f.out("PA", 404, 6, stream(100))
	if n := r.link.A.InUse() - base; n != 0 {
		t.Errorf("%d more buffers are in use for two segments", n)
	}
	f.in("A", 6, 504)
	if n := r.link.A.InUse() - base; n != -2 {
		t.Errorf("%d more buffers are in use after all was acknowledged", n)
	}

	// What is entered is sent before the FIN, and both again when they are lost.
	put(pattern(504, 100))
	f.Shutdown(f.c)
	r.collect()
	r.quiet()
	f.run()
	f.out("PA", 504, 6, stream(100))
	f.out("FA", 604, 6)
	f.state(tcp.FinWait1)
	r.after(200 * time.Millisecond)
	f.out("PA", 504, 6, stream(100))
	f.out("FA", 604, 6)
	f.in("A", 6, 605)
	f.state(tcp.FinWait2)
}

// What is entered while something is sent again waits for that, and goes out when it is acknowledged.
func TestWorkerSendsBehindRepair(t *testing.T) {
	r := newRig(t, func(u *setup) { u.WorkerSends = true })
	f := r.accepted(mss(100))
	f.send(pattern(1, 100))
	f.out("PA", 1, 1, stream(100))
	r.link.Advance(201 * time.Millisecond)
	f.Send(f.c, pattern(101, 100)) // the worker finds it together with the timer
	f.run()
	f.out("PA", 1, 1, stream(100))
	r.quiet()
	f.in("A", 1, 101)
	f.out("PA", 101, 1, stream(100))
	f.in("A", 1, 201)
	r.silence(time.Minute)
}
