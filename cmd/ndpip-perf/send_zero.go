package main

// writeBufs is write with the zero-copy calls: it fills as many of the stack's buffers as a chunk has segments and
// hands them over. Buffers that the connection does not take are held and go first the next time: they hold the
// beginning of what next gives then.
func (s *sender) writeBufs(c *conn) error {
	b, err := s.next(c)
	if err != nil {
		return err
	}
	if c.nheld == 0 {
		if err := s.fill(c, b); err != nil {
			return err
		}
	}
	n, err := s.h.Send(c.fd, c.held[:c.nheld])
	if n <= 0 {
		return err
	}
	copy(c.held, c.held[n:c.nheld])
	c.nheld -= n
	taken := min(n*s.mss, len(b))
	s.took(c, b[:taken])
	if s.file != nil {
		c.buf = c.buf[taken:]
	}
	return nil
}

// fill copies b into fresh buffers, a segment into each, as far as there are buffers.
func (s *sender) fill(c *conn, b []byte) error {
	n, err := s.h.Alloc(c.fd, c.held[:min(len(c.held), (len(b)+s.mss-1)/s.mss)])
	if n <= 0 {
		return err
	}
	c.nheld = n
	for i := range c.held[:n] {
		piece := b[i*s.mss : min((i+1)*s.mss, len(b))]
		buf := &c.held[i]
		if err := buf.Resize(len(piece)); err != nil {
			return err
		}
		copy(buf.Bytes(), piece)
		if err := s.h.Prepare(c.fd, buf); err != nil {
			return err
		}
	}
	return nil
}
