/* Two interfaces in one process, joined by rings. */
#ifndef RING_H
#define RING_H

#include "test.h"

#include <rte_eth_ring.h>
#include <rte_ring.h>

/* ring_pair makes ports a and b: what one sends, the other receives. */
static inline void ring_pair(int *a, int *b)
{
	struct rte_ring *ab = rte_ring_create("ab", 4096, SOCKET_ID_ANY, RING_F_SC_DEQ);
	struct rte_ring *ba = rte_ring_create("ba", 4096, SOCKET_ID_ANY, RING_F_SC_DEQ);

	CHECK(ab != NULL && ba != NULL);
	*a = rte_eth_from_rings("pair_a", &ba, 1, &ab, 1, SOCKET_ID_ANY);
	*b = rte_eth_from_rings("pair_b", &ab, 1, &ba, 1, SOCKET_ID_ANY);
	CHECK(*a >= 0 && *b >= 0);
}

/* start_pair starts interfaces a (10.9.0.1) and b (10.9.0.2). */
static inline void start_pair(int a, int b)
{
	ndpip_linux_dpdk_init();
	CHECK(ndpip_linux_dpdk_register_iface(a) == 0);
	CHECK(ndpip_linux_dpdk_register_iface(b) == 0);
	set_up(a, 1, 2);
	set_up(b, 2, 1);
	CHECK(ndpip_linux_dpdk_start_iface(a) == 0);
	CHECK(ndpip_linux_dpdk_start_iface(b) == 0);
}

/* listener makes a socket that listens on interface b. */
static inline int listener(int b, uint16_t port, int flags)
{
	struct sockaddr_in at = name("10.9.0.2", port);
	int l;

	CHECK(ndpip_use_iface(b) == 0);
	l = ndpip_socket(AF_INET, SOCK_NDPIP | flags, IPPROTO_TCP);
	CHECK(l > 2);
	CHECK(ndpip_bind(l, (struct sockaddr *)&at, sizeof(at)) == 0);
	CHECK(ndpip_listen(l, 16) == 0);
	return l;
}

/* dial connects from interface a to a listener on b; *accepted is the other end. */
static inline int dial(int a, int l, uint16_t port, int *accepted)
{
	struct sockaddr_in to = name("10.9.0.2", port), from;
	socklen_t len = sizeof(from);
	int c;

	CHECK(ndpip_use_iface(a) == 0);
	c = ndpip_socket(AF_INET, SOCK_NDPIP, IPPROTO_TCP);
	CHECK(c > 2);
	CHECK(ndpip_connect(c, (struct sockaddr *)&to, sizeof(to)) == 0);
	do {
		*accepted = ndpip_accept(l, (struct sockaddr *)&from, &len);
	} while (*accepted < 0 && errno == EAGAIN);
	CHECK(*accepted > 2);
	CHECK(len == sizeof(from) && from.sin_family == AF_INET && from.sin_addr.s_addr == ip("10.9.0.1").s_addr);
	return c;
}

#endif
