/*
Libndpip is the C library: libndpip.a and libndpip.so (go build -buildmode=c-archive or c-shared), with the headers in
include/ndpip. "go run ./cmd/dev install" builds and installs it. docs/c-api.md is for its users.

A call goes this way:

	include/ndpip/*.h           what a C program sees
	socket.c data.c epoll.c     C's types and errno; each calls one function of Go's
	pbuf.c                      buffers: struct ndpip_pbuf is an rte_mbuf, so most needs no Go at all
	iface.c clock.c             lcores, the log, frames in and out, the clock: no Go either
	socket.go data.go epoll.go  the other side: finds the host, and calls package api
	iface.go start.go           interfaces: a DPDK port with its settings, and its host from start to stop
	hosts.go                    from a descriptor to its host

Go functions return a count, or a negated errno: errno is a variable of the C thread, and is set in C. Nothing is allocated
per call, and no pointer of Go's crosses.
*/
package main

func main() {}
