package api

import (
	"encoding/binary"
	"strings"
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

// sizeOf is the length of an option in C: that of an int, or what the original gives it.
func sizeOf(level, name int) int {
	if level == unix.SOL_SOCKET {
		switch name {
		case SO_NDPIP_TCP_WIN_SCALE:
			return 1 // uint8_t
		case SO_NDPIP_BURST:
			return 2 // uint16_t
		case unix.SO_LINGER:
			return unix.SizeofLinger
		case unix.SO_RCVTIMEO, unix.SO_SNDTIMEO:
			return 16 // struct timeval
		}
	}
	return 4
}

// SetSockOpt sets an option from its C representation: an int, or the type that the option has (uint8_t for
// SO_NDPIP_TCP_WIN_SCALE, struct linger, struct timeval). EINVAL: the value is shorter than that.
func (h *Host) SetSockOpt(fd, level, name int, value []byte) error {
	s, err := h.sock(fd)
	if err != nil {
		return err
	}
	switch {
	case level == unix.IPPROTO_TCP && s.is(kindUDP):
		return unix.ENOPROTOOPT
	case level == unix.IPPROTO_TCP && name == unix.TCP_CONGESTION:
		text, _, _ := strings.Cut(string(value), "\x00")
		return h.setCongestion(s, text)
	case len(value) < sizeOf(level, name):
		return unix.EINVAL
	}
	if level == unix.SOL_SOCKET {
		switch name {
		case unix.SO_LINGER:
			return h.SetLinger(fd, binary.NativeEndian.Uint32(value) != 0, int(int32(binary.NativeEndian.Uint32(value[4:]))))
		case unix.SO_RCVTIMEO, unix.SO_SNDTIMEO:
			return h.SetSockOptTimeval(fd, level, name, unix.Timeval{
				Sec: int64(binary.NativeEndian.Uint64(value)), Usec: int64(binary.NativeEndian.Uint64(value[8:])),
			})
		}
	}
	return h.SetSockOptInt(fd, level, name, number(value))
}

func number(value []byte) int {
	switch len(value) {
	case 1:
		return int(value[0])
	case 2, 3:
		return int(binary.NativeEndian.Uint16(value))
	}
	return int(int32(binary.NativeEndian.Uint32(value)))
}

// GetSockOpt gets an option in its C representation and returns its length. What does not fit value is cut off.
func (h *Host) GetSockOpt(fd, level, name int, value []byte) (int, error) {
	var b [unix.SizeofTCPInfo]byte
	put := binary.NativeEndian.PutUint32
	switch {
	case level == unix.SOL_SOCKET && name == unix.SO_LINGER:
		l, err := h.Linger(fd)
		if err != nil {
			return 0, err
		}
		put(b[:], uint32(l.Onoff))
		put(b[4:], uint32(l.Linger))
	case level == unix.SOL_SOCKET && (name == unix.SO_RCVTIMEO || name == unix.SO_SNDTIMEO):
		t, err := h.GetSockOptTimeval(fd, level, name)
		if err != nil {
			return 0, err
		}
		binary.NativeEndian.PutUint64(b[:], uint64(t.Sec))
		binary.NativeEndian.PutUint64(b[8:], uint64(t.Usec))
	case level == unix.IPPROTO_TCP && name == unix.TCP_INFO:
		info, err := h.GetTCPInfo(fd)
		if err != nil {
			return 0, err
		}
		return copy(value, infoBytes(info)), nil
	case level == unix.IPPROTO_TCP && name == unix.TCP_CONGESTION:
		text, err := h.Congestion(fd)
		if err != nil {
			return 0, err
		}
		var name [congestionLen]byte
		copy(name[:], text)
		return copy(value, name[:]), nil
	default:
		v, err := h.GetSockOptInt(fd, level, name)
		if err != nil {
			return 0, err
		}
		put(b[:], uint32(v))
	}
	return copy(value, b[:sizeOf(level, name)]), nil
}

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

// linuxStates are Linux's numbers of the states, as tcpi_state has them.
var linuxStates = map[stack.State]uint8{
	stack.Established: 1, stack.SynSent: 2, stack.SynReceived: 3, stack.FinWait1: 4, stack.FinWait2: 5, stack.TimeWait: 6,
	stack.Closed: 7, stack.CloseWait: 8, stack.LastAck: 9, stack.Closing: 11,
}

// linuxListen is Linux's number of LISTEN.
const linuxListen = 10

// GetTCPInfo gives TCP_INFO as far as there is something to tell: the state, the times in µs, the segment sizes, the
// window scales, what is unacknowledged, the retransmissions under way, and in the lossy profile the congestion window.
func (h *Host) GetTCPInfo(fd int) (*unix.TCPInfo, error) {
	s, err := h.locked(fd)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	if s.is(kindUDP) {
		return nil, unix.ENOPROTOOPT
	}
	info := &unix.TCPInfo{State: linuxStates[stack.Closed]}
	if s.is(kindListen) {
		info.State = linuxListen
	}
	c := s.conn.Load()
	if c == nil {
		return info, nil
	}
	i := h.st.Info(c)
	info.State = linuxStates[i.State]
	info.Retransmits, info.Backoff = i.Retries, i.Backoff
	info.Rto, info.Rtt, info.Rttvar = uint32(i.RTO/1e3), uint32(i.SRTT/1e3), uint32(i.RTTVar/1e3)
	info.Snd_mss, info.Rcv_mss, info.Advmss = i.SndMSS, i.RcvMSS, i.RcvMSS
	info.Pmtu = uint32(h.st.Config().MTU)
	info.Unacked = (i.Unacked + max(i.SndMSS, 1) - 1) / max(i.SndMSS, 1)
	info.Rcv_space = i.RcvBuf
	info.Snd_wnd = i.SndWnd
	if mss := max(i.SndMSS, 1); i.Cwnd != 0 {
		info.Snd_cwnd, info.Snd_ssthresh = i.Cwnd/mss, i.Ssthresh/mss
	}
	return info, nil
}
