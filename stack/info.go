package stack

import "ndpip/tcp"

// Info is what a connection's owner may want to know; see tcp.Conn.Info.
type Info = tcp.Info

// Info looks at a connection between two turns.
func (s *Stack) Info(c *Conn) (i Info) {
	s.do(func() { i = c.Info() })
	return i
}
