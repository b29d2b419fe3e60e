// Package peers holds tests alone: programs that many people use (curl, wget, wrk, nc, socat) and the Linux kernel's own
// TCP as the peers of the stack, over net_tap, net_af_packet and net_af_xdp, in network namespaces of the tests' own.
//
// The stack's side is this test binary, started again as a child, because DPDK can be started once in a process. The child
// serves a handful of ports, and does what the test writes to its standard input; see child_test.go. The same child runs
// on the kernel's sockets, too: then it is the peer, or what the stack is compared with.
package peers
