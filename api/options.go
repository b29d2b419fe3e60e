package api

import (
	"encoding/binary"
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
)

const (
	minBuf = 2048
	maxBuf = 1 << 30
)

// SetSockOptInt sets an option whose value is a number.
func (h *Host) SetSockOptInt(fd, level, name, value int) error {
	s, err := h.sock(fd)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	on := value != 0
	before := func() error { // options that must be set before the connection
		if s.is(kindConn) || s.is(kindListen) {
			return unix.EISCONN
		}
		return nil
	}
	switch level {
	case unix.SOL_SOCKET:
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
			if err := before(); err != nil {
				return err
			}
			s.opts.WinScale = 1 + value
		case SO_NDPIP_MAX_TX_SEG, SO_NDPIP_TCP_MAX_RX_SEG:
			if value < 1 || value > 65535 {
				return unix.EINVAL
			}
			if err := before(); err != nil {
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
	case unix.IPPROTO_TCP:
		if s.is(kindUDP) {
			return unix.ENOPROTOOPT
		}
		switch name {
		case unix.TCP_NODELAY: // there is no delay to turn off
			s.noDelay = on
		case unix.TCP_MAXSEG:
			if value < 48 || value > 32767 {
				return unix.EINVAL
			}
			if err := before(); err != nil {
				return err
			}
			s.opts.MaxRxSeg, s.opts.MaxTxSeg = value, value
		case unix.TCP_USER_TIMEOUT:
			if value < 0 {
				return unix.EINVAL
			}
			s.opts.UserTimeout = int64(value) * int64(time.Millisecond)
			if s.is(kindConn) {
				h.st.SetUserTimeout(s.conn, s.opts.UserTimeout)
			}
		case unix.TCP_KEEPIDLE:
			if value < 1 || value > 32767 {
				return unix.EINVAL
			}
			s.keepIdle = int64(value) * int64(time.Second)
			h.applyKeepAlive(s)
		default:
			return unix.ENOPROTOOPT
		}
	default:
		return unix.ENOPROTOOPT
	}
	return nil
}

// applyKeepAlive brings SO_KEEPALIVE and TCP_KEEPIDLE (2 hours if not set, RFC 9293 3.8.4) to the connection.
func (h *Host) applyKeepAlive(s *sock) {
	idle := s.keepIdle
	if idle == 0 {
		idle = int64(2 * time.Hour)
	}
	if !s.keepAlive {
		idle = 0
	}
	s.opts.KeepIdle = idle
	if s.is(kindConn) {
		h.st.SetKeepAlive(s.conn, idle)
	}
}

// GetSockOptInt gets an option whose value is a number.
func (h *Host) GetSockOptInt(fd, level, name int) (int, error) {
	s, err := h.sock(fd)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	flag := func(on bool) (int, error) {
		if on {
			return 1, nil
		}
		return 0, nil
	}
	or := func(v, d int) (int, error) {
		if v > 0 {
			return v, nil
		}
		return d, nil
	}
	cfg := h.st.Config()
	switch level {
	case unix.SOL_SOCKET:
		switch name {
		case unix.SO_REUSEADDR:
			return flag(s.opts.ReuseAddr)
		case unix.SO_RCVBUF:
			return or(s.opts.RcvBuf, cfg.RcvBuf)
		case unix.SO_SNDBUF:
			return or(s.opts.SndBuf, cfg.SndBuf)
		case unix.SO_KEEPALIVE:
			return flag(s.keepAlive)
		case unix.SO_ERROR:
			return h.takeError(s), nil
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
			return flag(s.is(kindListen))
		case SO_NDPIP_TCP_WIN_SCALE:
			if s.is(kindConn) {
				return int(s.conn.RcvShift), nil
			}
			return max(s.opts.WinScale-1, 0), nil
		case SO_NDPIP_BURST:
			return cfg.Burst, nil
		case SO_NDPIP_MAX_TX_SEG:
			if s.is(kindConn) {
				return int(s.conn.SndMSS), nil
			}
			return or(s.opts.MaxTxSeg, cfg.MSS)
		case SO_NDPIP_TCP_MAX_RX_SEG:
			return or(s.opts.MaxRxSeg, cfg.MSS)
		}
	case unix.IPPROTO_TCP:
		if s.is(kindUDP) {
			break
		}
		switch name {
		case unix.TCP_NODELAY:
			return flag(true)
		case unix.TCP_MAXSEG:
			if s.is(kindConn) {
				return int(s.conn.SndMSS), nil
			}
			return or(s.opts.MaxTxSeg, 536)
		case unix.TCP_USER_TIMEOUT:
			return int(s.opts.UserTimeout / int64(time.Millisecond)), nil
		case unix.TCP_KEEPIDLE:
			if s.keepIdle == 0 {
				return 7200, nil
			}
			return int(s.keepIdle / int64(time.Second)), nil
		}
	}
	return 0, unix.ENOPROTOOPT
}

// takeError is SO_ERROR: the pending error, which is cleared.
func (h *Host) takeError(s *sock) int {
	switch {
	case s.is(kindConn):
		if e := stack.Outcome(s.conn); e != 0 && !s.errGiven.Swap(true) {
			return int(e)
		}
	case s.udp != nil:
		return int(s.udp.Err.Swap(0))
	}
	return 0
}

// SetSockOpt sets an option from its C representation: an int, the types that the option has, or struct linger.
// EINVAL: the value has not the length that the option needs.
func (h *Host) SetSockOpt(fd, level, name int, value []byte) error {
	if level == unix.SOL_SOCKET && name == unix.SO_LINGER {
		if len(value) < 8 {
			return unix.EINVAL
		}
		return h.SetLinger(fd, int32(binary.NativeEndian.Uint32(value)) != 0, int(int32(binary.NativeEndian.Uint32(value[4:]))))
	}
	if _, err := h.sock(fd); err != nil {
		return err
	}
	v, err := number(value)
	if err != nil {
		return err
	}
	return h.SetSockOptInt(fd, level, name, v)
}

func number(value []byte) (int, error) {
	switch len(value) {
	case 1:
		return int(value[0]), nil
	case 2:
		return int(binary.NativeEndian.Uint16(value)), nil
	case 0, 3:
		return 0, unix.EINVAL
	}
	return int(int32(binary.NativeEndian.Uint32(value))), nil
}

// GetSockOpt gets an option in its C representation and returns its length.
func (h *Host) GetSockOpt(fd, level, name int, value []byte) (int, error) {
	if level == unix.SOL_SOCKET && name == unix.SO_LINGER {
		s, err := h.sock(fd)
		if err != nil {
			return 0, err
		}
		var b [8]byte
		s.mu.Lock()
		binary.NativeEndian.PutUint32(b[:], uint32(s.linger.Onoff))
		binary.NativeEndian.PutUint32(b[4:], uint32(s.linger.Linger))
		s.mu.Unlock()
		return copy(value, b[:]), nil
	}
	v, err := h.GetSockOptInt(fd, level, name)
	if err != nil {
		return 0, err
	}
	switch len(value) {
	case 0:
		return 0, unix.EINVAL
	case 1:
		value[0] = byte(v)
		return 1, nil
	case 2, 3:
		binary.NativeEndian.PutUint16(value, uint16(v))
		return 2, nil
	}
	binary.NativeEndian.PutUint32(value, uint32(v))
	return 4, nil
}

// SetLinger sets SO_LINGER. On with a time of 0 s makes Close send a reset; any other time is accepted, and Close does
// not wait.
func (h *Host) SetLinger(fd int, on bool, seconds int) error {
	s, err := h.sock(fd)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.linger = unix.Linger{Linger: int32(seconds)}
	if on {
		s.linger.Onoff = 1
	}
	if s.is(kindConn) {
		s.conn.SetLinger0(s.linger0())
	}
	return nil
}
