/* Interfaces: what is C's affair. Settings are passed on to Go; lcores, the log and fed frames need no Go. */
#include <ndpip/linux_dpdk.h>

#include <signal.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_log.h>

#include "_cgo_export.h"
#include "glue.h"

__thread int ndpip_slot = -1;

void ndpip_linux_dpdk_init(void)
{
	ndpip_shield_signals();
	ndpip_go_init();
}

int ndpip_linux_dpdk_register_iface(int port)
{
	return (int)result(ndpip_go_register(port));
}

int ndpip_linux_dpdk_set_ethaddr(int iface, struct ether_addr ethaddr)
{
	return (int)result(ndpip_go_set_ethaddr(iface, ethaddr.ether_addr_octet));
}

int ndpip_linux_dpdk_set_inaddr(int iface, struct in_addr inaddr)
{
	return (int)result(ndpip_go_set_inaddr(iface, ntohl(inaddr.s_addr)));
}

int ndpip_linux_dpdk_set_arp_table(int iface, struct ndpip_arp_peer *peers, size_t count)
{
	size_t i;
	int64_t r = peers == NULL && count > 0 ? -EFAULT : ndpip_go_clear_peers(iface);

	for (i = 0; i < count && r >= 0; i++)
		r = ndpip_go_add_peer(iface, ntohl(peers[i].inaddr.s_addr), peers[i].ethaddr.ether_addr_octet);
	return (int)result(r);
}

int ndpip_linux_dpdk_set_burst_size(int iface, uint16_t burst)
{
	return (int)result(ndpip_go_set_burst(iface, burst));
}

int ndpip_set_network(int iface, int prefix_length, struct in_addr gateway)
{
	return (int)result(ndpip_go_set_network(iface, prefix_length, ntohl(gateway.s_addr)));
}

int ndpip_set_buffers(int iface, unsigned int buffers)
{
	return (int)result(ndpip_go_set_buffers(iface, buffers));
}

int ndpip_set_yield(int iface, int on)
{
	return (int)result(ndpip_go_set_yield(iface, on != 0));
}

int ndpip_linux_dpdk_start_iface(int iface)
{
	ndpip_shield_signals();
	return (int)result(ndpip_go_start(iface));
}

int ndpip_linux_dpdk_stop_iface(int iface)
{
	return (int)result(ndpip_go_stop(iface));
}

int ndpip_use_iface(int iface)
{
	int64_t slot = ndpip_go_slot(iface);

	if (slot >= 0)
		ndpip_slot = (int)slot;
	return slot < 0 ? (int)result(slot) : 0;
}

int ndpip_attach_port(int port, uint16_t rx_queue, uint16_t tx_queue, uint16_t worker_tx_queue, struct rte_mempool *pool)
{
	return (int)result(ndpip_go_attach(port, rx_queue, tx_queue, worker_tx_queue, pool));
}

int ndpip_register_feed(const char *name)
{
	return (int)result(name == NULL ? -EFAULT : ndpip_go_register_feed((char *)name));
}

/* The program's end of a feed is the other port of a net_ring pair. One more than its number; 0: no feed. */
static int feeds[RTE_MAX_ETHPORTS];

void ndpip_set_feed(int iface, int port)
{
	feeds[iface] = port + 1;
}

uint16_t ndpip_input(int iface, struct rte_mbuf **frames, uint16_t count)
{
	if (iface < 0 || iface >= RTE_MAX_ETHPORTS || feeds[iface] == 0 || frames == NULL)
		return 0;
	return rte_eth_tx_burst((uint16_t)(feeds[iface] - 1), 0, frames, count);
}

uint16_t ndpip_output(int iface, struct rte_mbuf **frames, uint16_t count)
{
	if (iface < 0 || iface >= RTE_MAX_ETHPORTS || feeds[iface] == 0 || frames == NULL)
		return 0;
	return rte_eth_rx_burst((uint16_t)(feeds[iface] - 1), 0, frames, count);
}

int ndpip_lcore_free(void)
{
	unsigned int lcore;

	RTE_LCORE_FOREACH_WORKER(lcore) {
		if (rte_eal_get_lcore_state(lcore) == WAIT)
			return (int)lcore;
	}
	return -1;
}

static int work(void *slot)
{
	ndpip_go_work((int)(intptr_t)slot);
	return 0;
}

int ndpip_lcore_start(int lcore, int slot)
{
	return rte_eal_remote_launch(work, (void *)(intptr_t)slot, (unsigned int)lcore);
}

void ndpip_lcore_wait(int lcore)
{
	rte_eal_wait_lcore((unsigned int)lcore);
}

void ndpip_log(int error, const char *text)
{
	rte_log(error ? RTE_LOG_ERR : RTE_LOG_NOTICE, RTE_LOGTYPE_USER1, "ndpip: %s\n", text);
}

/*
 * A handler that was installed without SA_ONSTACK (net_tap's, or the program's) would run on the small stack of whichever
 * goroutine the signal finds. Go sees to those that it finds when it is loaded; the program may have installed more.
 */
void ndpip_shield_signals(void)
{
	struct sigaction sa;
	int sig;

	for (sig = 1; sig < NSIG; sig++) {
		if (sigaction(sig, NULL, &sa) != 0 || (sa.sa_flags & SA_ONSTACK))
			continue;
		if (!(sa.sa_flags & SA_SIGINFO) && (sa.sa_handler == SIG_DFL || sa.sa_handler == SIG_IGN))
			continue;
		sa.sa_flags |= SA_ONSTACK;
		sigaction(sig, &sa, NULL);
	}
}
