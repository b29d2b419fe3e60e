package api

import (
	"encoding/binary"
	"strings"

	"golang.org/x/sys/unix"
)

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
