package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/api"
	"ndpip/cmd/internal/cli"
)

const (
	// patience is how long a wait for events lasts before the loop looks whether it is to end.
	patience = 50 // ms
	// piece is the size of the reads and writes.
	piece = 64 << 10
	// lingerTime is how long the end of a connection waits for the peer's acknowledgements.
	lingerTime = 30 * time.Second
)

// cat joins standard input and output to connections, one after the other.
type cat struct {
	h    *api.Host
	o    *options
	stop *cli.Stop
	in   *input
	out  io.Writer
}

func newCat(h *api.Host, o *options, stop *cli.Stop, in io.Reader, out io.Writer) *cat {
	return &cat{h: h, o: o, stop: stop, in: readAhead(in), out: out}
}

func (c *cat) run() error {
	release, err := c.o.PinThread()
	if err != nil {
		return err
	}
	defer release()
	if c.o.listen {
		return c.serve()
	}
	fd, err := c.connect()
	if err != nil || c.stop.Asked() {
		return err
	}
	return c.relay(fd)
}

// serve takes one connection, or with -k one after the other. With -k a connection that fails is no failure of the
// program.
func (c *cat) serve() error {
	l, err := c.o.Socket(c.h, unix.SOCK_STREAM)
	if err != nil {
		return err
	}
	defer c.h.Close(l)
	if err := c.h.Bind(l, c.o.addr); err != nil {
		return fmt.Errorf("bind to %s: %w", c.o.addr, err)
	}
	if err := c.h.Listen(l, 16); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	ready, err := c.newWaiter(l, unix.EPOLLIN)
	if err != nil {
		return err
	}
	defer ready.close()
	for !c.stop.Asked() {
		fd, peer, err := c.h.Accept(l)
		if again(err) || err == unix.ECONNABORTED {
			if err := ready.wait(); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		if !c.o.keep {
			return c.relay(fd)
		}
		if err := c.relay(fd); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %s: %v\n", program, peer, err)
		}
	}
	return nil
}

// connect connects within --connect-timeout. It returns early when the program is to end.
func (c *cat) connect() (fd int, err error) {
	fd, err = c.o.Socket(c.h, unix.SOCK_STREAM)
	if err != nil {
		return -1, err
	}
	fail := func(err error) (int, error) {
		c.h.Close(fd)
		return -1, fmt.Errorf("connect to %s: %w", c.o.addr, err)
	}
	if err := c.h.Connect(fd, c.o.addr); err != nil && err != unix.EINPROGRESS {
		return fail(err)
	}
	ready, err := c.newWaiter(fd, unix.EPOLLOUT)
	if err != nil {
		return fail(err)
	}
	defer ready.close()
	for deadline := time.Now().Add(c.o.connectTimeout); !c.stop.Asked(); {
		if err := ready.wait(); err != nil {
			return fail(err)
		}
		code, err := c.h.GetSockOptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && code != 0 {
			err = unix.Errno(code)
		}
		if err != nil {
			return fail(err)
		}
		if _, err := c.h.Getpeername(fd); err == nil {
			return fd, nil
		}
		if time.Now().After(deadline) {
			return fail(fmt.Errorf("no answer for %gs; see that the peer listens, or give a longer --connect-timeout", c.o.connectTimeout.Seconds()))
		}
	}
	return fd, nil
}

// relay copies both ways until both directions have ended, then closes. With -k the peer's end is enough.
func (c *cat) relay(fd int) error {
	ended := make(chan struct{}) // the peer's direction has ended, and with -k the connection with it
	sent := make(chan error, 1)
	go func() { sent <- c.send(fd, ended) }()
	err := c.receive(fd)
	if err != nil || c.o.keep || c.stop.Asked() {
		close(ended)
	}
	if sendErr := <-sent; err == nil {
		err = sendErr
	}
	if closeErr := c.close(fd); err == nil && closeErr != nil {
		err = fmt.Errorf("close: %w", closeErr)
	}
	return err
}

// close closes a connection and waits until the peer has acknowledged everything: the program may end right after it,
// and the stack with it. A signal ends the wait.
func (c *cat) close(fd int) error {
	_ = c.h.SetLinger(fd, true, int(lingerTime/time.Second))
	_ = c.h.SetNonblock(fd, false) // only then does the close wait
	closed := make(chan error, 1)
	go func() { closed <- c.h.Close(fd) }()
	select {
	case err := <-closed:
		return err
	case <-c.stop.Done():
		return nil
	}
}

// receive copies from the peer to the output until the peer's stream ends.
func (c *cat) receive(fd int) error {
	ready, err := c.newWaiter(fd, unix.EPOLLIN|unix.EPOLLRDHUP)
	if err != nil {
		return err
	}
	defer ready.close()
	buf := make([]byte, piece)
	for !c.stop.Asked() {
		n, err := c.h.Read(fd, buf)
		switch {
		case n > 0:
			if _, err := c.out.Write(buf[:n]); err != nil {
				return fmt.Errorf("standard output: %w", err)
			}
		case err == nil:
			return nil
		case !again(err):
			return err
		default:
			if err := ready.wait(); err != nil {
				return err
			}
		}
	}
	return nil
}

// send copies from the input to the peer until the input ends, and then ends the stream; or until ended is closed.
func (c *cat) send(fd int, ended <-chan struct{}) error {
	release, err := api.PinThread(-1)
	if err != nil {
		return err
	}
	defer release()
	ready, err := c.newWaiter(fd, unix.EPOLLOUT)
	if err != nil {
		return err
	}
	defer ready.close()
	for {
		select {
		case <-ended:
			return nil
		case <-c.stop.Done():
			return nil
		case b, ok := <-c.in.full:
			if !ok {
				if c.in.err != nil {
					return fmt.Errorf("standard input: %w", c.in.err)
				}
				return c.h.Shutdown(fd, unix.SHUT_WR)
			}
			err := c.write(fd, b, ready, ended)
			c.in.empty <- b[:cap(b)]
			if err != nil {
				return err
			}
		}
	}
}

// write writes all of b.
func (c *cat) write(fd int, b []byte, ready *waiter, ended <-chan struct{}) error {
	for len(b) > 0 && !c.stop.Asked() {
		n, err := c.h.Write(fd, b)
		b = b[max(n, 0):]
		switch {
		case n > 0:
			continue
		case err != nil && !again(err):
			return err
		}
		select {
		case <-ended:
			return nil
		default:
		}
		if err := ready.wait(); err != nil {
			return err
		}
	}
	return nil
}

// again says whether err only means that nothing could be done just now.
func again(err error) bool {
	return err == unix.EAGAIN || err == unix.EINTR || err == unix.ENOBUFS || err == unix.ENOMEM
}
