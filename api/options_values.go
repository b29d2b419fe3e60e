package api

import (
	"golang.org/x/sys/unix"

	"ndpip/stack"
)

// congestionLen is TCP_CA_NAME_MAX, the length of TCP_CONGESTION's value.
const congestionLen = 16

// SetCongestion sets TCP_CONGESTION: the name of a congestion control, and with it the lossy profile, or "none" for the
// lossless one. ENOENT: there is none of this name. EISCONN: it has to be set before connect or listen.
func (h *Host) SetCongestion(fd int, name string) error {
	s, err := h.sock(fd)
	if err != nil {
		return err
	}
	if s.is(kindUDP) {
		return unix.ENOPROTOOPT
	}
	return h.setCongestion(s, name)
}

func (h *Host) setCongestion(s *sock, name string) error {
	id, ok := stack.ControlNamed(name)
	if !ok && name != stack.ControlName(0) {
		return unix.ENOENT
	}
	if err := s.lock(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if err := s.early(); err != nil {
		return err
	}
	s.opts.Congestion = id
	return nil
}

// CongestionControls are the names that TCP_CONGESTION takes, the lossy profile's default first.
func CongestionControls() []string { return stack.ControlNames() }

// Congestion gives TCP_CONGESTION; "none" in the lossless profile.
func (h *Host) Congestion(fd int) (string, error) {
	s, err := h.locked(fd)
	if err != nil {
		return "", err
	}
	defer s.mu.Unlock()
	if s.is(kindUDP) {
		return "", unix.EOPNOTSUPP
	}
	return stack.ControlName(s.opts.Congestion), nil
}

// SetLinger sets SO_LINGER. On with a time of 0 s makes Close send a reset, with another time wait; see Close.
func (h *Host) SetLinger(fd int, on bool, seconds int) error {
	s, err := h.sock(fd)
	if err != nil {
		return err
	}
	return h.setLinger(s, on, seconds)
}

func (h *Host) setLinger(s *sock, on bool, seconds int) error {
	if err := s.lock(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	s.linger = unix.Linger{Linger: int32(min(max(seconds, 0), 1<<31-1))}
	if on {
		s.linger.Onoff = 1
	}
	if c := s.conn.Load(); c != nil {
		c.SetLinger0(s.linger0())
	}
	return nil
}

// Linger gives SO_LINGER.
func (h *Host) Linger(fd int) (unix.Linger, error) {
	s, err := h.locked(fd)
	if err != nil {
		return unix.Linger{}, err
	}
	defer s.mu.Unlock()
	return s.linger, nil
}

// SetSockOptTimeval sets SO_RCVTIMEO or SO_SNDTIMEO: how long each call may wait; zero is no limit.
//
// Errors: ENOPROTOOPT (another option), EDOM (more than 999,999 µs, or fewer than 0).
func (h *Host) SetSockOptTimeval(fd, level, name int, t unix.Timeval) error {
	s, d, err := h.timeoutOf(fd, level, name)
	if err != nil {
		return err
	}
	if t.Usec < 0 || t.Usec >= 1e6 {
		return unix.EDOM
	}
	ns := int64(0)
	switch {
	case t.Sec < 0:
		ns = 1 // as Linux has it: over at once
	case t.Sec < 1<<32:
		ns = t.Sec*1e9 + t.Usec*1e3
	}
	s.timeout[d].Store(ns)
	return nil
}

// GetSockOptTimeval gets SO_RCVTIMEO or SO_SNDTIMEO.
func (h *Host) GetSockOptTimeval(fd, level, name int) (unix.Timeval, error) {
	s, d, err := h.timeoutOf(fd, level, name)
	if err != nil {
		return unix.Timeval{}, err
	}
	return unix.NsecToTimeval(s.timeout[d].Load() / 1e3 * 1e3), nil
}

func (h *Host) timeoutOf(fd, level, name int) (*sock, side, error) {
	s, err := h.sock(fd)
	if err != nil {
		return nil, 0, err
	}
	if level == unix.SOL_SOCKET {
		switch name {
		case unix.SO_RCVTIMEO:
			return s, reading, nil
		case unix.SO_SNDTIMEO:
			return s, writing, nil
		}
	}
	return nil, 0, unix.ENOPROTOOPT
}
