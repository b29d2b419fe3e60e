/*
 * bulk recv|send copy|zero MEGABYTES ROUNDS OWN PEER [all]: one connection that carries so much, non-blocking with epoll, by
 * write and read or without a copy. The calls come in the order that programs for the original have. Each round starts the
 * interface and stops it. OWN and PEER are the last bytes of the addresses; all: frames go to ff:ff:ff:ff:ff:ff.
 */
#include "test.h"

enum { PORT = 5001, CHUNK = 32 };

static size_t total;
static int zero;

static uint8_t pattern(size_t at)
{
	return (uint8_t)(at % 251);
}

static void fill(uint8_t *p, size_t n, size_t at)
{
	size_t i;

	for (i = 0; i < n; i++)
		p[i] = pattern(at + i);
}

static void compare(const uint8_t *p, size_t n, size_t at)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (p[i] != pattern(at + i)) {
			fprintf(stderr, "byte %zu is %u\n", at + i, p[i]);
			exit(1);
		}
	}
}

static int watch(int ep, int op, int fd, uint32_t events)
{
	struct epoll_event ev;

	memset(&ev, 0, sizeof(ev));
	ev.events = events;
	ev.data.fd = fd;
	return ndpip_epoll_ctl(ep, op, fd, &ev);
}

static int wait_for(int ep, int fd)
{
	struct epoll_event ev[4];
	int n = ndpip_epoll_wait(ep, ev, 4, 10000);

	CHECK(n == 1 && ev[0].data.fd == fd);
	return (int)ev[0].events;
}

static size_t send_zero(int s, size_t at)
{
	struct ndpip_pbuf *pb[CHUNK];
	size_t n = ndpip_alloc(s, pb, CHUNK), i, sent = 0;
	int taken;

	CHECK(n > 0 || errno == ENOBUFS);
	for (i = 0; i < n; i++) {
		size_t len = ndpip_pbuf_length(pb[i]);

		if (len > total - at - sent)
			len = total - at - sent;
		CHECK(ndpip_pbuf_resize(pb[i], (uint16_t)len) == 0);
		fill((uint8_t *)ndpip_pbuf_data(pb[i]), len, at + sent);
		CHECK(ndpip_prepare(s, pb[i]) == 0);
		sent += len;
	}
	taken = ndpip_send(s, pb, (uint16_t)n);
	CHECK(taken >= 0);
	for (i = (size_t)taken; i < n; i++)
		sent -= ndpip_pbuf_length(pb[i]);
	CHECK(ndpip_free(s, pb + taken, n - (size_t)taken) == 0);
	return sent;
}

static size_t send_copy(int s, size_t at)
{
	static uint8_t buf[20000];
	size_t n = total - at < sizeof(buf) ? total - at : sizeof(buf);
	ssize_t k;

	fill(buf, n, at);
	k = ndpip_write(s, buf, n);
	CHECK(k >= 0); /* 0: the window is full */
	return (size_t)k;
}

/* Connects: 0, or what SO_ERROR says. */
static int reach(int ep, int s, struct sockaddr_in to)
{
	int error = -1;

	errno = 0;
	CHECK(ndpip_connect(s, (struct sockaddr *)&to, sizeof(to)) == -1 && errno == EINPROGRESS);
	CHECK(watch(ep, EPOLL_CTL_ADD, s, EPOLLOUT) == 0);
	CHECK((wait_for(ep, s) & EPOLLOUT) != 0);
	CHECK(ndpip_getsockopt(s, SOL_SOCKET, SO_ERROR, &error, sizeof(error)) == 0);
	return error;
}

static void sender(struct sockaddr_in to)
{
	int s, ep, error, tries = 0;
	size_t at = 0, k;
	char c;

	CHECK((ep = ndpip_epoll_create1(0)) > 2);
	for (;;) {
		CHECK((s = ndpip_socket(AF_INET, SOCK_NDPIP | SOCK_NONBLOCK, IPPROTO_TCP)) > 2);
		error = reach(ep, s, to);
		if (error == 0)
			break;
		CHECK(error == ECONNREFUSED && ++tries < 100); /* it does not listen yet */
		CHECK(ndpip_close(s) == 0);
		usleep(20000);
	}
	while (at < total) {
		k = zero ? send_zero(s, at) : send_copy(s, at);
		at += k;
		if (k == 0)
			CHECK((wait_for(ep, s) & EPOLLOUT) != 0);
	}
	CHECK(ndpip_shutdown(s, SHUT_WR) == 0);
	CHECK(watch(ep, EPOLL_CTL_MOD, s, EPOLLIN) == 0);
	CHECK((wait_for(ep, s) & EPOLLIN) != 0);
	CHECK(ndpip_read(s, &c, 1) == 0); /* the receiver has read all and closed */
	CHECK(ndpip_close(s) == 0 && ndpip_close(ep) == 0);
}

