package api

import (
	"time"

	"golang.org/x/sys/unix"

	"ndpip/stack"
)

// Socket options of the original, at level SOL_SOCKET.
const (
	SO_NDPIP_TCP_WIN_SCALE  = 100 // window scale to offer; before connect or listen
	SO_NDPIP_GRANTS         = 101 // not supported: ENOPROTOOPT
	SO_NDPIP_BURST          = 102 // get: frames per turn
	SO_NDPIP_MAX_TX_SEG     = 103 // largest segment sent
	SO_NDPIP_TCP_MAX_RX_SEG = 104 // largest segment asked for
	// SO_NDPIP_PROFILE is this project's own: 0 is the lossless profile, 1 the lossy one; before connect or listen.
	SO_NDPIP_PROFILE = 120
)

const (
	minBuf = 2048
	maxBuf = 1 << 30
	// minSeg is the least TCP_MAXSEG, and maxSeg the largest, as in Linux but for the least (88 there).
	minSeg = 48
	maxSeg = 32767
)

// keepTimes are TCP_KEEPIDLE and TCP_KEEPINTVL in seconds and TCP_KEEPCNT; 0: the defaults.
type keepTimes struct{ idle, interval, count int }

// The defaults of RFC 9293 3.8.4 and of Linux.
const (
	keepIdle     = 7200
	keepInterval = 75
	keepCount    = 9
	maxKeepTime  = 32767
	maxKeepCount = 127
)

func or(v, d int) int {
	if v > 0 {
		return v
	}
	return d
}

func flag(on bool) int {
	if on {
		return 1
	}
	return 0
}

// SetSockOptInt sets an option whose value is a number; docs/api.md has the table of all options.
//
// Errors: ENOPROTOOPT (there is no such option at this level), EINVAL (the value), EISCONN (the option has to be set
// before connect or listen).
func (h *Host) SetSockOptInt(fd, level, name, value int) error {
	s, err := h.sock(fd)
	if err != nil {
		return err
	}
	return h.setOption(s, level, name, value)
}

func (h *Host) setOption(s *sock, level, name, value int) error {
	err := s.lock()
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	err = unix.ENOPROTOOPT
	switch {
	case level == unix.SOL_SOCKET:
		err = h.setSocketOpt(s, name, value)
	case level == unix.IPPROTO_TCP && !s.is(kindUDP):
		err = h.setTCPOpt(s, name, value)
	case level == unix.IPPROTO_IP:
		err = h.setIPOpt(s, name, value)
	}
	if l := s.lis.Load(); l != nil && err == nil {
		h.st.SetOptions(l, s.opts)
	}
	return err
}

// early is an error once the socket is connected or listens: the option has been used then.
func (s *sock) early() error {
	if s.is(kindConn) || s.is(kindListen) {
		return unix.EISCONN
	}
	return nil
}

func (h *Host) setSocketOpt(s *sock, name, value int) error {
	on := value != 0
	switch name {
	case unix.SO_REUSEADDR:
		s.opts.ReuseAddr = on
	case unix.SO_RCVBUF:
		s.opts.RcvBuf = min(max(value, minBuf), maxBuf)
	case unix.SO_SNDBUF:
		s.opts.SndBuf = min(max(value, minBuf), maxBuf)
	case unix.SO_KEEPALIVE:
		s.keepAlive = on
		h.applyKeepAlive(s)
	case SO_NDPIP_TCP_WIN_SCALE:
		if value < 0 || value > 14 {
			return unix.EINVAL
		}
		if err := s.early(); err != nil {
			return err
		}
		s.opts.WinScale = 1 + value
	case SO_NDPIP_PROFILE:
		if value < 0 || value > 1 || s.is(kindUDP) && value != 0 {
			return unix.EINVAL
		}
		if err := s.early(); err != nil {
			return err
		}
		switch {
		case value == 0:
			s.opts.Congestion = 0
		case s.opts.Congestion == 0:
			s.opts.Congestion = stack.DefaultControl
		}
	case SO_NDPIP_MAX_TX_SEG, SO_NDPIP_TCP_MAX_RX_SEG:
		if value < 1 || value > 65535 {
			return unix.EINVAL
		}
		if err := s.early(); err != nil {
			return err
		}
		if name == SO_NDPIP_MAX_TX_SEG {
			s.opts.MaxTxSeg = value
		} else {
			s.opts.MaxRxSeg = value
		}
	default:
		return unix.ENOPROTOOPT
	}
	return nil
}

