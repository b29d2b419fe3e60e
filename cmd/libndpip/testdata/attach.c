/*
 * Ports that the program has set up itself, with two queues of which it keeps one. Two stacks get the others, one with the
 * program's own pool, which has a private area of a size that is nobody else's. Twice in one process.
 */
#include "test.h"

#include <pthread.h>
#include <rte_eth_ring.h>
#include <rte_ring.h>

static void two_queues(int *a, int *b, struct rte_mempool *pool)
{
	struct rte_ring *ab[2], *ba[2];
	struct rte_eth_conf conf;
	int i;

	for (i = 0; i < 2; i++) {
		CHECK((ab[i] = rte_ring_create(i ? "ab1" : "ab0", 1024, SOCKET_ID_ANY, 0)) != NULL);
		CHECK((ba[i] = rte_ring_create(i ? "ba1" : "ba0", 1024, SOCKET_ID_ANY, 0)) != NULL);
	}
	*a = rte_eth_from_rings("two_a", ba, 2, ab, 2, SOCKET_ID_ANY);
	*b = rte_eth_from_rings("two_b", ab, 2, ba, 2, SOCKET_ID_ANY);
	CHECK(*a >= 0 && *b >= 0);
	memset(&conf, 0, sizeof(conf));
	for (i = 0; i < 2; i++) {
		uint16_t port = (uint16_t)(i ? *b : *a), q;

		CHECK(rte_eth_dev_configure(port, 2, 2, &conf) == 0);
		for (q = 0; q < 2; q++) {
			CHECK(rte_eth_rx_queue_setup(port, q, 512, SOCKET_ID_ANY, NULL, pool) == 0);
			CHECK(rte_eth_tx_queue_setup(port, q, 512, SOCKET_ID_ANY, NULL) == 0);
		}
		CHECK(rte_eth_dev_start(port) == 0);
	}
}

/* What is received lies in the sender's buffers, with their private area. */
static void *sink(void *arg)
{
	struct ndpip_pbuf *pb[32];
	size_t total = 0;
	int fd = *(int *)arg, n, i;

	while ((n = ndpip_recv(fd, pb, 32)) > 0) {
		for (i = 0; i < n; i++) {
			uint8_t *p = (uint8_t *)ndpip_pbuf_data(pb[i]);
			uint16_t len = ndpip_pbuf_length(pb[i]);

			CHECK(p[0] == (uint8_t)(total % 251) && p[len - 1] == (uint8_t)((total + len - 1) % 251));
			total += len;
		}
		CHECK(ndpip_free(fd, pb, (size_t)n) == 0);
	}
	CHECK(n == 0 && total == 8 << 20);
	CHECK(ndpip_close(fd) == 0);
	return NULL;
}

static void use(int a, int b, struct rte_mempool *pool)
{
	struct sockaddr_in at = name("10.9.0.2", 80);
	struct rte_mbuf *m;
	static char buf[1 << 20];
	size_t sent = 0, k;
	pthread_t thread;
	int l, s, t, i;

	CHECK(ndpip_use_iface(b) == 0 && (l = ndpip_socket(AF_INET, SOCK_STREAM, 0)) > 2);
	CHECK(ndpip_bind(l, (struct sockaddr *)&at, sizeof(at)) == 0 && ndpip_listen(l, 1) == 0);
	CHECK(ndpip_use_iface(a) == 0 && (s = ndpip_socket(AF_INET, SOCK_STREAM, 0)) > 2);
	CHECK(ndpip_connect(s, (struct sockaddr *)&at, sizeof(at)) == 0);
	CHECK((t = ndpip_accept(l, NULL, NULL)) > 2);
	CHECK(pthread_create(&thread, NULL, sink, &t) == 0);
	for (i = 0; i < 8; i++) {
		for (k = 0; k < sizeof(buf); k++)
			buf[k] = (char)(uint8_t)((sent + k) % 251);
		CHECK(ndpip_write(s, buf, sizeof(buf)) == sizeof(buf));
		sent += sizeof(buf);
		/* The program's own queue goes on meanwhile. */
		CHECK((m = rte_pktmbuf_alloc(pool)) != NULL);
		CHECK(rte_eth_tx_burst((uint16_t)a, 0, &m, 1) == 1);
		CHECK(rte_eth_rx_burst((uint16_t)b, 0, &m, 1) == 1);
		rte_pktmbuf_free(m);
	}
	CHECK(ndpip_close(s) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(ndpip_close(l) == 0);
}

/* What was said last may lie in the stack's queue: the port is the program's, and so is that. */
static void drain(int port)
{
	struct rte_mbuf *m;

	while (rte_eth_rx_burst((uint16_t)port, 1, &m, 1) == 1)
		rte_pktmbuf_free(m);
}

int main(int argc, char **argv)
{
	struct rte_mempool *pool;
	int a, b, round;

	CHECK(rte_eal_init(argc, argv) >= 0);
	pool = rte_pktmbuf_pool_create("own", 4095, 64, 192, 3000, SOCKET_ID_ANY);
	CHECK(pool != NULL);
	two_queues(&a, &b, pool);
	ndpip_linux_dpdk_init();
	for (round = 0; round < 2; round++) {
		CHECK(ndpip_attach_port(a, 1, 1, 1, pool) == 0);
		CHECK(ndpip_attach_port(b, 1, 1, 1, NULL) == 0);
		set_up(a, 1, 2);
		set_up(b, 2, 1);
		CHECK(ndpip_linux_dpdk_start_iface(a) == 0);
		CHECK(ndpip_linux_dpdk_start_iface(b) == 0);
		use(a, b, pool);
		CHECK(ndpip_linux_dpdk_stop_iface(a) == 0);
		CHECK(ndpip_linux_dpdk_stop_iface(b) == 0);
		drain(a);
		drain(b);
		CHECK(in_use() == 0);
	}
	puts("ok");
	return 0;
}
