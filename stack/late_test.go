package stack_test

import (
	"testing"
	"time"
)

// With AckDelay one small piece of text waits for an answer that carries its ACK; all else is told at once.
func TestAckDelay(t *testing.T) {
	const delay = 2 * time.Millisecond
	open := func(t *testing.T) *flow {
		r := newRig(t, func(u *setup) { u.AckDelay = int64(delay) })
		return r.accepted(mss(1460))
	}
	t.Run("no answer", func(t *testing.T) {
		f := open(t)
		f.in("A", 1, 1, "hello")
		f.after(delay)
		f.out("A", 1, 6)
		f.silence(time.Second)
	})
	t.Run("an answer", func(t *testing.T) {
		f := open(t)
		for i := range 1000 {
			f.in("A", 1+5*i, 1+3*i, "hello")
			f.quiet()
			f.recv([]byte("hello"))
			f.send([]byte("hi!"))
			f.out("A", 1+3*i, 6+5*i, "hi!")
			if i%100 == 0 {
				f.advance(delay + grain)
				f.quiet()
			}
		}
	})
	t.Run("an answer by zero copy", func(t *testing.T) {
		f := open(t)
		f.in("A", 1, 1, "hello")
		b := bufs(f.rig, 1)
		b[0].Len = 3
		if n, e := f.SendBufs(f.c, b); n != 1 {
			t.Fatal(n, e)
		}
		text := append([]byte{}, b[0].Bytes()...)
		f.run()
		f.out("A", 1, 6, text)
		f.silence(100 * time.Millisecond)
	})
	t.Run("a FIN for an answer", func(t *testing.T) {
		f := open(t)
		f.in("A", 1, 1, "hello")
		f.shut()
		f.out("FA", 1, 6)
		f.in("A", 6, 2)
		f.silence(100 * time.Millisecond)
	})
	t.Run("an answer before the text", func(t *testing.T) {
		f := open(t)
		f.send([]byte("hi!"))
		f.out("A", 1, 1, "hi!")
		f.in("A", 1, 4, "hello")
		f.after(delay)
		f.out("A", 4, 6)
	})
	t.Run("the second piece", func(t *testing.T) {
		f := open(t)
		f.in("A", 1, 1, "hello")
		f.quiet()
		f.advance(delay / 2)
		f.in("A", 6, 1, "hello")
		f.out("A", 1, 11)
		f.silence(delay / 2)
		f.in("A", 11, 1, "hello")
		f.after(delay)
		f.out("A", 1, 16)
	})
	t.Run("at once", func(t *testing.T) {
		f := open(t)
		f.in("A", 1, 1, stream(730))
		f.quiet()
		f.in("A", 731, 1, stream(731)) // more than half a segment
		f.out("A", 1, 1462)
		f.in("A", 1462, 1, stream(1459))
		f.out("A", 1, 2921)
		f.in("A", 2000, 1, "old")
		f.out("A", 1, 2921)
		f.in("A", 3000, 1, "beyond a gap")
		f.out("A", 1, 2921)
		f.in("FA", 2921, 1, "bye")
		f.out("A", 1, 2925)
		f.silence(time.Second)
	})
	t.Run("a duplicate while one waits", func(t *testing.T) {
		f := open(t)
		f.in("A", 1, 1, "hello")
		f.quiet()
		f.in("A", 1, 1, "hello")
		f.out("A", 1, 6)
		f.silence(time.Second)
	})
	t.Run("many", func(t *testing.T) {
		r := newRig(t, func(u *setup) { u.AckDelay = int64(delay) })
		l := r.listen(200)
		var all []*flow
		for range 150 {
			f := r.client(l).handshake(mss(1460))
			f.in("A", 1, 1, "hello")
			all = append(all, f)
		}
		r.quiet()
		all[7].c.Abort()
		r.Close(all[7].c)
		r.run()
		r.got = nil
		r.advance(delay + grain)
		if len(r.got) != len(all)-1 {
			t.Errorf("%d ACKs for %d connections", len(r.got), len(all)-1)
		}
		r.got = nil
	})
}

// With AckRide the ACK of a small piece waits for the next turn once the application has answered before it, and no
// longer when it has not.
func TestAckRide(t *testing.T) {
	r := newRig(t, func(u *setup) { u.AckRide = true })
	f := r.accepted(mss(1460))
	at, ack := 1, 1
	piece := func() { // comes in, and one turn is taken
		r.peer.Inject(f.segmentFrame("A", at, ack, "hello"))
		r.Turn()
		r.collect()
		at += 5
	}
	answer := func() {
		f.read(5)
		if n, e := f.Send(f.c, []byte("hi!")); n != 3 {
			t.Fatal(n, e)
		}
		r.collect()
		f.out("A", ack, at, "hi!")
		ack += 3
	}
	piece()
	f.out("A", ack, at) // it is not known
	f.run()             // nor has it answered before the next turn
	answer()
	piece()
	f.out("A", ack, at)
	answer()
	for range 100 {
		piece()
		r.quiet()
		answer()
	}
	piece()
	r.quiet()
	f.run() // it stays away
	f.out("A", ack, at)
	answer()
	piece()
	f.out("A", ack, at)
	answer()
	piece()
	r.quiet()
	f.in("A", at, ack, stream(1000)) // large ones are told at once, and tell all
	at += 1000
	f.out("A", ack, at)
	r.silence(time.Minute)
}
