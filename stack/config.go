package stack

import (
	"net/netip"

	"ndpip/dpdk"
	"ndpip/stack/wire"
	"ndpip/tcp"
)

// MAC is an Ethernet address, in the order of the wire.
type MAC = wire.MAC

// Config is what a stack is made with.
type Config struct {
	MAC        MAC
	Addr       netip.Prefix // own IPv4 address and the prefix that is on the link
	Gateway    netip.Addr   // for all else; zero: none
	Neighbours map[netip.Addr]MAC

	// Broadcast takes packets to this host also out of broadcast frames, which RFC 1122 3.3.6 has dropped: for links whose
	// hosts are set up to send all frames to ff:ff:ff:ff:ff:ff.
	Broadcast bool

	Burst    int // most frames received per turn; 0: 32
	MTU      int // 0: 1500
	MSS      int // largest segment that is sent, and asked for; 0: MTU - 40
	Checksum Checksum
	Offload  dpdk.Flags // checksums that the port fills in on transmit: TxIPSum, TxTCPSum, TxUDPSum

	RcvBuf, SndBuf int // defaults of SO_RCVBUF and SO_SNDBUF, in bytes
	WinScale       int // scale of the window that is offered; 0 or less: from RcvBuf
	MaxRing        int // most entries of a connection's ring; 0: 4096. A window of many segments needs more
	TCP            tcp.Params
	// AckDelay is how long the acknowledgement of one small piece of text waits for an answer of the application's that
	// carries it, in ns (RFC 1122 4.2.3.2). 0: not at all, there is an ACK for each burst.
	AckDelay int64
	// AckRide is for stacks whose turns are the application's own (with AckDelay 0): the acknowledgement of one small piece of
	// text waits for the next turn if the application has answered the last one before the turn that followed. Who does so
	// tells both in one frame.
	AckRide bool
	// WorkerSends: the application's threads only enter what they write in the transmit ring, and the worker makes the
	// headers and sends. Else they send themselves.
	WorkerSends bool
	// NoCoalesce has each received frame taken apart by itself. Else neighbouring segments of a connection are recognised by
	// what their headers have in common, see coalesce.go.
	NoCoalesce bool
	ICMPErrors int // most ICMP errors sent in a second (RFC 1812 4.3.2.8); 0: 1000

	// RxBuffers is the size of the pool that frames are received into. When unread data hold most of it, further
	// payload is dropped, so that ACKs and ARP still get in. 0: unknown, no limit.
	RxBuffers int
	// TxBuffers is the size of the pool that frames to send are taken from. Applications get three quarters of it: what
	// they have sent holds buffers until it is acknowledged, and an ACK needs a buffer as well. 0: unknown, no limit.
	TxBuffers int
	// Archive is how many blocks of closed connections are kept, with their rings, for the next ones between the same two
	// hosts. 0: 256; less than 0: none.
	Archive int
	Seed    uint64 // not 0: all secrets are made from it, so that a simulation can be repeated
}

// Checksum says how the checksums of TCP and UDP are handled.
type Checksum uint8

// The ways. The IPv4 header's is always written, and checked; with ChecksumOff not within a run of segments (coalesce.go).
const (
	ChecksumAuto     Checksum = iota // by the port where it can, else in software
	ChecksumSoftware                 // in software
	ChecksumOff                      // not at all: the wire is memory
)

func (c *Config) setDefaults() {
	def := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	def(&c.Burst, 32)
	def(&c.MTU, 1500)
	def(&c.MSS, c.MTU-ipLen-tcpLen)
	def(&c.RcvBuf, 1<<20)
	def(&c.SndBuf, 1<<20)
	def(&c.MaxRing, 4096)
	def(&c.Archive, archiveMost)
	def(&c.ICMPErrors, 1000)
	c.Burst = min(c.Burst, dpdk.RxCap)
	c.MSS = min(c.MSS, c.MTU-ipLen-tcpLen)
	if c.TCP == (tcp.Params{}) {
		c.TCP = tcp.DefaultParams()
	}
}
