/*
 * echo serve CONNECTIONS | echo call CONNECTIONS MESSAGES: an epoll server that sends back what it gets, on a plain thread of
 * its own, and a client of many connections at once.
 */
#include "test.h"

#include <pthread.h>

enum { PORT = 7, MOST = 512, SIZE = 3000 };

static int watch(int ep, int op, int fd, uint32_t events, int key)
{
	struct epoll_event ev;

	memset(&ev, 0, sizeof(ev));
	ev.events = events;
	ev.data.u32 = (uint32_t)key;
	return ndpip_epoll_ctl(ep, op, fd, &ev);
}

/* What a connection has received and not yet sent back. */
struct conn {
	int fd;
	size_t begin, end;
	char buf[4096];
};

/* Returns 0 when the connection is over. */
static int serve_one(int ep, struct conn *c, int key)
{
	for (;;) {
		ssize_t n;

		while (c->begin < c->end) {
			n = ndpip_write(c->fd, c->buf + c->begin, c->end - c->begin);
			CHECK(n >= 0);
			if (n == 0)
				return watch(ep, EPOLL_CTL_MOD, c->fd, EPOLLOUT, key) == 0;
			c->begin += (size_t)n;
		}
		c->begin = c->end = 0;
		n = ndpip_read(c->fd, c->buf, sizeof(c->buf));
		if (n < 0) {
			CHECK(errno == EAGAIN);
			return watch(ep, EPOLL_CTL_MOD, c->fd, EPOLLIN, key) == 0;
		}
		if (n == 0)
			return 0;
		c->end = (size_t)n;
	}
}

static void *serve(void *arg)
{
	static struct conn conns[MOST];
	struct sockaddr_in at = name("10.9.0.2", PORT);
	struct epoll_event ev[64];
	int want = *(int *)arg, seen = 0, over = 0, l, ep, n, i;

	CHECK((l = ndpip_socket(AF_INET, SOCK_NDPIP | SOCK_NONBLOCK, IPPROTO_TCP)) > 2);
	CHECK(ndpip_bind(l, (struct sockaddr *)&at, sizeof(at)) == 0 && ndpip_listen(l, MOST) == 0);
	CHECK((ep = ndpip_epoll_create1(0)) > 2);
	CHECK(watch(ep, EPOLL_CTL_ADD, l, EPOLLIN, MOST) == 0);
	while (over < want) {
		CHECK((n = ndpip_epoll_wait(ep, ev, 64, 20000)) > 0);
		for (i = 0; i < n; i++) {
			int key = (int)ev[i].data.u32, fd;

			if (key < MOST) {
				if (!serve_one(ep, &conns[key], key)) {
					CHECK(ndpip_close(conns[key].fd) == 0);
					over++;
				}
				continue;
			}
			while ((fd = ndpip_accept(l, NULL, NULL)) >= 0) { /* it is non-blocking as the listener is */
				conns[seen].fd = fd;
				CHECK(watch(ep, EPOLL_CTL_ADD, fd, EPOLLIN, seen++) == 0);
			}
			CHECK(errno == EAGAIN);
		}
	}
	CHECK(ndpip_close(l) == 0 && ndpip_close(ep) == 0);
	return NULL;
}

static void call(int count, int messages)
{
	static char out[SIZE], in[SIZE];
	static int fds[MOST];
	struct sockaddr_in to = name("10.9.0.2", PORT);
	int i, m;

	for (i = 0; i < count; i++) {
		CHECK((fds[i] = ndpip_socket(AF_INET, SOCK_NDPIP, IPPROTO_TCP)) > 2);
		while (ndpip_connect(fds[i], (struct sockaddr *)&to, sizeof(to)) != 0) {
			CHECK(errno == ECONNREFUSED); /* it does not listen yet */
			usleep(20000);
		}
	}
	for (m = 0; m < messages; m++) {
		for (i = 0; i < count; i++) {
			memset(out, 'a' + (i + m) % 26, sizeof(out));
			CHECK(ndpip_write(fds[i], out, 1 + (size_t)(i * 7 + m * 13) % SIZE) > 0);
		}
		for (i = 0; i < count; i++) {
			size_t want = 1 + (size_t)(i * 7 + m * 13) % SIZE, got = 0, k;

			while (got < want) {
				ssize_t n = ndpip_read(fds[i], in + got, want - got);

				CHECK(n > 0);
				got += (size_t)n;
			}
			for (k = 0; k < want; k++)
				CHECK(in[k] == 'a' + (i + m) % 26);
		}
	}
	for (i = 0; i < count; i++) {
		CHECK(ndpip_shutdown(fds[i], SHUT_WR) == 0);
		CHECK(ndpip_read(fds[i], in, 1) == 0);
		CHECK(ndpip_close(fds[i]) == 0);
	}
}

int main(int argc, char **argv)
{
	int eal = rte_eal_init(argc, argv), server, count;
	pthread_t thread;

	CHECK(eal >= 0 && argc - eal >= 3);
	argv += eal;
	server = strcmp(argv[1], "serve") == 0;
	count = atoi(argv[2]);
	CHECK(count > 0 && count <= MOST);
	ndpip_linux_dpdk_init();
	CHECK(ndpip_linux_dpdk_register_iface(0) == 0);
	set_up(0, server ? 2 : 1, server ? 1 : 2);
	start_client(0);
	if (server) {
		CHECK(pthread_create(&thread, NULL, serve, &count) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
	} else {
		call(count, atoi(argv[3]));
	}
	CHECK(ndpip_linux_dpdk_stop_iface(0) == 0);
	CHECK(in_use() == 0);
	puts("ok");
	return 0;
}
