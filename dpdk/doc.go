/*
Package dpdk is the only place that talks to DPDK, and the only one with cgo. It hands out plain frame descriptors, so
nothing above it knows what an mbuf looks like.

# Layers

From the application's side to the wire:

	frame.go          Frame, Block, Lane, Driver: the contract with the stack; no DPDK, no cgo
	lane.go           a Lane over a port's queues; Exchange, the one call into C per burst
	shim.c            that call: free, send, stock up, receive; the only code that touches mbufs
	gate.c            what keeps a burst and a port's stopping apart, and net_memif's interrupt work
	port.go           a port: configure, start, stop, close; portinfo.go: what it is, can do and has counted
	mempool.go        packet pools; last in, first out, so that few buffers are in play and stay in the caches
	vdev.go           ports made while the program runs: net_ring pairs, and hot plug
	eal.go, lcore.go  the process: start DPDK, clean up, make a thread an lcore
	args.go, wire.go  the EAL's arguments, from a few words; no DPDK, no cgo
	layout.go         the compilers check that Go and C agree on every byte they share

With CGO_ENABLED=0 the files without cgo are the package.

# Life of a process

EalInit, NewMempool, ConfigurePort, Port.NewLane, Port.Start; then Lane.Exchange in a loop; then Port.Close (which
frees the lanes), Mempool.Free, EalCleanup. DPDK starts once in a process: EalCleanup is for the end of it. A program
that has started DPDK by itself skips EalInit (EalInitialized says so) and attaches to its port and pool (AttachPort,
AttachMempool).

# Threads

A Lane belongs to one thread at a time; nothing in it is locked. Two lanes with the same transmit queue take turns in C.
Everything else may be called from any goroutine. A thread that moves frames should be locked and registered
(RegisterLcore): without an lcore's number it has no cache in the pools, and every buffer costs a locked operation.

Port.Stop, Start and Close of a port may run while its lanes are in use, except that Close frees the lanes: an exchange
on a stopped port moves nothing and is harmless.

# Ownership

A buffer belongs to exactly one side. Take gives it to the caller. Queue and the next OpTx give it to the port, as far
as the port takes it: what is left in Block.Tx is the caller's again. With TxRetain the caller keeps one reference,
which it gives back with Release; until then it may queue the buffer again. What was received is the caller's until it
is released or sent.

A frame that more than one side holds is read-only. On a net_ring pair the receiver gets the very buffer that the sender
retains; a sender that writes into it before the receiver has let go changes what the receiver reads.

# Ports

	net_ring       in the process; no address of its own (it is given one), MTU as the pool allows
	net_null       gives frames for ever and takes everything
	net_memif      two processes. A transmit queue pairs with the peer's receive queue, so both numbers are made equal.
	               MTU at most 1500. The driver takes 32 buffers from the pool for each burst that brings anything: a
	               pool with fewer left receives nothing. Peers trust each other: the driver believes the lengths that
	               the peer writes into shared memory.
	net_tap        makes an interface of the kernel; both ends have the same address. It fills in and checks checksums
	               in software. Receive and transmit queues are equal in number, and the kernel spreads flows over all
	               receive queues: each must be polled. MTU at most 1504.
	net_af_packet  a packet socket on an interface that exists; one queue. Frames that the machine's own kernel sends
	               over veth carry an unfinished checksum here, which no flag tells: switch the kernel's offload off
	               at the other end (ethtool -K IF tx off). When the kernel's ring is full, sending waits in poll(2).
	net_af_xdp     likewise, with the same remark on veth. It takes over 2048 buffers from the receive pool, and does
	               not give them back when it is closed; libxdp writes to stderr.
	PCI devices    as the EAL finds them; bind them to vfio-pci first

# When a net_memif peer is killed

The driver unmaps the shared rings on DPDK's interrupt thread as soon as the peer's socket closes, whatever the polling
threads are doing: a thread in the middle of a burst then dies of SIGSEGV. Without what follows, a survivor that shares
its CPU with the interrupt thread died about once in ten kills (if it does not yield).

So the interrupt thread is kept from its work while a burst is under way (gate.c). This package registers an interrupt
of its own and stays in its callback, where it polls the interrupt thread's epoll descriptor; when something is due it
shuts the gate before the port's bursts, waits until none is under way, and returns. A burst pays a store and a load for
it, no fence: membarrier(2) orders them from the rare side. 150 kills under load, most of them on a shared CPU, left every
survivor alive, and the peer's disappearance is seen as Port.LinkUp going false. A server then accepts the next client;
a client connects again by Stop and Start.

What remains: the epoll descriptor is found by way of /proc/self/fdinfo; where that cannot be read the interrupt thread
is let work every 20 ms instead, with the same safety. Where membarrier is forbidden, each burst pays a fence. Other
interrupts of the process wait for at most one burst. A peer that is alive and hostile is not guarded against: it can
write wrong lengths, or shrink the shared memory (SIGBUS).

# DPDK versions

Public functions only; 21.11 to 25.11 compile. Three functions are marked experimental in some of these versions and have
not changed since 21.11: rte_intr_instance_alloc with its setters, and rte_eth_dev_conf_get.
*/
package dpdk
