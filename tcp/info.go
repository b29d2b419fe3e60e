package tcp

// Info is a connection at one moment. Times are in ns, sizes in bytes.
type Info struct {
	State             State
	Retries, Backoff  uint8 // retransmissions since the last progress, doublings of the RTO
	RTO, SRTT, RTTVar int64 // SRTT 0: no sample yet
	SndMSS, RcvMSS    uint32
	Unacked           uint32 // sent and not acknowledged
	SndWnd            uint32
	RcvBuf            uint32
	Cwnd, Ssthresh    uint32 // 0 in the lossless profile
}

// Info looks at the connection. Worker only.
func (c *Conn) Info() Info {
	i := Info{
		State: c.state, Retries: c.retries, Backoff: c.backoff, RTO: c.rto, SRTT: c.srtt, RTTVar: c.rttvar,
		SndMSS: uint32(c.SndMSS), RcvMSS: uint32(c.rcvMSS), SndWnd: c.sndWnd, RcvBuf: c.RcvBuf,
	}
	if c.state != Closed {
		i.Unacked = c.outstanding()
	}
	if c.lossy != 0 {
		w := &c.loss().win
		i.Cwnd, i.Ssthresh = w.Cwnd, w.Ssthresh
	}
	return i
}
