package stack_test

import (
	"testing"

	"ndpip/stack"
	"ndpip/udp"
)

// A flood of datagrams to sockets that nobody reads gets a part of the receive pool, and what is read goes on: a
// connection, and another socket.
func TestSlowDatagrams(t *testing.T) {
	const pool, size = 512, 1100 // too large to be gathered
	r := newRig(t, func(u *setup) { u.link.A.Buffers, u.RxBuffers = pool, pool })
	f := r.accepted(mss(1460), scale(7))
	var slow []*udp.Sock
	for i := range uint16(4) {
		slow = append(slow, r.socket(1000+i, 0))
	}
	read := r.socket(2000, 0)
	for n := range 1000 {
		for i := range slow {
			r.inject(datagram(peerIP, 9, 1000+uint16(i), "flood"))
		}
		r.inject(datagram(peerIP, 9, 2000, "read"))
		p := make([]byte, 10)
		if k, _, _, _, e := r.RecvFrom(read, p); e != 0 || string(p[:k]) != "read" {
			t.Fatalf("round %d: read %q, %v", n, p[:k], e)
		}
		f.in("A", 1+n*size, 1, stream(size))
		f.out("A", 1, 1+(n+1)*size)
		f.recv(pattern(1+n*size, size))
		r.got = nil
	}
	least, most := pool, 0
	for _, u := range slow {
		least, most = min(least, u.Len()), max(most, u.Len())
	}
	if least < 10 || most-least > 2 || r.drops(stack.DropNoBuffer) == 0 {
		t.Errorf("the sockets that nobody reads hold %d to %d buffers; %d dropped", least, most, r.drops(stack.DropNoBuffer))
	}
	if n := r.link.A.Stats().NoBuffer; n != 0 {
		t.Errorf("%d frames found no buffer", n)
	}
}
