/*
 * Use, stop, use again, three times in one process, the last time without a word to the peer: what was open is reset. Each
 * time every buffer is back afterwards. The lcores are free in between: the program runs its own work on them.
 */
#include "ring.h"

#include <fcntl.h>
#include <pthread.h>
#include <rte_launch.h>

static int nothing(void *arg)
{
	return *(int *)arg;
}

struct side {
	int fd, iface;
	size_t total;
};

/* A plain thread of the program's, which DPDK does not know. */
static void *sink(void *arg)
{
	struct side *side = (struct side *)arg;
	static char buf[65536];
	ssize_t n;

	while ((n = ndpip_read(side->fd, buf, sizeof(buf))) > 0)
		side->total += (size_t)n;
	CHECK(n == 0);
	return NULL;
}

static void use(int a, int b, int abandon)
{
	static char buf[10000];
	const size_t total = 20 << 20;
	struct side side;
	struct iovec v[2];
	pthread_t thread;
	size_t sent = 0;
	int l, s, t;

	l = listener(b, 5001, 0);
	memset(&side, 0, sizeof(side));
	s = dial(a, l, 5001, &t);
	side.fd = t;
	CHECK(pthread_create(&thread, NULL, sink, &side) == 0);
	v[0].iov_base = buf;
	v[0].iov_len = 1000;
	v[1].iov_base = buf + 1000;
	v[1].iov_len = 9000;
	while (sent < total) {
		CHECK(ndpip_writev(s, v, 2) == 10000);
		sent += 10000;
	}
	CHECK(ndpip_shutdown(s, SHUT_WR) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(side.total == sent);
	if (abandon)
		return;
	CHECK(ndpip_close(t) == 0);
	CHECK(ndpip_read(s, buf, 1) == 0);
	CHECK(ndpip_close(s) == 0);
	CHECK(ndpip_close(l) == 0);
}

int main(int argc, char **argv)
{
	unsigned int lcore, before;
	int a, b, round, seven = 7;

	CHECK(rte_eal_init(argc, argv) >= 0);
	ring_pair(&a, &b);
	before = in_use();
	for (round = 0; round < 3; round++) {
		start_pair(a, b);
		use(a, b, round == 2);
		CHECK(ndpip_linux_dpdk_stop_iface(a) == 0);
		CHECK(ndpip_linux_dpdk_stop_iface(b) == 0);
		if (round < 2)
			CHECK(in_use() == before);
		RTE_LCORE_FOREACH_WORKER(lcore) {
			CHECK(rte_eal_remote_launch(nothing, &seven, lcore) == 0);
			CHECK(rte_eal_wait_lcore(lcore) == 7);
		}
	}
	/* The last round's farewells may lie in the rings. */
	for (round = 0; round < 2; round++) {
		struct rte_mbuf *m;

		CHECK(rte_eth_dev_start((uint16_t)(round ? a : b)) == 0);
		while (rte_eth_rx_burst((uint16_t)(round ? a : b), 0, &m, 1) == 1)
			rte_pktmbuf_free(m);
	}
	CHECK(in_use() == before);
	CHECK(rte_eal_cleanup() == 0);
	puts("ok");
	return 0;
}
