package sim

import (
	"fmt"
	"syscall"
	"time"

	"ndpip/dpdk"
	"ndpip/stack"
	"ndpip/tcp"
)

// phase is how far an application has come with its connection.
type phase uint8

const (
	waiting phase = iota
	listening
	connecting
	open
	closed
)

var phases = [...]string{"waiting", "listening", "connecting", "open", "closed"}

// side is one application with one connection: a script that never blocks.
type side struct {
	*host
	peer   *side
	conn   *Conn
	do     *Side
	idx    int
	opener bool

	phase    phase
	c        *tcp.Conn
	l        *stack.Listener
	attempts int

	outKey, inKey         uint64
	wrote, read           uint64
	reading               uint64 // bytes asked for by a Recv that has not returned
	nextWrite, nextRead   time.Duration
	opened                time.Duration
	finished, eof, failed bool // the own stream was ended; the peer's end was read; the connection gave an error
	err                   syscall.Errno
	stopped               bool // it has made the pause of StopAt
	gaveUp                bool
	rest                  []dpdk.Frame // filled and refused, to be sent at wrote
	kept                  []kept
	out, buf              []byte // for writing and for reading
	filledAt              uint64 // out holds the stream from here on
	filled                int    // so many bytes of it
}

// kept are received buffers that the application has not given back yet.
type kept struct {
	f     []dpdk.Frame
	until time.Duration
}

func newSide(h *host, c *Conn, idx int, do *Side, opener bool) *side {
	x := &side{host: h, conn: c, do: do, idx: idx, opener: opener}
	x.outKey = mix(h.w.Seed, uint64(2*idx))
	x.inKey = mix(h.w.Seed, uint64(2*idx+1))
	if h.name == "B" {
		x.outKey, x.inKey = x.inKey, x.outKey
	}
	x.buf = make([]byte, min(do.ReadMax, 1<<16))
	x.out = make([]byte, min(do.WriteMax, do.Write))
	return x
}

func (x *side) String() string {
	s := fmt.Sprintf("connection %d at %s: %s, wrote %d of %d, read %d, finished %v eof %v error %v, rest %d kept %d", x.idx,
		x.name, phases[x.phase], x.wrote, x.do.Write, x.read, x.finished, x.eof, x.err, len(x.rest), len(x.kept))
	if x.c != nil {
		st, why, eof := x.c.Status()
		s += fmt.Sprintf("; %v %v %v, %s", st, why, eof, x.c.Debug())
	}
	return s
}

func (x *side) now() time.Duration { return x.w.link.Now() }

// over says whether the application is done.
func (x *side) over() bool { return x.phase == closed && len(x.kept) == 0 }

// step does what the application can do now, and says whether that was anything. With within it runs while the
// stack's worker is in the middle of a turn, and leaves alone what needs the worker.
func (x *side) step(within bool) (busy bool) {
	if x.phase == open {
		return x.data(within)
	}
	if x.free(x.now()) {
		busy = true
	}
	if within || x.phase == closed {
		return busy
	}
	return x.begin() || busy
}

// begin brings the connection up.
func (x *side) begin() bool {
	port := uint16(firstPort + x.idx)
	switch x.phase {
	case waiting:
		if x.opener {
			return x.connect(port)
		}
		if _, e := x.Bind(port, false); e != 0 {
			x.w.fail("bind: %v", e)
		}
		l, e := x.Listen(0, port, 4, x.do.Opts, 0)
		if e != 0 {
			x.w.fail("listen: %v", e)
		}
		x.l, x.phase = l, listening
		return true
	case listening:
		if c := x.Accept(x.l); c != nil {
			x.unlisten(port)
			x.up(c)
			return true
		}
		if x.peer.phase == closed && x.peer.opened == 0 { // it has not come, and will not
			x.unlisten(port)
			x.phase = closed
			return true
		}
	case connecting:
		switch st, _, _ := x.c.Status(); {
		case st.Synchronized():
			x.up(x.c)
			return true
		case st == tcp.Closed:
			e := stack.Outcome(x.c)
			x.Close(x.c)
			x.c, x.phase = nil, waiting
			if e == syscall.EHOSTUNREACH && x.attempts < 10 {
				x.nextWrite = x.now() + 2*time.Second
				return true // requests for its address were lost: once more
			}
			x.end(e)
			return true
		}
	case open, closed:
	}
	return false
}

func (x *side) connect(port uint16) bool {
	if x.now() < x.w.start+x.conn.Start || x.now() < x.nextWrite || x.peer.phase == waiting {
		return false
	}
	x.attempts++
	to := uint32(addrA)
	if x.name == "A" {
		to = addrB
	}
	c, e := x.Connect(0, to, port, x.do.Opts, uint32(x.idx))
	if e != 0 {
		x.w.fail("connection %d: connect: %v", x.idx, e)
		x.phase = closed
		return true
	}
	x.c, x.phase, x.nextWrite = c, connecting, 0
	return true
}