/* Reads what there is: whether the stream goes on. */
static int receive(int s, size_t *at)
{
	static uint8_t buf[65536];
	struct ndpip_pbuf *pb[CHUNK];
	int n, i;

	if (!zero) {
		n = (int)ndpip_read(s, buf, sizeof(buf));
		CHECK(n >= 0 || errno == EAGAIN);
		if (n > 0)
			compare(buf, (size_t)n, *at);
		*at += n > 0 ? (size_t)n : 0;
		return n != 0;
	}
	n = ndpip_recv(s, pb, CHUNK);
	CHECK(n >= 0 || errno == EAGAIN);
	for (i = 0; i < n; i++) {
		compare((uint8_t *)ndpip_pbuf_data(pb[i]), ndpip_pbuf_length(pb[i]), *at);
		*at += ndpip_pbuf_length(pb[i]);
	}
	CHECK(n <= 0 || ndpip_free(s, pb, (size_t)n) == 0);
	return n != 0;
}

static void receiver(struct sockaddr_in at_name)
{
	int l = ndpip_socket(AF_INET, SOCK_NDPIP | SOCK_NONBLOCK, IPPROTO_TCP), ep, s, one = 1;
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	size_t at = 0;

	CHECK(l > 2);
	CHECK(ndpip_setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0);
	CHECK(ndpip_bind(l, (struct sockaddr *)&at_name, sizeof(at_name)) == 0);
	CHECK(ndpip_listen(l, 8) == 0);
	CHECK((ep = ndpip_epoll_create1(0)) > 2);
	CHECK(watch(ep, EPOLL_CTL_ADD, l, EPOLLIN) == 0);
	CHECK(wait_for(ep, l) == EPOLLIN);
	s = ndpip_accept(l, (struct sockaddr *)&from, &len);
	CHECK(s > 2);
	CHECK(watch(ep, EPOLL_CTL_DEL, l, 0) == 0);
	CHECK(watch(ep, EPOLL_CTL_ADD, s, EPOLLIN) == 0);
	do {
		CHECK((wait_for(ep, s) & EPOLLIN) != 0);
	} while (receive(s, &at));
	CHECK(at == total);
	CHECK(ndpip_close(s) == 0 && ndpip_close(l) == 0 && ndpip_close(ep) == 0);
}

static void wait_link_down(void)
{
	struct rte_eth_link link;
	int i;

	for (i = 0; i < 1000; i++) {
		CHECK(rte_eth_link_get_nowait(0, &link) == 0);
		if (link.link_status == RTE_ETH_LINK_DOWN)
			return;
		usleep(10000);
	}
	CHECK(!"the server has not stopped");
}

int main(int argc, char **argv)
{
	struct ndpip_arp_peer peer;
	int eal = rte_eal_init(argc, argv), rounds, i;
	uint8_t own, other;
	unsigned int before;
	char text[2][32];
	double begin;

	CHECK(eal >= 0);
	argc -= eal;
	argv += eal;
	CHECK(argc >= 7);
	zero = strcmp(argv[2], "zero") == 0;
	total = (size_t)atoi(argv[3]) << 20;
	rounds = atoi(argv[4]);
	own = (uint8_t)atoi(argv[5]);
	other = (uint8_t)atoi(argv[6]);
	snprintf(text[0], sizeof(text[0]), "10.9.0.%u", own);
	snprintf(text[1], sizeof(text[1]), "10.9.0.%u", other);
	memset(&peer, 0, sizeof(peer));
	peer.inaddr = ip(text[1]);
	peer.ethaddr = mac(other);
	if (argc > 7)
		memset(&peer.ethaddr, 0xff, sizeof(peer.ethaddr));

	before = in_use();
	for (i = 0; i < rounds; i++) {
		ndpip_linux_dpdk_init();
		CHECK(ndpip_linux_dpdk_register_iface(0) == 0);
		CHECK(ndpip_linux_dpdk_set_ethaddr(0, mac(own)) == 0);
		CHECK(ndpip_linux_dpdk_set_inaddr(0, ip(text[0])) == 0);
		CHECK(ndpip_linux_dpdk_set_arp_table(0, &peer, 1) == 0);
		CHECK(ndpip_linux_dpdk_set_burst_size(0, 32) == 0);
		start_client(0);
		begin = seconds();
		if (strcmp(argv[1], "send") == 0)
			sender(name(text[1], PORT));
		else
			receiver(name(text[0], PORT));
		printf("round %d: %.1f Gb/s\n", i, (double)total * 8e-9 / (seconds() - begin));
		fflush(stdout);
		if (strcmp(argv[1], "send") == 0)
			wait_link_down(); /* a net_memif client finds a server that goes down no more: the server stops first */
		CHECK(ndpip_linux_dpdk_stop_iface(0) == 0);
		CHECK(in_use() == before);
	}
	CHECK(rte_eal_cleanup() == 0);
	puts("ok");
	return 0;
}