func (h *Host) setTCPOpt(s *sock, name, value int) error {
	between := func(lo, hi int) error {
		if value < lo || value > hi {
			return unix.EINVAL
		}
		return nil
	}
	var err error
	switch name {
	case unix.TCP_NODELAY: // there is no delay to turn off
	case unix.TCP_MAXSEG:
		if err = between(minSeg, maxSeg); err == nil {
			if err = s.early(); err == nil {
				s.opts.MaxRxSeg, s.opts.MaxTxSeg = value, value
			}
		}
	case unix.TCP_USER_TIMEOUT:
		if err = between(0, 1<<31-1); err == nil {
			s.opts.UserTimeout = int64(value) * int64(time.Millisecond)
			if c := s.conn.Load(); c != nil {
				h.st.SetUserTimeout(c, s.opts.UserTimeout)
			}
		}
	case unix.TCP_KEEPIDLE:
		if err = between(1, maxKeepTime); err == nil {
			s.keep.idle = value
		}
	case unix.TCP_KEEPINTVL:
		if err = between(1, maxKeepTime); err == nil {
			s.keep.interval = value
		}
	case unix.TCP_KEEPCNT:
		if err = between(1, maxKeepCount); err == nil {
			s.keep.count = value
		}
	default:
		return unix.ENOPROTOOPT
	}
	if err == nil && (name == unix.TCP_KEEPIDLE || name == unix.TCP_KEEPINTVL || name == unix.TCP_KEEPCNT) {
		h.applyKeepAlive(s)
	}
	return err
}

// applyKeepAlive brings SO_KEEPALIVE and its times to the connection, and to those that will be accepted.
func (h *Host) applyKeepAlive(s *sock) {
	second := int64(time.Second)
	s.opts.KeepIdle = 0
	if s.keepAlive {
		s.opts.KeepIdle = int64(or(s.keep.idle, keepIdle)) * second
	}
	s.opts.KeepGap = int64(or(s.keep.interval, keepInterval)) * second
	s.opts.KeepMax = uint8(or(s.keep.count, keepCount))
	if c := s.conn.Load(); c != nil {
		h.st.SetKeepAlive(c, s.opts.KeepIdle, s.opts.KeepGap, s.opts.KeepMax)
	}
}

// GetSockOptInt gets an option whose value is a number. Errors: ENOPROTOOPT (there is no such option), EOPNOTSUPP (there
// is no such level, or not of this kind of socket), as on Linux.
func (h *Host) GetSockOptInt(fd, level, name int) (int, error) {
	s, err := h.locked(fd)
	if err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	switch level {
	case unix.SOL_SOCKET:
		return h.socketOpt(s, name)
	case unix.IPPROTO_TCP:
		if !s.is(kindUDP) {
			return h.tcpOpt(s, name)
		}
	case unix.IPPROTO_IP:
		return ipOpt(s.opts.Service, name)
	}
	return 0, unix.EOPNOTSUPP
}

func (h *Host) socketOpt(s *sock, name int) (int, error) {
	cfg := h.st.Config()
	c := s.conn.Load()
	switch name {
	case unix.SO_REUSEADDR:
		return flag(s.opts.ReuseAddr), nil
	case unix.SO_RCVBUF:
		return or(s.opts.RcvBuf, cfg.RcvBuf), nil
	case unix.SO_SNDBUF:
		return or(s.opts.SndBuf, cfg.SndBuf), nil
	case unix.SO_KEEPALIVE:
		return flag(s.keepAlive), nil
	case unix.SO_ERROR:
		return int(s.takeError()), nil
	case unix.SO_TYPE:
		if s.is(kindUDP) {
			return unix.SOCK_DGRAM, nil
		}
		return unix.SOCK_STREAM, nil
	case unix.SO_DOMAIN:
		return unix.AF_INET, nil
	case unix.SO_PROTOCOL:
		if s.is(kindUDP) {
			return unix.IPPROTO_UDP, nil
		}
		return unix.IPPROTO_TCP, nil
	case unix.SO_ACCEPTCONN:
		return flag(s.is(kindListen)), nil
	case SO_NDPIP_TCP_WIN_SCALE:
		if c != nil {
			return int(c.RcvShift), nil
		}
		return max(s.opts.WinScale-1, 0), nil
	case SO_NDPIP_BURST:
		return cfg.Burst, nil
	case SO_NDPIP_MAX_TX_SEG:
		switch {
		case c != nil:
			return int(c.SndMSS), nil
		case s.is(kindUDP):
			return h.st.MaxDatagram(), nil
		}
		return or(s.opts.MaxTxSeg, cfg.MSS), nil
	case SO_NDPIP_PROFILE:
		return flag(s.opts.Congestion != 0), nil
	case SO_NDPIP_TCP_MAX_RX_SEG:
		return or(s.opts.MaxRxSeg, cfg.MSS), nil
	}
	return 0, unix.ENOPROTOOPT
}

func (h *Host) tcpOpt(s *sock, name int) (int, error) {
	switch name {
	case unix.TCP_NODELAY:
		return 1, nil
	case unix.TCP_MAXSEG:
		if c := s.conn.Load(); c != nil {
			return int(c.SndMSS), nil
		}
		return or(s.opts.MaxTxSeg, 536), nil
	case unix.TCP_USER_TIMEOUT:
		return int(s.opts.UserTimeout / int64(time.Millisecond)), nil
	case unix.TCP_KEEPIDLE:
		return or(s.keep.idle, keepIdle), nil
	case unix.TCP_KEEPINTVL:
		return or(s.keep.interval, keepInterval), nil
	case unix.TCP_KEEPCNT:
		return or(s.keep.count, keepCount), nil
	}
	return 0, unix.ENOPROTOOPT
}
