package stack

type ports struct{}

func newPorts(secret) *ports { return nil }

func (s *Stack) choosePort(raddr uint32, rport uint16) (uint16, bool) {
	for range 1000 {
		p := uint16(32768 + s.rand()%28232)
		id := s.table.get(key{s.addr, raddr, p, rport})
		if id == 0 {
			return p, true
		}
	}
	return 0, false
}
