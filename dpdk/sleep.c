#define _GNU_SOURCE
#include "sleep.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <rte_ethdev.h>
#include <rte_interrupts.h>

struct sleeper {
	struct ndpip_sleeper s;
	struct rte_epoll_event kicked; /* the EAL keeps a pointer to it */
};

struct ndpip_sleeper *ndpip_sleeper_new(int port, uint16_t rxq, int *err)
{
	struct sleeper *p = calloc(1, sizeof(*p));
	struct ndpip_sleeper *s = &p->s;

	if (p == NULL) {
		*err = ENOMEM;
		return NULL;
	}
	s->kick = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->kick < 0 || s->epoll < 0) {
		*err = errno;
		ndpip_sleeper_free(s);
		return NULL;
	}
	if (port < 0)
		return s;
	s->port = (uint16_t)port;
	s->rxq = rxq;
	p->kicked.epdata.event = EPOLLIN;
	if (rte_eth_dev_rx_intr_ctl_q(s->port, rxq, s->epoll, RTE_INTR_EVENT_ADD, NULL) != 0)
		return s;
	if (rte_epoll_ctl(s->epoll, EPOLL_CTL_ADD, s->kick, &p->kicked) != 0) {
		rte_eth_dev_rx_intr_ctl_q(s->port, rxq, s->epoll, RTE_INTR_EVENT_DEL, NULL);
		return s;
	}
	s->interrupts = 1;
	return s;
}

void ndpip_sleeper_arm(struct ndpip_sleeper *s, int on)
{
	if (!s->interrupts)
		return;
	/* -ENOTSUP: the queue's file descriptor is readable as long as there are frames, and needs no switch (net_tap). */
	if (on)
		(void)rte_eth_dev_rx_intr_enable(s->port, s->rxq);
	else
		(void)rte_eth_dev_rx_intr_disable(s->port, s->rxq);
}

void ndpip_sleeper_wait(struct ndpip_sleeper *s, int64_t ns)
{
	struct rte_epoll_event ev[2];
	struct pollfd p = { .fd = s->kick, .events = POLLIN };
	struct timespec t = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
	uint64_t n;

	if (s->interrupts)
		(void)rte_epoll_wait(s->epoll, ev, 2, ns < 0 ? -1 : ns >= 3600000000000 ? 3600000 : (int)((ns + 999999) / 1000000));
	else
		(void)ppoll(&p, 1, ns < 0 ? NULL : &t, NULL);
	(void)!read(s->kick, &n, sizeof(n));
}

void ndpip_sleeper_free(struct ndpip_sleeper *s)
{
	struct sleeper *p = (struct sleeper *)s;

	if (s->interrupts) {
		(void)rte_eth_dev_rx_intr_ctl_q(s->port, s->rxq, s->epoll, RTE_INTR_EVENT_DEL, NULL);
		(void)rte_epoll_ctl(s->epoll, EPOLL_CTL_DEL, s->kick, &p->kicked);
	}
	if (s->kick >= 0)
		close(s->kick);
	if (s->epoll >= 0)
		close(s->epoll);
	free(p);
}
