/* What the test programs share. Each is compiled as C11 and as C++, and run with the EAL's arguments, "--", and its own. */
#ifndef TEST_H
#define TEST_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* DPDK's headers want it with -std=c11 */
#endif

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include <ndpip/epoll.h>
#include <ndpip/linux_dpdk.h>
#include <ndpip/pbuf.h>
#include <ndpip/socket.h>

/* CHECK ends the program when a condition does not hold. */
#define CHECK(ok) \
	do { \
		if (!(ok)) { \
			fprintf(stderr, "%s:%d: not so: %s (errno %d: %s)\n", __FILE__, __LINE__, #ok, errno, strerror(errno)); \
			exit(1); \
		} \
	} while (0)

/* FAILS checks that a call returns -1 with the errno. */
#define FAILS(call, e) \
	do { \
		errno = 0; \
		if ((call) != -1 || errno != (e)) { \
			fprintf(stderr, "%s:%d: %s: errno %d (%s), want %s\n", __FILE__, __LINE__, #call, errno, strerror(errno), #e); \
			exit(1); \
		} \
	} while (0)

static inline struct in_addr ip(const char *text)
{
	struct in_addr a;

	CHECK(inet_aton(text, &a) == 1);
	return a;
}

static inline struct sockaddr_in name(const char *text, uint16_t port)
{
	struct sockaddr_in in;

	memset(&in, 0, sizeof(in));
	in.sin_family = AF_INET;
	in.sin_addr = ip(text);
	in.sin_port = htons(port);
	return in;
}

static inline struct ether_addr mac(uint8_t last)
{
	struct ether_addr m = {{2, 0, 0, 0, 0, last}};

	return m;
}

/* set_up gives interface `port` address 10.9.0.<own>, and peer 10.9.0.<peer> with its address, as the original wants it. */
static inline void set_up(int port, uint8_t own, uint8_t peer)
{
	struct ndpip_arp_peer table[1];
	char text[32];

	snprintf(text, sizeof(text), "10.9.0.%u", peer);
	table[0].inaddr = ip(text);
	table[0].ethaddr = mac(peer);
	CHECK(ndpip_linux_dpdk_set_ethaddr(port, mac(own)) == 0);
	snprintf(text, sizeof(text), "10.9.0.%u", own);
	CHECK(ndpip_linux_dpdk_set_inaddr(port, ip(text)) == 0);
	CHECK(ndpip_linux_dpdk_set_arp_table(port, table, 1) == 0);
	CHECK(ndpip_linux_dpdk_set_burst_size(port, 32) == 0);
}

/* start_client starts an interface whose wire's server may not be there yet. */
static inline void start_client(int port)
{
	int tries = 0;

	while (ndpip_linux_dpdk_start_iface(port) != 0) {
		CHECK(errno == ECONNREFUSED && ++tries < 300);
		usleep(50000);
	}
}

static inline void count_pool(struct rte_mempool *mp, void *sum)
{
	*(unsigned int *)sum += rte_mempool_in_use_count(mp);
}

/* in_use is how many buffers are out of all pools of the process. */
static inline unsigned int in_use(void)
{
	unsigned int sum = 0;

	rte_mempool_walk(count_pool, &sum);
	return sum;
}

static inline double seconds(void)
{
	struct timespec t;

	ndpip_time_now(&t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
