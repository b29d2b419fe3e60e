package tcp

// State is the state of a connection, by the names of RFC 9293 3.3.2. LISTEN is a property of a listener, which is
// no connection here.
type State uint8

// The states.
const (
	Closed State = iota
	SynSent
	SynReceived
	Established
	FinWait1
	FinWait2
	CloseWait
	Closing
	LastAck
	TimeWait
)

var stateNames = [...]string{"CLOSED", "SYN-SENT", "SYN-RECEIVED", "ESTABLISHED", "FIN-WAIT-1", "FIN-WAIT-2",
	"CLOSE-WAIT", "CLOSING", "LAST-ACK", "TIME-WAIT"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "?"
}

// Synchronized says whether both ends have agreed on sequence numbers (RFC 9293 3.10.7.4).
func (s State) Synchronized() bool { return s >= Established }

// Reason says why a connection ended, if not by an orderly close. It is a closed set; api maps it to errno once.
type Reason uint8

// The reasons.
const (
	NoReason    Reason = iota
	Refused            // RST in SYN-SENT (ECONNREFUSED)
	ResetByPeer        // RST in a synchronized state (ECONNRESET)
	TimedOut           // no answer within the limit (ETIMEDOUT)
	Unreachable        // the next hop or the host does not answer (EHOSTUNREACH)
	Aborted            // ended by us: close with unread data, SO_LINGER 0, stack stopped (ECONNABORTED)
)

// setState is the only place where the state of a connection changes. The application sees it at the next publish.
func (c *Conn) setState(s State) {
	c.state = s
	c.quick = s == Established && c.lossy == 0
	c.pend |= pendPublish
	if c.lossy != 0 && s != CloseWait && c.loss().idleAt {
		c.loss().idleAt, c.ageAt = false, 0
	}
}

// State is the state as the worker knows it. Worker only.
func (c *Conn) State() State { return c.state }
