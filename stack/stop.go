package stack

import "ndpip/dpdk"

// Kill takes the stack's lanes away, after Stop: the port behind them is about to go. Calls that come late find a wire
// that leads nowhere, and no buffers.
func (s *Stack) Kill() {
	s.ctl.turn.Lock()
	s.app.lock.lock()
	for _, l := range []*dpdk.Lane{&s.w, &s.app.lane} {
		l.Exchange(dpdk.OpTx | dpdk.OpFree)
		s.ownTSC = false
		*l = dpdk.NewLane(&dpdk.Block{TSC: l.TSC}, nowhere(l.Hz()))
	}
	s.app.backlog.Store(0)
	s.app.lock.unlock()
	s.ctl.turn.Unlock()
}

// nowhere is the driver of a lane whose port is gone; its value is the rate of the clock, which stands still.
type nowhere uint64

func (d nowhere) Hz() uint64 { return uint64(d) }

func (nowhere) Exchange(b *dpdk.Block, _ dpdk.Op) { b.NFree, b.NTx, b.NStock, b.NRx = 0, 0, 0, 0 }
