/*
 * An echo server as one writes it for Linux, with ndpip's calls: non-blocking, level-triggered epoll, all connections on one
 * thread. What starts it is DPDK's and ndpip's: the rest is a search and replace away from the kernel's sockets.
 *
 *   cc -o server server.c $(pkg-config --cflags --libs ndpip)
 *   ./server -l 0-1 --no-huge -m 192 --no-pci --vdev=net_tap0,iface=tap0 &
 *   ip addr add 10.1.0.2/24 dev tap0 && ip link set tap0 up && nc 10.1.0.1 7
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>

#include <ndpip/epoll.h>
#include <ndpip/linux_dpdk.h>

enum { EVENTS = 64, BUFFER = 16384 };

struct conn {
	int fd;
	size_t begin, end; /* what was read and not yet written */
	char buf[BUFFER];
};

static int fail(const char *what)
{
	perror(what);
	return 1;
}

static int watch(int ep, int op, int fd, uint32_t events, void *ptr)
{
	struct epoll_event ev;

	memset(&ev, 0, sizeof(ev));
	ev.events = events;
	ev.data.ptr = ptr;
	return ndpip_epoll_ctl(ep, op, fd, &ev);
}

static void accept_all(int ep, int listener)
{
	int fd;

	while ((fd = ndpip_accept(listener, NULL, NULL)) >= 0) { /* it is non-blocking as the listener is */
		struct conn *c = (struct conn *)calloc(1, sizeof(*c));

		if (c == NULL || watch(ep, EPOLL_CTL_ADD, fd, EPOLLIN, c) < 0) {
			free(c);
			ndpip_close(fd);
			continue;
		}
		c->fd = fd;
	}
}

/* Writes what there is, then reads more. Returns what to wait for, or 0 when the connection is over. */
static uint32_t serve(struct conn *c)
{
	for (;;) {
		while (c->begin < c->end) {
			ssize_t n = ndpip_write(c->fd, c->buf + c->begin, c->end - c->begin);

			if (n < 0)
				return 0;
			if (n == 0) /* the window is full: ndpip_write says it with 0 */
				return EPOLLOUT;
			c->begin += (size_t)n;
		}
		c->begin = 0;
		c->end = 0;
		ssize_t n = ndpip_read(c->fd, c->buf, sizeof(c->buf));

		if (n < 0)
			return errno == EAGAIN ? (uint32_t)EPOLLIN : 0;
		if (n == 0)
			return 0;
		c->end = (size_t)n;
	}
}

static int start(int port)
{
	struct in_addr own, none;

	inet_aton("10.1.0.1", &own);
	none.s_addr = 0;
	ndpip_linux_dpdk_init();
	if (ndpip_linux_dpdk_register_iface(port) < 0)
		return -1;
	if (ndpip_linux_dpdk_set_inaddr(port, own) < 0 || ndpip_set_network(port, 24, none) < 0)
		return -1;
	return ndpip_linux_dpdk_start_iface(port);
}

int main(int argc, char **argv)
{
	struct epoll_event events[EVENTS];
	struct sockaddr_in at;
	int listener, ep;

	if (rte_eal_init(argc, argv) < 0)
		return 1; /* DPDK has said why */
	if (start(0) < 0)
		return fail("start");
	memset(&at, 0, sizeof(at));
	at.sin_family = AF_INET;
	at.sin_port = htons(7);
	listener = ndpip_socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (listener < 0 || ndpip_bind(listener, (struct sockaddr *)&at, sizeof(at)) < 0 || ndpip_listen(listener, 128) < 0)
		return fail("listen");
	ep = ndpip_epoll_create1(0);
	if (ep < 0 || watch(ep, EPOLL_CTL_ADD, listener, EPOLLIN, NULL) < 0)
		return fail("epoll");
	for (;;) {
		int n = ndpip_epoll_wait(ep, events, EVENTS, -1), i;

		if (n < 0)
			return fail("epoll_wait");
		for (i = 0; i < n; i++) {
			struct conn *c = (struct conn *)events[i].data.ptr;
			uint32_t next;

			if (c == NULL) {
				accept_all(ep, listener);
				continue;
			}
			next = serve(c);
			if (next == 0 || watch(ep, EPOLL_CTL_MOD, c->fd, next, c) < 0) {
				ndpip_close(c->fd);
				free(c);
			}
		}
	}
}
