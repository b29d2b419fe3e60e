package stack

import (
	"ndpip/tcp"
	"ndpip/udp"
)

// The names by which package api knows what tcp and udp define.
type (
	// Conn is a TCP connection.
	Conn = tcp.Conn
	// UDP is a UDP socket.
	UDP = udp.Sock
	// State is a connection's.
	State = tcp.State
	// Pend is what has happened to a socket, or is waited for.
	Pend = tcp.Pend
)

// ControlNamed gives a congestion control's number (Options.Congestion); ok is false where there is none of this name.
func ControlNamed(name string) (id uint8, ok bool) { return tcp.ControlNamed(name) }

// ControlName gives the name of a congestion control.
func ControlName(id uint8) string { return tcp.ControlName(id) }

// ControlNames are the names of all congestion controls.
func ControlNames() []string { return tcp.ControlNames() }

// DefaultControl is the lossy profile's by default.
const DefaultControl = tcp.DefaultControl

// The states of a connection.
const (
	Closed      = tcp.Closed
	SynSent     = tcp.SynSent
	SynReceived = tcp.SynReceived
	Established = tcp.Established
	FinWait1    = tcp.FinWait1
	FinWait2    = tcp.FinWait2
	CloseWait   = tcp.CloseWait
	Closing     = tcp.Closing
	LastAck     = tcp.LastAck
	TimeWait    = tcp.TimeWait
)

// What can be watched.
const (
	WatchRead  = tcp.PendRead  // something new to read or to accept, or the end of the stream
	WatchWrite = tcp.PendWrite // new room to write
	WatchOpen  = tcp.PendOpen  // the connection has come up, or has ended; always told
)
