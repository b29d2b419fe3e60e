package stack_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"ndpip/stack"
	"ndpip/stack/link"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// many is n, or less of it in a short run, and still less under the race detector: one thread does it all.
func many(n int) int {
	if underRace {
		n /= 5
	}
	if testing.Short() {
		return n / 10
	}
	return n
}

// C7: 100,000 connections one after the other, closed by either side first, with data or without. TIME-WAIT costs no
// rings, gives way to a new connection, and expires.
func TestC7(t *testing.T) {
	for _, first := range []string{"client", "server"} {
		t.Run(first+" closes first", func(t *testing.T) {
			p := newPair(t, link.Config{})
			l, e := p.b.Listen(0, 80, 16, stack.Options{}, 0)
			if e != 0 {
				t.Fatal(e)
			}
			word, buf := []byte("hello"), make([]byte, 10)
			var most stack.Usage
			n := many(100000) / 2
			for i := range n {
				a, e := p.a.Connect(0, peerIP, 80, stack.Options{}, 0)
				if e != 0 {
					t.Fatalf("connection %d: %v", i, e)
				}
				var b *tcp.Conn
				for range 10 {
					p.a.Turn()
					p.b.Turn()
					if b = p.b.Accept(l); b != nil {
						break
					}
				}
				if b == nil {
					t.Fatalf("connection %d from port %d does not come up: %v", i, a.Lport, a.State())
				}
				if i%2 == 0 {
					p.a.Send(a, word)
					p.b.Turn()
					if k, _ := p.b.Recv(b, buf); string(buf[:k]) != "hello" {
						t.Fatalf("connection %d: read %q", i, buf[:k])
					}
					p.a.Turn()
				}
				if first == "client" {
					p.a.Close(a)
					p.b.Turn()
					p.b.Close(b)
				} else {
					p.b.Close(b)
					p.a.Turn()
					p.a.Close(a)
				}
				for range 2 {
					p.a.Turn()
					p.b.Turn()
				}
				for _, s := range []*side{p.a, p.b} {
					u := s.Usage()
					most.Connections = max(most.Connections, u.Connections)
					most.RingBytes = max(most.RingBytes, u.RingBytes)
				}
				p.link.Advance(100 * time.Microsecond)
			}
			// There are 32,768 ports for the one destination.
			if most.Connections > 32768+2 || most.RingBytes > 1<<18 {
				t.Errorf("at most %+v", most)
			}
			p.b.Unlisten(l)
			p.run(61*time.Second, func() bool { return false })
			for _, s := range []*side{p.a, p.b} {
				if u := s.Usage(); u.Connections != 0 || u.Timers != 0 {
					t.Errorf("%v: after 2 MSL %+v", s.end, u)
				}
				if c := s.Counters(); c.Resets != 0 || c.Retransmits != 0 {
					t.Errorf("%v: %d resets, %d segments sent again", s.end, c.Resets, c.Retransmits)
				}
			}
			t.Logf("at most %+v", most)
		})
	}
}

// C7: a SYN for a connection in TIME-WAIT opens a new one if its number is higher, whether or not the application still
// holds the old one. Ours is higher than all of the old connection's, too.
func TestC7Reopen(t *testing.T) {
	for _, held := range []bool{false, true} {
		r := newRig(t)
		l := r.listen(2)
		f := r.client(l).handshake(mss(1460))
		f.send(pattern(1, 1000))
		f.out("A", 1, 1, stream(1000))
		f.in("A", 1, 1001, "from before")
		f.out("A", 1001, 12)
		f.shut()
		f.out("FA", 1001, 12)
		f.in("FA", 12, 1002)
		f.out("A", 1002, 13)
		if !held {
			f.recv([]byte("from before"))
			f.close()
		}
		f.state(tcp.TimeWait)
		for _, seq := range []int{0, 12, 13, -70000} { // not higher
			f.in("S", seq, 0)
			f.out("A", 1002, 13)
			f.state(tcp.TimeWait)
		}
		g := &flow{rig: r, l: l, lport: 80, rport: f.rport, rip: peerIP, rmac: peerMAC, irs: f.irs + 14, wnd: 65535}
		r.flows = []*flow{g}
		g.in("S", 0, 0)
		g.synAck()
		if d := int32(g.iss - (f.iss + 1002)); d < 1 {
			t.Errorf("the new connection's numbers start %d behind the old one's end", -d)
		}
		g.in("A", 1, 1)
		if g.c = r.Accept(l); g.c == nil {
			t.Fatal("not accepted")
		}
		g.in("A", 1, 1, "new")
		g.out("A", 1, 4)
		g.recv([]byte("new"))
		if held {
			f.recv([]byte("from before"))
			f.outcome(0)
			f.close()
		}
		g.quiet()
		g.state(tcp.Established)

		// A full backlog, or no listener: TIME-WAIT stays.
		h := r.client(l).handshake(mss(1460))
		h.shut()
		h.out("FA", 1, 1)
		h.in("FA", 1, 2)
		h.out("A", 2, 2)
		x, y := r.client(l), r.client(l)
		x.syn()
		y.syn()
		h.in("S", 1000, 0)
		h.quiet()
		h.state(tcp.TimeWait)
		r.Unlisten(l)
		r.run()
		x.out("RA", 1, 1)
		y.out("RA", 1, 1)
		h.in("S", 1000, 0)
		h.out("A", 2, 2)
		h.state(tcp.TimeWait)
	}
}

