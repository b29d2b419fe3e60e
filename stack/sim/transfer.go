package sim

import (
	"syscall"
	"time"

	"ndpip/dpdk"
	"ndpip/stack"
)

// write sends the next piece of the stream, and says whether anything was taken.
func (x *side) write() bool {
	if x.do.ZeroWrite {
		return x.writeBufs()
	}
	n := min(1+x.w.rnd.IntN(x.do.WriteMax), x.do.Write-int(x.wrote))
	p := x.out[:n]
	if !x.do.Blank && (x.filledAt != x.wrote || x.filled < n) {
		fill(p, x.outKey, x.wrote)
		x.filledAt, x.filled = x.wrote, n
	}
	k, e := x.Send(x.c, p)
	switch {
	case e == syscall.EAGAIN && k == 0:
		return false
	case e != 0:
		x.error(e)
		return true
	case k < 1 || k > n:
		x.w.fail("connection %d: %s wrote %d bytes and was told %d", x.idx, x.name, n, k)
	}
	x.wrote += uint64(k)
	return true
}

// writeBufs is write from buffers of the stack.
func (x *side) writeBufs() bool {
	if len(x.rest) == 0 {
		x.prepare()
	}
	if len(x.rest) == 0 {
		return false
	}
	n, e := x.SendBufs(x.c, x.rest)
	if e == syscall.EAGAIN && n == 0 {
		x.unaltered()
		return false
	}
	if e != 0 {
		x.error(e)
		x.unaltered()
		return true
	}
	for i := range x.rest[:n] {
		x.wrote += uint64(x.rest[i].Len)
	}
	x.rest = x.rest[n:]
	x.unaltered()
	return true
}

// prepare fills some buffers.
func (x *side) prepare() {
	f := make([]dpdk.Frame, 1+x.w.rnd.IntN(8))
	f = f[:x.AllocBufs(f)]
	at := x.wrote
	most := int(min(uint32(x.c.SndMSS), uint32(x.do.WriteMax)))
	for i := range f {
		left := x.do.Write - int(at)
		if left == 0 {
			x.FreeBufs(f[i:], false)
			f = f[:i]
			break
		}
		if int(f[i].Len) < int(x.c.SndMSS) {
			x.w.fail("connection %d: a buffer of %d bytes for segments of %d", x.idx, f[i].Len, x.c.SndMSS)
		}
		f[i].Len = uint32(min(1+x.w.rnd.IntN(most), left, int(f[i].Len)))
		fill(f[i].Bytes(), x.outKey, at)
		at += uint64(f[i].Len)
	}
	x.rest = f
}

// unaltered checks that buffers which were refused are as they were.
func (x *side) unaltered() {
	at := x.wrote
	for i := range x.rest {
		if d := differs(x.rest[i].Bytes(), x.outKey, at); d >= 0 {
			x.w.fail("connection %d: %s: a refused buffer was changed at byte %d", x.idx, x.name, d)
		}
		at += uint64(x.rest[i].Len)
	}
}

// receive reads a piece, and says whether there was anything.
func (x *side) receive() bool {
	if x.do.ZeroRead {
		return x.receiveBufs()
	}
	n := 1 + x.w.rnd.IntN(min(x.do.ReadMax, len(x.buf)))
	x.reading = uint64(n)
	k, e := x.Recv(x.c, x.buf[:n])
	x.reading = 0
	if x.outcome(k, e) {
		return e != syscall.EAGAIN
	}
	x.took(x.buf[:k])
	return true
}

// outcome takes note of a read that gave no data.
func (x *side) outcome(n int, e syscall.Errno) bool {
	switch {
	case n > 0:
		return false
	case e == 0:
		x.eof = true
	case e != syscall.EAGAIN:
		x.error(e)
	}
	return true
}

// took checks bytes that were read.
func (x *side) took(b []byte) {
	if x.peer.do.Blank {
	} else if d := differs(b, x.inKey, x.read); d >= 0 {
		x.w.fail("connection %d: %s read a wrong byte at %d", x.idx, x.name, x.read+uint64(d))
	}
	x.read += uint64(len(b))
}

func (x *side) receiveBufs() bool {
	f := make([]dpdk.Frame, 1+x.w.rnd.IntN(16))
	x.reading = 1 << 20
	n, e := x.RecvBufs(x.c, f)
	x.reading = 0
	if x.outcome(n, e) {
		return e != syscall.EAGAIN
	}
	f = f[:n]
	for i := range f {
		x.took(f[i].Bytes())
	}
	if x.do.Keep > 0 {
		x.kept = append(x.kept, kept{f, x.now() + time.Duration(x.w.rnd.Int64N(int64(x.do.Keep)))})
	} else {
		x.FreeBufs(f, true)
	}
	return true
}

// free gives kept buffers back whose time has come.
func (x *side) free(now time.Duration) (any bool) {
	k := x.kept[:0]
	for _, f := range x.kept {
		if f.until > now {
			k = append(k, f)
			continue
		}
		x.FreeBufs(f.f, true)
		any = true
	}
	x.kept = k
	return any
}

// rcvBuf is the receive buffer that the side has asked for.
func (x *side) rcvBuf(cfg *stack.Config) int {
	if x.do.Opts.RcvBuf > 0 {
		return x.do.Opts.RcvBuf
	}
	return cfg.RcvBuf
}
