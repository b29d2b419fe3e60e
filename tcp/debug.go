package tcp

import "fmt"

// Debug describes the connection for a test's messages. Nobody else may be at work on it.
func (c *Conn) Debug() string {
	rel := func(s Seq) int32 { return c.iss.Size(s) }
	return fmt.Sprintf("%v: una %d nxt %d wnd %d fin %v held %v rtx %v retries %d rto %d; rcv: nxt %d adv %d read %d staged %d; pend %#x",
		c.state, rel(c.sndUna), rel(c.sndNxt()), c.sndWnd, c.FinQueued(), c.held.Load(), c.flags&rtxOn != 0, c.retries, c.rto,
		c.irs.Size(c.rcvNxt), c.irs.Size(c.rcvAdv), c.irs.Size(Seq(c.usr.Load()>>32)), c.stageLen, c.pend)
}
