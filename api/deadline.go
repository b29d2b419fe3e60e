package api

import "time"

// SetReadDeadline sets the time at which calls that read from a socket, or accept, end with os.ErrDeadlineExceeded:
// those that wait now, and all later ones. The zero Time is none. It applies to non-blocking sockets as well.
//
// The error that it gives differs from EAGAIN on purpose: a socket may have a SO_RCVTIMEO too, which begins anew with
// each call and gives EAGAIN, as in POSIX.
func (h *Host) SetReadDeadline(fd int, t time.Time) error { return h.setDeadline(fd, t, reading) }

// SetWriteDeadline is SetReadDeadline for calls that write or connect.
func (h *Host) SetWriteDeadline(fd int, t time.Time) error { return h.setDeadline(fd, t, writing) }

func (h *Host) setDeadline(fd int, t time.Time, sides ...side) error {
	s, err := h.sock(fd)
	if err != nil {
		return err
	}
	for _, d := range sides {
		s.setLimit(d, t)
	}
	return nil
}

// setLimit sets a deadline and wakes who waits, to look at it.
func (s *sock) setLimit(d side, t time.Time) {
	l := int64(0)
	if !t.IsZero() {
		left := int64(time.Until(t))
		if l = now() + left; left <= 0 {
			l = 1 // long ago
		} else if l < 0 {
			l = 1<<63 - 1
		}
	}
	s.limit[d].Store(l)
	s.rouse(d)
}
