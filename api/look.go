package api

import (
	"net"
	"net/netip"
	"strings"
	"time"

	"ndpip/dpdk"
	"ndpip/stack"
	"ndpip/stack/wire"
)

// PortView is a host's port, as seen from outside.
type PortView struct {
	Name           string     `json:"name"`
	Driver         string     `json:"driver"`
	MAC            string     `json:"mac"`
	Link           bool       `json:"link"`
	Speed          int        `json:"speed_mbps"`
	MTU            int        `json:"mtu"`
	RxQueues       int        `json:"rx_queues"`
	TxQueues       int        `json:"tx_queues"`
	dpdk.PortStats `json:"-"` // they are among the counters
	Pools          []PoolView `json:"-"`
}

// PoolView is a pool of packet buffers.
type PoolView struct {
	Name  string `json:"name"`
	Size  int    `json:"size"`
	InUse int    `json:"in_use"`
}

// SocketView is a socket, as seen from outside. Times are in µs.
type SocketView struct {
	Proto    string         `json:"proto"` // tcp or udp
	State    string         `json:"state"` // of RFC 9293; for UDP sockets UNCONN or ESTAB
	Local    netip.AddrPort `json:"local"`
	Remote   netip.AddrPort `json:"remote"`
	RecvQ    int            `json:"recv_q"` // bytes not read; of a listener: connections not accepted
	SendQ    int            `json:"send_q"` // bytes not acknowledged; of a listener: its backlog
	RTT      float64        `json:"rtt_us,omitempty"`
	RTTVar   float64        `json:"rttvar_us,omitempty"`
	RTO      float64        `json:"rto_us,omitempty"`
	Timer    float64        `json:"timer_us,omitempty"` // until the next one expires; 0: none runs
	SndWnd   uint32         `json:"snd_wnd"`            // that the peer offers
	RcvWnd   uint32         `json:"rcv_wnd"`            // that the peer is offered
	RcvBuf   uint32         `json:"rcv_buf"`
	MSS      uint32         `json:"mss"`
	Retries  int            `json:"retries"`  // resends since the last progress
	Acked    uint32         `json:"acked"`    // bytes that the peer has acknowledged; wraps at 2^32
	Received uint32         `json:"received"` // bytes received; wraps at 2^32
	Half     int            `json:"half_open,omitempty"`
	Dropped  uint64         `json:"dropped,omitempty"`
	Orphan   bool           `json:"orphan,omitempty"` // the application has closed it
}

// NeighbourView is an entry of the neighbour cache.
type NeighbourView struct {
	Addr  netip.Addr    `json:"addr"`
	MAC   string        `json:"mac"`
	State string        `json:"state"` // incomplete, known, probing, failed or static
	Good  time.Duration `json:"good_ns"`
}

// HostView is a host, as seen from outside.
type HostView struct {
	Addr       netip.Prefix      `json:"addr"`
	Gateway    *netip.Addr       `json:"gateway,omitempty"`
	Wire       string            `json:"wire"`
	Worker     bool              `json:"worker"` // false: the stack runs inside the application's calls
	Up         time.Duration     `json:"up_ns"`  // for how long it has been open
	At         time.Time         `json:"at"`     // when the counters were read
	Port       PortView          `json:"port"`
	Pools      []PoolView        `json:"pools"`
	Neighbours []NeighbourView   `json:"neighbours"`
	Counters   map[string]uint64 `json:"counters"`
	TurnMedian time.Duration     `json:"turn_p50_ns"` // of busy turns; an upper bound
	Turn99     time.Duration     `json:"turn_p99_ns"`
}

// Look looks at the host from outside: for tools. It takes a moment of the worker's time.
func (h *Host) Look() HostView {
	p := h.dev.look()
	v := HostView{Addr: h.cfg.Addr, Wire: h.cfg.Wire, Worker: !h.cfg.Inline, Up: time.Since(h.since), Port: p, Pools: p.Pools,
		Counters: map[string]uint64{}}
	if v.Wire == "" {
		v.Wire = p.Name
	}
	if h.cfg.Gateway.IsValid() {
		v.Gateway = &h.cfg.Gateway
	}
	v.Port.MAC = h.MAC().String()
	metrics := h.Metrics()
	v.At = time.Now()
	for _, m := range metrics {
		if m.Times != nil {
			v.TurnMedian, v.Turn99 = time.Duration(m.Times.Quantile(0.5)), time.Duration(m.Times.Quantile(0.99))
			continue
		}
		v.Counters[m.Flat()] = m.N
	}
	for _, n := range h.st.Neighbours() {
		v.Neighbours = append(v.Neighbours, NeighbourView{Addr: wire.ToAddr(n.Addr), MAC: net.HardwareAddr(n.MAC[:]).String(), State: n.State,
			Good: time.Duration(n.Age)})
	}
	return v
}

// Sockets calls each for every socket of the host. The worker is kept for a few hundred of them at a time.
func (h *Host) Sockets(each func(SocketView)) {
	h.st.Sockets(func(s *stack.Socket) { each(socketView(s)) })
}

func socketView(s *stack.Socket) SocketView {
	us := func(ns int64) float64 { return float64(ns) / 1e3 }
	v := SocketView{Proto: "tcp", Local: netip.AddrPortFrom(wire.ToAddr(s.Laddr), s.Lport), Remote: netip.AddrPortFrom(wire.ToAddr(s.Raddr), s.Rport)}
	switch s.Kind {
	case stack.SocketListen:
		v.State, v.RecvQ, v.SendQ, v.Half = "LISTEN", s.Queue, s.Backlog, s.Half
	case stack.SocketUDP:
		v.Proto, v.State, v.RecvQ, v.Dropped = "udp", "UNCONN", s.Bytes, s.Dropped
		if s.Raddr != 0 {
			v.State = "ESTAB"
		}
	case stack.SocketConn:
		c, l := &s.Conn, &s.Look
		v.State = c.State.String()
		v.RecvQ, v.SendQ, v.Orphan = int(l.Unread), int(c.Unacked), l.Orphan
		v.RTT, v.RTTVar, v.RTO, v.Timer = us(c.SRTT), us(c.RTTVar), us(c.RTO), us(l.Timer)
		v.SndWnd, v.RcvWnd, v.RcvBuf, v.MSS = c.SndWnd, l.RcvWnd, c.RcvBuf, c.SndMSS
		v.Retries, v.Acked, v.Received = int(c.Retries), l.Acked, l.Received
	}
	return v
}

// poolKind is what a pool is for: the name that it was made with, without the number behind it.
func poolKind(name string) string {
	return strings.TrimRight(strings.TrimPrefix(name, "ndpip_"), "0123456789")
}

// lookAt is what a port and pools show.
func lookAt(p *dpdk.Port, pools []*dpdk.Mempool) (v PortView) {
	i := p.Info()
	v = PortView{Name: p.Name(), Driver: i.Driver, Link: i.LinkUp, Speed: i.SpeedMbps, MTU: i.MTU, RxQueues: i.RxQueues, TxQueues: i.TxQueues}
	v.PortStats, _ = p.Stats()
	for _, m := range pools {
		v.Pools = append(v.Pools, PoolView{poolKind(m.Name()), m.Size(), m.Size() - m.Avail()})
	}
	return v
}

func (p *dpdkPort) look() PortView {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return PortView{}
	}
	return lookAt(p.port, p.pools)
}

func (p *linkedPort) look() PortView {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return PortView{}
	}
	return lookAt(p.port, p.pools)
}
