package main

import (
	"io"

	"golang.org/x/sys/unix"

	"ndpip/api"
)

// waiter waits for one event of one descriptor. Each goroutine has its own.
type waiter struct {
	h      *api.Host
	ep     int
	events [1]api.EpollEvent
}

func (c *cat) newWaiter(fd int, events uint32) (*waiter, error) {
	ep, err := c.h.EpollCreate()
	if err != nil {
		return nil, err
	}
	w := &waiter{h: c.h, ep: ep}
	if err := c.h.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &api.EpollEvent{Events: events}); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// wait returns when the event is there, or after patience.
func (w *waiter) wait() error {
	_, err := w.h.EpollWait(w.ep, w.events[:], patience)
	if again(err) {
		err = nil
	}
	return err
}

func (w *waiter) close() { w.h.Close(w.ep) }

// input reads ahead from a reader that blocks, so that the goroutine which sends can also be told to stop.
type input struct {
	full  chan []byte // what was read; closed at the end
	empty chan []byte // buffers to read into
	err   error       // why the reading ended, nil for the end of the input; valid once full is closed
}

func readAhead(r io.Reader) *input {
	in := &input{full: make(chan []byte), empty: make(chan []byte, 2)}
	in.empty <- make([]byte, piece)
	in.empty <- make([]byte, piece)
	go func() {
		defer close(in.full)
		for b := range in.empty {
			n, err := r.Read(b)
			if n > 0 {
				in.full <- b[:n]
			} else {
				in.empty <- b
			}
			if err == io.EOF {
				return
			}
			if err != nil {
				in.err = err
				return
			}
		}
	}()
	return in
}
