/*
 * A forwarder that shares its port with the stack: l2fwd MEGABYTES. What comes in on port 0 for the stack's Ethernet address
 * is handed to it; all else goes out on port 1. What the stack sends goes out on port 0, and so does what comes in on
 * port 1. The stack reads what bulk.c's sender sends. The loop is the main lcore's; the stack's user is a plain thread.
 */
#include "test.h"

#include <pthread.h>

enum { BURST = 32 };

static uint64_t passed; /* frames that were forwarded */

static void set_up_port(uint16_t port, struct rte_mempool *pool)
{
	struct rte_eth_conf conf;

	memset(&conf, 0, sizeof(conf));
	CHECK(rte_eth_dev_configure(port, 1, 1, &conf) == 0);
	CHECK(rte_eth_rx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL, pool) == 0);
	CHECK(rte_eth_tx_queue_setup(port, 0, 512, SOCKET_ID_ANY, NULL) == 0);
	CHECK(rte_eth_dev_start(port) == 0);
}

static void free_rest(struct rte_mbuf **m, uint16_t done, uint16_t n)
{
	for (; done < n; done++)
		rte_pktmbuf_free(m[done]);
}

static void forward(int feed, const struct ether_addr *own)
{
	struct rte_mbuf *m[BURST], *ours[BURST], *theirs[BURST];
	uint16_t n = rte_eth_rx_burst(0, 0, m, BURST), i, no = 0, nt = 0;

	for (i = 0; i < n; i++) {
		if (memcmp(rte_pktmbuf_mtod(m[i], void *), own, 6) == 0)
			ours[no++] = m[i];
		else
			theirs[nt++] = m[i];
	}
	free_rest(ours, ndpip_input(feed, ours, no), no);
	passed += nt;
	free_rest(theirs, rte_eth_tx_burst(1, 0, theirs, nt), nt);
	n = ndpip_output(feed, m, BURST);
	for (i = 0; i < n;) /* what the stack sends is never thrown away lightly: it would be sent again */
		i = (uint16_t)(i + rte_eth_tx_burst(0, 0, m + i, (uint16_t)(n - i)));
	n = rte_eth_rx_burst(1, 0, m, BURST);
	free_rest(m, rte_eth_tx_burst(0, 0, m, n), n);
}

static void *reader(void *arg)
{
	static uint8_t buf[32768];
	struct sockaddr_in at = name("10.9.0.2", 5001);
	size_t total = *(size_t *)arg, got = 0;
	int l, s;

	CHECK((l = ndpip_socket(AF_INET, SOCK_NDPIP, IPPROTO_TCP)) > 2);
	CHECK(ndpip_bind(l, (struct sockaddr *)&at, sizeof(at)) == 0 && ndpip_listen(l, 1) == 0);
	CHECK((s = ndpip_accept(l, NULL, NULL)) > 2);
	for (;;) {
		ssize_t n = ndpip_read(s, buf, sizeof(buf)), i;

		CHECK(n >= 0);
		if (n == 0)
			break;
		for (i = 0; i < n; i++)
			CHECK(buf[i] == (uint8_t)((got + (size_t)i) % 251));
		got += (size_t)n;
	}
	CHECK(got == total);
	CHECK(ndpip_close(s) == 0 && ndpip_close(l) == 0);
	*(volatile size_t *)arg = 0;
	return NULL;
}

int main(int argc, char **argv)
{
	int eal = rte_eal_init(argc, argv), feed, i;
	struct ether_addr own = mac(2);
	struct rte_mempool *pool;
	struct rte_mbuf *m;
	volatile size_t left;
	pthread_t thread;
	double end;

	CHECK(eal >= 0 && argc - eal >= 2);
	left = (size_t)atoi(argv[eal + 1]) << 20;
	pool = rte_pktmbuf_pool_create("own", 8191, 128, 16, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	CHECK(pool != NULL);
	set_up_port(0, pool);
	set_up_port(1, pool);
	ndpip_linux_dpdk_init();
	CHECK((feed = ndpip_register_feed("shared")) >= 0);
	set_up(feed, 2, 1);
	CHECK(ndpip_linux_dpdk_start_iface(feed) == 0);
	CHECK(pthread_create(&thread, NULL, reader, (void *)&left) == 0);
	m = rte_pktmbuf_alloc(pool); /* something that is not for the stack */
	CHECK(m != NULL && rte_pktmbuf_append(m, 60) != NULL);
	memset(rte_pktmbuf_mtod(m, void *), 0x10, 60);
	CHECK(rte_eth_tx_burst(1, 0, &m, 1) == 1); /* port 1 is joined to itself: comes in on it, and goes to port 0 */
	while (left != 0)
		forward(feed, &own);
	CHECK(pthread_join(thread, NULL) == 0);
	for (end = seconds() + 0.3; seconds() < end;) /* the farewells */
		forward(feed, &own);
	CHECK(ndpip_linux_dpdk_stop_iface(feed) == 0);
	for (i = 0; i < 2; i++)
		CHECK(rte_eth_dev_stop((uint16_t)i) == 0);
	CHECK(in_use() == 0);
	printf("forwarded %lu\n", (unsigned long)passed);
	puts("ok");
	return 0;
}
