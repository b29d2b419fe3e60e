package api

import (
	"io"
	"net/netip"

	"golang.org/x/sys/unix"
)

// copyBatch is how many buffers WriteTo takes from the stack at once.
const copyBatch = 32

// ReadFrom sends what r gives until its end: r reads into the port's buffers, and each is sent when it has been read, so
// nothing waits for more.
func (c *TCPConn) ReadFrom(r io.Reader) (n int64, err error) {
	var b [1]Buf
	defer func() {
		if !b[0].IsZero() {
			_ = c.h.Free(0, b[:])
		}
	}()
	for {
		if b[0].IsZero() {
			if err := c.buffer(b[:]); err != nil {
				return n, c.fail("write", err)
			}
		}
		k, err := r.Read(b[0].Bytes())
		if k > 0 {
			if err := b[0].Resize(k); err != nil {
				return n, c.fail("write", err)
			}
			if err := c.sendOne(b[:]); err != nil {
				return n, c.fail("write", err)
			}
			n += int64(k)
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// buffer waits for an empty buffer.
func (c *TCPConn) buffer(b []Buf) error {
	var a await
	for {
		if err := a.over(c.h, c.s, writing); err != nil {
			return err
		}
		_, err := c.h.alloc(c.s, b)
		switch {
		case err == nil:
			return nil
		case err == unix.ENOTCONN && c.s.closed.Load():
			return unix.EBADF
		case err != unix.ENOBUFS:
			return err
		}
		a.relax(c.h)
	}
}

func (c *TCPConn) sendOne(b []Buf) error {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	_, err := c.h.send(c.s, b, netip.AddrPort{})
	return err
}

// WriteTo gives w what the peer sends until the end of the stream, right from the port's buffers.
func (c *TCPConn) WriteTo(w io.Writer) (n int64, err error) {
	var bufs [copyBatch]Buf
	for {
		k, err := c.h.recv(c.s, bufs[:])
		if err != nil {
			return n, c.fail("read", err)
		}
		if k == 0 {
			return n, nil
		}
		for i := range bufs[:k] {
			m, err := w.Write(bufs[i].Bytes())
			n += int64(m)
			if err == nil && m < bufs[i].Len() {
				err = io.ErrShortWrite
			}
			if err != nil {
				_ = c.h.Free(0, bufs[:k])
				return n, err
			}
		}
		_ = c.h.Free(0, bufs[:k])
	}
}
