package stack

import (
	"syscall"

	"ndpip/tcp"
)

// Config gives the stack's configuration with its defaults filled in.
func (s *Stack) Config() *Config { return &s.cfg }

// MAC is the stack's own Ethernet address.
func (s *Stack) MAC() MAC { return s.mac }

// Reaches says whether there is a route to an address.
func (s *Stack) Reaches(addr uint32) bool { return s.hop(addr) != 0 }

// MaxDatagram is the largest payload of a UDP datagram.
func (s *Stack) MaxDatagram() int { return s.cfg.MTU - ipLen - udpLen }

// Outcome is the errno of a connection that did not end in order, or did not come up; 0: none.
func Outcome(c *tcp.Conn) syscall.Errno {
	_, why, _ := c.Status()
	return errno(why)
}

// SetKeepAlive sets after how many ns of silence a connection is probed (0: never), how many ns lie between probes, and
// how many without an answer end it (0: the defaults).
func (s *Stack) SetKeepAlive(c *tcp.Conn, idle, gap int64, limit uint8) {
	s.do(func() {
		c.KeepGap, c.KeepMax = gap, limit
		c.SetKeepAlive(idle, s.now)
		s.touch(c)
	})
}

// SetUserTimeout sets how many ns sent data may stay unacknowledged; 0: by the number of retransmissions.
func (s *Stack) SetUserTimeout(c *tcp.Conn, t int64) { s.do(func() { c.UserTimeout = t }) }

// Busy says whether connections that the application has closed are still ending, TIME-WAIT not counted.
func (s *Stack) Busy() (busy bool) {
	s.do(func() {
		s.conns.each(func(c *tcp.Conn) {
			if c.State() != tcp.Closed && c.State() != tcp.TimeWait {
				busy = true
			}
		})
	})
	return busy
}

// AbortAll resets every connection that is left and releases it.
func (s *Stack) AbortAll() {
	s.do(func() {
		s.conns.each(func(c *tcp.Conn) {
			c.Abort()
			s.close(c)
		})
		s.forget()
		for s.waits.n > 0 {
			s.endWait(s.waits.first, false)
		}
	})
}
