package api

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"ndpip/stack"
)

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

// infoBytes is struct tcp_info as C has it, which is how package unix lays it out.
func infoBytes(i *unix.TCPInfo) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(i)), unix.SizeofTCPInfo)
}
