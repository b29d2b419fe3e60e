package dpdk

import "unsafe"

// Handle names one packet buffer. For a DPDK port it is the address of the rte_mbuf; for a port in memory it is
// whatever that port chose. It is a plain number, so structures that hold handles cost the garbage collector nothing.
// The zero Handle names no buffer.
type Handle uintptr

// Flags say what the port knows about a received frame, or what it is asked to do with one that is sent.
type Flags uint32

const (
	// RxIPGood and RxIPBad: the port checked the IPv4 header checksum. Neither is set when it does not know.
	RxIPGood Flags = 1 << iota
	RxIPBad
	// RxL4Good and RxL4Bad: the same for the TCP or UDP checksum.
	RxL4Good
	RxL4Bad
	// RxChained: the frame lies in more than one buffer and only the first is described. It is to be dropped and counted.
	RxChained

	// TxIPSum, TxTCPSum and TxUDPSum ask the port to fill in that checksum. The L4 checksum field holds the folded,
	// not complemented sum of the pseudo-header (rte_ipv4_phdr_cksum), as DPDK asks.
	TxIPSum
	TxTCPSum
	TxUDPSum
	// TxRetain: the sender keeps one reference, which it gives back later with Lane.Free. Without it the buffer is
	// the port's from the moment that the port takes it.
	TxRetain
)

// Frame describes one packet buffer: 24 bytes, no Go pointer.
// The driver's C code writes the same layout; dpdk checks the two against each other when it is compiled.
type Frame struct {
	Handle Handle
	Addr   uintptr // address of the frame's first byte, the destination MAC
	Len    uint32  // bytes in the frame, from Addr
	Flags  Flags
}

// Bytes is the frame's content, valid as long as the caller owns the buffer.
func (f Frame) Bytes() []byte { return Bytes(f.Addr, int(f.Len)) }

// Bytes is the memory of n bytes at addr.
//
// This is the one place where a number becomes a pointer. It is sound because packet memory is never moved and never
// freed behind a handle's back: it belongs to DPDK's mempool, or to a slice that the port in memory keeps for its
// whole life. Go's collector neither moves heap objects nor needs to know of this pointer to keep them.
func Bytes(addr uintptr, n int) []byte { return unsafe.Slice((*byte)(Pointer(addr)), n) }

// Pointer is packet memory at addr as a pointer, for those who write headers in words; see Bytes.
func Pointer(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

// Capacities of a Lane's arrays, in frames or handles.
const (
	RxCap    = 256
	TxCap    = 512
	StockCap = 256
	FreeCap  = 1024
)

// Op says which steps an exchange takes. They are taken in the order of the constants.
type Op uint32

const (
	OpYield Op = 1 << iota // give the CPU to another thread first (sched_yield)
	OpTx                   // hand the frames of the transmit list to the port, in order
	OpFree                 // return the buffers of the free list; behind OpTx, for which somebody waits
	OpStock                // top the stock up to Want
	OpRx                   // receive at most RxMax frames, and read the clock
)

// Block is the memory that a lane shares with its driver: everything that one call carries across.
// With DPDK it lies in C memory, so that the call checks no pointers; its layout is checked against the C struct.
type Block struct {
	NFree, NTx, NStock, NRx uint32 // entries in use in the arrays below
	RxMax                   uint32 // most frames to receive in one exchange, at most RxCap
	Want                    uint32 // how many buffers OpStock tops the stock up to, at most StockCap
	// Fill: whoever takes buffers from the stock fills in payload alone. The headers are another thread's to make, on whose
	// CPU their cache line, and the driver's, had better stay.
	Fill uint32
	_    uint32 // the driver's

	TSC      uint64 // clock of the last OpRx, in cycles of Driver.Hz
	TxSent   uint64 // frames that the port took
	TxRefuse uint64 // exchanges in which the port took fewer than there were
	NoMem    uint64 // times OpStock found the pool empty

	_ [64]byte // the driver's own fields: port, queue, pool, lock

	Free  [FreeCap]Handle
	Tx    [TxCap]Frame
	Stock [StockCap]Frame // Addr is where a frame starts; Len is the room from there
	Rx    [RxCap]Frame
}

// Driver is what a port is to a lane. It is implemented over DPDK in this package and in memory by stack/link.
type Driver interface {
	// Exchange takes the steps of op on b, in one call. Afterwards b.Tx[:b.NTx] holds the frames that the port did
	// not take, still in order; b.Stock[:b.NStock] what is in stock; b.Rx[:b.NRx] what was received (0 without OpRx).
	Exchange(b *Block, op Op)
	// Hz is the rate of TSC.
	Hz() uint64
}

// OwnTSC is implemented by a Driver whose TSC is the processor's (RDTSC on amd64): who only wants the time may read it
// there.
type OwnTSC interface{ OwnTSC() }

// Lane is one thread's way to a port: its receive queue, its transmit queue, and a stock of empty buffers.
// It belongs to one thread at a time. Per frame it is plain Go on shared memory; per burst it is one call.
type Lane struct {
	*Block
	drv Driver
}

// NewLane joins a block to its driver.
func NewLane(b *Block, d Driver) Lane { return Lane{b, d} }

// Exchange takes the steps of op in one call.
func (l *Lane) Exchange(op Op) { l.drv.Exchange(l.Block, op) }

// Hz is the rate of TSC, in cycles per second.
func (l *Lane) Hz() uint64 { return l.drv.Hz() }

// OwnTSC says whether the driver is an OwnTSC.
func (l *Lane) OwnTSC() bool {
	_, ok := l.drv.(OwnTSC)
	return ok
}

// Release puts a buffer (or one reference to it) on the free list; the next exchange with OpFree returns it.
// The caller must not use it any more.
func (l *Lane) Release(h Handle) {
	l.Free[l.NFree] = h
	if l.NFree++; l.NFree == FreeCap {
		l.freeNow()
	}
}

// freeNow is apart so that Release is inlined. It leaves what was received in place, for a caller that releases frame
// by frame while it goes through them.
//
//go:noinline
func (l *Lane) freeNow() {
	n := l.NRx
	l.Exchange(OpFree)
	l.NRx = n
}

// Take gives an empty buffer from the stock: Addr is where the frame starts, Len the room. It is the caller's until
// it is sent or released. ok is false when the stock is empty.
func (l *Lane) Take() (f Frame, ok bool) {
	if l.NStock == 0 {
		return Frame{}, false
	}
	l.NStock--
	return l.Stock[l.NStock&(StockCap-1)], true
}

// Queue appends a frame to the transmit list; the next exchange with OpTx sends it. The caller sees to it that there
// is room (TxRoom).
func (l *Lane) Queue(f Frame) {
	l.Tx[l.NTx&(TxCap-1)] = f
	l.NTx++
}

// TxRoom is how many more frames the transmit list takes.
func (l *Lane) TxRoom() int { return TxCap - int(l.NTx) }