// C8: listen(b), b+5 clients, and nobody accepts.
func TestC8(t *testing.T) {
	const b = 8
	r := newRig(t)
	l := r.listen(b)
	var in, over []*flow
	for range b {
		f := r.client(l)
		f.syn(mss(1460))
		f.in("A", 1, 1)
		f.quiet()
		in = append(in, f)
	}
	for range 5 {
		f := r.client(l)
		f.in("S", 0, 0, mss(1460))
		over = append(over, f)
	}
	r.silence(3 * time.Second)
	if n := r.drops(stack.DropBacklog); n != 5 {
		t.Errorf("%d SYNs dropped, want 5", n)
	}
	for i, f := range over { // each comes in when one is accepted
		f.in("S", 0, 0, mss(1460))
		f.quiet()
		if in[i].c = r.Accept(l); in[i].c == nil || in[i].c.Rport != in[i].rport {
			t.Fatalf("accepted %+v, want the connection from port %d", in[i].c, in[i].rport)
		}
		f.in("S", 0, 0, mss(1460))
		f.synAck()
		if i%2 == 0 {
			f.in("A", 1, 1)
		}
	}
	r.quiet()
	// Two of the five are half open and stay so: they expire, and make room.
	r.advance(130 * time.Second)
	for len(r.got) > 0 {
		s, err := over[1].parse(r.next())
		if err != nil {
			continue
		}
		if s.flags != flagsOf("SA") {
			t.Errorf("sent %v", s)
		}
	}
	for n := 0; ; n++ {
		c := r.Accept(l)
		if c == nil {
			if n != b-5+3 {
				t.Errorf("then accepted %d, want %d", n, b-5+3)
			}
			break
		}
	}
	for range b {
		r.client(l).syn()
	}
	r.client(l).in("S", 0, 0)
	r.quiet()
	c := r.Counters()
	if c.Accepted != b+3 || c.Drop[stack.DropBacklog] != 5+5+1 || c.Connections != b+3+b {
		t.Errorf("%d accepted, %d SYNs dropped, %d connections", c.Accepted, c.Drop[stack.DropBacklog], c.Connections)
	}
}

// C9: a million SYNs with forged sources, while a connection is busy.
func TestC9(t *testing.T) {
	const backlog = 256
	n := many(1000000)
	goodput := func(syns bool) int {
		p := newPair(t, link.Config{Seed: 9, AB: link.Path{Rate: 2e8, Delay: 10 * time.Microsecond},
			BA: link.Path{Rate: 1e9, Delay: 10 * time.Microsecond}})
		a, b := p.open(80)
		f := p.flood(p.a, p.b, a, b, 1<<50)
		l, e := p.a.Listen(0, 80, backlog, stack.Options{}, 0)
		if e != 0 {
			t.Fatal(e)
		}
		defer p.a.Unlisten(l)
		rnd := rand.New(rand.NewPCG(9, 9))
		attacker := p.link.B.Peer()
		syn := (&flow{lport: 80, rport: 1, rip: peerIP, rmac: peerMAC, wnd: 65535}).segmentFrame("S", 0, 0)
		const step = 100 * time.Microsecond
		d := 2 * time.Second * time.Duration(n) / 1000000
		per := n / int(d/step)
		start := p.link.Now()
		next, sent := start, 0
		p.apps = append(p.apps, func() bool {
			for syns && sent < n && p.link.Now() >= next {
				next += step
				for range per {
					h := syn[wire.EthLen:]
					binary.BigEndian.PutUint32(h[12:], 11<<24|rnd.Uint32N(1<<24)) // a source
					resum(syn)
					binary.BigEndian.PutUint32(h[wire.IPv4Len:], rnd.Uint32()<<16|80)
					wire.SetTCPCheck(h[wire.IPv4Len:], binary.BigEndian.Uint32(h[12:]), ourIP)
					attacker.Inject(syn)
					sent++
				}
			}
			return false
		})
		most := 0
		for end := start + d; p.link.Now() < end; {
			p.run(10*time.Millisecond, func() bool { return false })
			most = max(most, p.a.Usage().Connections)
		}
		if c := p.a.Counters(); syns && (most > backlog+1 || c.Drop[stack.DropBacklog] < uint64(sent)*9/10) {
			t.Errorf("%d connections at most; of %d SYNs %d were dropped", most, sent, c.Drop[stack.DropBacklog])
		}
		if syns && sent < n*9/10 {
			t.Errorf("only %d SYNs were sent", sent)
		}
		f.total = f.sent
		return f.got
	}
	calm, storm := goodput(false), goodput(true)
	if storm < calm*9/10 {
		t.Errorf("%d bytes in the calm, %d in the storm", calm, storm)
	}
	t.Logf("%d MiB in the calm, %d MiB in the storm", calm>>20, storm>>20)
}
