package main

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// How long the end of an endless stream may take: the peer is to read what is on its way and to close. After a
// signal the whole program has a second.
const (
	drainTime   = 3 * time.Second
	drainSignal = 400 * time.Millisecond
)

// drain ends every stream and waits until the peer has closed too, which it does when it has everything. A file must
// get there, until --timeout or a signal; what an endless stream loses at its end is nobody's loss.
func (s *sender) drain() error {
	if s.file == nil {
		s.ended = time.Now()
		for i := range s.conns {
			if c := &s.conns[i]; c.fd >= 0 && !c.done {
				if err := s.finish(i); err != nil {
					s.close(i)
				}
			}
		}
	}
	limit := time.Duration(1<<63 - 1)
	if s.stop.Expired() {
		limit = drainTime
	} else if s.stop.Asked() {
		limit = drainSignal
	}
	scratch := make([]byte, 4096)
	for begun := time.Now(); s.open > 0 && time.Since(begun) < limit; {
		if s.file != nil && s.stop.Asked() {
			break
		}
		ready, err := s.wait()
		if err != nil {
			return err
		}
		for i := range ready {
			key := int(ready[i].Data)
			if err := s.discard(key, scratch); err != nil && s.file != nil {
				return err
			}
		}
	}
	if s.file != nil && s.open > 0 && s.stop.Expired() {
		return fmt.Errorf("--timeout %gs is over and %s has not taken everything and closed", s.o.timeout.Seconds(), s.peer)
	}
	return nil
}

// discard reads and forgets what the peer sends on a connection that is ended from here, and closes it at its end.
func (s *sender) discard(key int, scratch []byte) error {
	c := &s.conns[key]
	if c.fd < 0 {
		return nil
	}
	n, err := s.h.Read(c.fd, scratch)
	switch {
	case n > 0 || again(err):
		return nil
	case err == nil:
		s.close(key)
		return nil
	}
	bytes := c.bytes
	s.close(key)
	if errors.Is(err, unix.ECONNRESET) {
		return fmt.Errorf("%s reset the connection before it had all of %d bytes", s.peer, bytes)
	}
	return fmt.Errorf("end of the connection to %s: %w", s.peer, err)
}
