package api

import (
	"sync"

	"golang.org/x/sys/unix"
)

// Readv reads into one buffer after the other, as one Read into all of them would: it waits until there is something,
// and then takes what is there. From a UDP socket it reads one datagram. The errors are Read's.
func (h *Host) Readv(fd int, bufs [][]byte) (int, error) {
	s, err := h.any(fd)
	if err != nil {
		return 0, err
	}
	s.users.begin(reading)
	defer s.users.end(reading)
	total := 0
	for _, b := range bufs {
		total += len(b)
	}
	if s.is(kindUDP) && total > 0 {
		g := gatherer.Get().(*gather)
		defer gatherer.Put(g)
		n, err := h.read(s, g.room(total))
		scatter(bufs, g.b[:n])
		return n, err
	}
	done := 0
	for _, b := range bufs {
		if len(b) == 0 {
			continue
		}
		if done == 0 {
			n, err := h.read(s, b)
			if err != nil || n < len(b) {
				return n, err
			}
			done = n
			continue
		}
		n, _ := h.tryRead(s, b)
		done += n
		if n < len(b) {
			return done, nil
		}
	}
	if total == 0 {
		return h.read(s, nil)
	}
	return done, nil
}

func scatter(bufs [][]byte, from []byte) {
	for _, b := range bufs {
		from = from[copy(b, from):]
	}
}

// gather is memory to put small pieces together in.
type gather struct{ b []byte }

var gatherer = sync.Pool{New: func() any { return new(gather) }}

// gatherUpTo is the length up to which a piece is copied once more, so that it shares a segment with its neighbours.
const (
	gatherUpTo = 4096
	gatherMax  = 64 << 10
)

// room is n bytes of the memory.
func (g *gather) room(n int) []byte {
	if cap(g.b) < n {
		g.b = make([]byte, n)
	}
	g.b = g.b[:n]
	return g.b
}

// Writev writes one buffer after the other, as one Write of all of them would: small ones share segments. On a UDP socket
// all of them are one datagram. The errors are Write's.
func (h *Host) Writev(fd int, bufs [][]byte) (int, error) {
	s, err := h.any(fd)
	if err != nil {
		return 0, err
	}
	s.users.begin(writing)
	defer s.users.end(writing)
	g := gatherer.Get().(*gather)
	defer gatherer.Put(g)
	g.b = g.b[:0]
	if s.is(kindUDP) {
		for _, b := range bufs {
			if g.b = append(g.b, b...); len(g.b) > 65535 {
				return 0, unix.EMSGSIZE
			}
		}
		return h.write(s, g.b)
	}
	done := 0
	for len(bufs) > 0 {
		piece := bufs[0]
		bufs = bufs[1:]
		if len(piece) <= gatherUpTo && len(bufs) > 0 {
			g.b = append(g.b[:0], piece...)
			for len(bufs) > 0 && len(bufs[0]) <= gatherUpTo && len(g.b)+len(bufs[0]) <= gatherMax {
				g.b = append(g.b, bufs[0]...)
				bufs = bufs[1:]
			}
			piece = g.b
		}
		n, err := h.write(s, piece)
		done += n
		if err != nil || n < len(piece) {
			return done, lessThan(done, err)
		}
	}
	if done == 0 {
		return h.write(s, nil)
	}
	return done, nil
}
