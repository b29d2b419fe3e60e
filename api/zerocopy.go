package api

import (
	"golang.org/x/sys/unix"

	"ndpip/dpdk"
	"ndpip/tcp"
)

// Buf is a packet buffer that the application owns: from Alloc until Send takes it or Free gives it back, or from Recv
// until Free. The zero Buf is none; calls that take a Buf over leave the zero Buf behind.
type Buf struct {
	f        dpdk.Frame // the payload
	base     uintptr    // where the payload's room begins
	end      uintptr    // where it ends
	received bool
}

// Bytes is the payload.
func (b *Buf) Bytes() []byte {
	if b.f.Handle == 0 {
		return nil
	}
	return b.f.Bytes()
}

// Len is the payload's length in bytes.
func (b *Buf) Len() int { return int(b.f.Len) }

// IsZero says whether this is no buffer.
func (b *Buf) IsZero() bool { return b.f.Handle == 0 }

// Resize sets the payload's length. EINVAL: the buffer has not that much room.
func (b *Buf) Resize(n int) error {
	if b.f.Handle == 0 || n < 0 || b.f.Addr+uintptr(n) > b.end {
		return unix.EINVAL
	}
	b.f.Len = uint32(n)
	return nil
}

// Offset moves the payload's start: a negative n drops bytes in front, a positive one adds them. EINVAL: there are not
// that many.
func (b *Buf) Offset(n int) error {
	switch {
	case b.f.Handle == 0 || n < 0 && -n > int(b.f.Len):
		return unix.EINVAL
	case n > 0 && b.f.Addr-uintptr(n) < b.base:
		return unix.EINVAL
	}
	b.f.Addr -= uintptr(n)
	b.f.Len = uint32(int(b.f.Len) + n)
	return nil
}

const bufBatch = 64

// Alloc gives empty buffers for sending on a socket, as many as there are, at most len(bufs). Each has the length of
// the largest segment that the socket sends. ENOBUFS: there is none.
func (h *Host) Alloc(fd int, bufs []Buf) (int, error) {
	s, err := h.conn(fd)
	if err != nil {
		return 0, err
	}
	n := 0
	var f [bufBatch]dpdk.Frame
	for n < len(bufs) {
		k := h.st.AllocBufs(f[:min(len(f), len(bufs)-n)])
		if k == 0 {
			break
		}
		for i := range f[:k] {
			b := Buf{f: f[i], base: f[i].Addr, end: f[i].Addr + uintptr(f[i].Len)}
			if s.is(kindConn) {
				b.f.Len = min(b.f.Len, uint32(s.conn.SndMSS))
			} else {
				b.f.Len = min(b.f.Len, uint32(h.st.MaxDatagram()))
			}
			bufs[n] = b
			n++
		}
	}
	if n == 0 && len(bufs) > 0 {
		h.poll()
		return 0, unix.ENOBUFS
	}
	return n, nil
}

// Prepare checks that a buffer can be sent on a socket. The headers are written by Send, which alone knows the
// sequence number. EINVAL: it is not a buffer from Alloc. EMSGSIZE: it is longer than a segment may be.
func (h *Host) Prepare(fd int, b *Buf) error {
	s, err := h.conn(fd)
	if err != nil {
		return err
	}
	switch {
	case b.f.Handle == 0 || b.received:
		return unix.EINVAL
	case s.is(kindConn) && b.f.Len > uint32(s.conn.SndMSS):
		return unix.EMSGSIZE
	}
	return nil
}

// Send sends each buffer as one segment and takes it over, in order, as many as the peer's window takes. What it has
// not taken stays the caller's, unaltered. EAGAIN: the window is full. EINVAL: not a buffer from Alloc.
func (h *Host) Send(fd int, bufs []Buf) (int, error) {
	s, err := h.conn(fd)
	if err != nil {
		return 0, err
	}
	if !s.is(kindConn) {
		return 0, unix.EOPNOTSUPP
	}
	n := 0
	var f [bufBatch]dpdk.Frame
	for n < len(bufs) {
		k := 0
		for ; k < len(f) && n+k < len(bufs); k++ {
			b := &bufs[n+k]
			if b.f.Handle == 0 || b.received {
				break
			}
			f[k] = b.f
		}
		if k == 0 {
			if n > 0 {
				return n, nil
			}
			return 0, unix.EINVAL
		}
		took, e := h.st.SendBufs(s.conn, f[:k])
		clear(bufs[n : n+took])
		n += took
		switch {
		case took == k:
		case n > 0:
			return n, nil
		case e == unix.EAGAIN && !s.nonblock.Load():
			if err := h.wait(s, tcp.PendWrite, func() bool { return h.writable(s) }); err != nil {
				return 0, err
			}
		default:
			h.poll()
			return 0, e
		}
	}
	return n, nil
}

// Recv takes received buffers over from a socket, at most len(bufs): each is what one segment brought. At the end of
// the stream it returns 0. EAGAIN: there is nothing yet.
func (h *Host) Recv(fd int, bufs []Buf) (int, error) {
	s, err := h.conn(fd)
	if err != nil || len(bufs) == 0 {
		return 0, err
	}
	for {
		n, e := h.recvBufs(s, bufs)
		switch {
		case n > 0 || e == 0:
			return n, nil
		case e != unix.EAGAIN:
			return 0, s.endOfRead(e)
		case s.nonblock.Load():
			h.poll()
			return 0, e
		}
		if err := h.wait(s, tcp.PendRead, func() bool { return h.readable(s) }); err != nil {
			return 0, err
		}
	}
}

func (h *Host) recvBufs(s *sock, bufs []Buf) (n int, e unix.Errno) {
	var f [bufBatch]dpdk.Frame
	k := min(len(f), len(bufs))
	if s.is(kindConn) {
		n, e = h.st.RecvBufs(s.conn, f[:k])
	} else {
		if err := h.autobind(s); err != nil {
			return 0, unix.ENOBUFS
		}
		n, e = h.st.RecvUDPBufs(s.udp, f[:k])
	}
	for i := range f[:n] {
		bufs[i] = Buf{f: f[i], base: f[i].Addr, end: f[i].Addr + uintptr(f[i].Len), received: true}
	}
	return n, e
}

func (h *Host) readable(s *sock) bool {
	if s.is(kindConn) {
		return h.st.Readable(s.conn)
	}
	return s.udp != nil && (s.udp.Readable() || s.udp.Err.Load() != 0)
}

// Free gives buffers back. It works after the socket was closed, too. EINVAL: one of them is none; the others are given
// back all the same.
func (h *Host) Free(_ int, bufs []Buf) error {
	var err error
	for i := range bufs {
		b := &bufs[i]
		if b.f.Handle == 0 {
			err = unix.EINVAL
			continue
		}
		h.st.FreeBufs([]dpdk.Frame{b.f}, b.received)
		*b = Buf{}
	}
	return err
}