func (x *side) unlisten(port uint16) {
	x.Unlisten(x.l)
	x.Unbind(port, false)
	x.l = nil
}

func (x *side) up(c *tcp.Conn) { x.c, x.phase, x.opened = c, open, x.now() }

// data is one step of an open connection.
func (x *side) data(within bool) (busy bool) {
	now := x.now()
	if x.free(now) {
		busy = true
	}
	if !x.failed && !x.finished && x.wrote < uint64(x.do.Write) && now >= x.nextWrite && x.write() {
		busy = true
		if x.do.WriteEvery > 0 {
			x.nextWrite = now + x.do.WriteEvery
		}
	}
	if !x.failed && !x.eof && now >= x.nextRead && x.receive() {
		busy = true
		if x.do.ReadEvery > 0 {
			x.nextRead = now + x.do.ReadEvery
		}
		if !x.stopped && x.do.StopFor > 0 && x.read >= uint64(x.do.StopAt) {
			x.stopped = true
			x.nextRead = now + x.do.StopFor
		}
	}
	return x.ending(within) || busy
}

// ending ends the connection if it is time to.
func (x *side) ending(within bool) bool {
	written := x.wrote == uint64(x.do.Write)
	over := x.eof || x.failed
	end, abort := false, false
	switch x.do.End {
	case Shutdown:
		if written && !x.finished && !x.failed {
			x.finished = true
			x.Shutdown(x.c)
			return true
		}
		end = over && (x.finished || x.failed)
	case AfterPeer:
		end = written && x.eof || x.failed
	case AtOnce:
		end = written || x.failed
	case Linger:
		end = written || x.failed
		if end && !within {
			x.c.SetLinger0(true)
		}
	case Early:
		end = x.read >= uint64(min(x.do.EndAt, x.peer.do.Write)) || over
	case Abort:
		abort = x.read+x.wrote >= uint64(min(x.do.EndAt, x.peer.do.Write+x.do.Write)) || over
	case Never:
		abort = x.now() >= x.opened+keptUp
	case numEndings:
	}
	switch {
	case within || !end && !abort:
		return false
	case abort:
		x.drop()
	default:
		x.letGo()
		x.Close(x.c)
		x.c, x.phase = nil, closed
	}
	return true
}

// letGo gives back the buffers that were filled and not sent.
func (x *side) letGo() {
	x.FreeBufs(x.rest, false)
	x.rest = nil
}

// drop aborts the connection.
func (x *side) drop() {
	x.letGo()
	x.Abort(x.c)
	x.c, x.phase = nil, closed
}

// end notes how a connection ended that has not come up.
func (x *side) end(e syscall.Errno) {
	x.failed, x.err, x.phase = true, e, closed
}

// error notes the connection's error.
func (x *side) error(e syscall.Errno) {
	if !x.failed {
		x.failed, x.err = true, e
	}
}

func (x *side) giveUp() bool {
	x.gaveUp = true
	switch x.phase {
	case listening:
		x.unlisten(uint16(firstPort + x.idx))
		x.phase = closed
	case connecting, open:
		x.drop()
	case waiting:
		x.phase = closed
	case closed:
		return false
	}
	return true
}

// wake is when the application wants to act, if nothing else happens before.
func (x *side) wake() (at time.Duration, ok bool) {
	now := x.now()
	add := func(t time.Duration) {
		if t > now && (!ok || t < at) {
			at, ok = t, true
		}
	}
	switch x.phase {
	case waiting:
		add(x.w.start + x.conn.Start)
		add(x.nextWrite)
	case open:
		if x.wrote < uint64(x.do.Write) && !x.failed {
			add(x.nextWrite)
		}
		if !x.eof && !x.failed {
			add(x.nextRead)
		}
		if x.do.End == Never {
			add(x.opened + keptUp)
		}
	case listening, connecting, closed:
	}
	for i := range x.kept {
		add(x.kept[i].until)
	}
	return at, ok
}

// verdict says what was wrong with the connection, once all is over.
func (x *side) verdict() {
	w := x.w
	if x.read > x.peer.wrote {
		w.fail("connection %d: %s read %d bytes of %d", x.idx, x.name, x.read, x.peer.wrote)
	}
	if x.eof && x.read != x.peer.wrote {
		w.fail("connection %d: the stream to %s ended after %d bytes of %d", x.idx, x.name, x.read, x.peer.wrote)
	}
	if !x.conn.Orderly() || w.Cut() {
		return
	}
	if x.failed || x.gaveUp {
		w.fail("connection %d: %s got the error %v, though it was ended in order", x.idx, x.name, x.err)
	} else if x.do.End != AtOnce && !x.eof {
		w.fail("connection %d: %s has not seen the end of the stream", x.idx, x.name)
	}
	if x.wrote != uint64(x.do.Write) {
		w.fail("connection %d: %s wrote %d of %d bytes", x.idx, x.name, x.wrote, x.do.Write)
	}
}
