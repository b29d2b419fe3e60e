/*
 * ndpip: interfaces, which stand on ports of DPDK's. The program calls rte_eal_init itself, before all else. `iface` is the
 * number of the DPDK port. Each call returns 0, or -1 with errno; what was wrong goes to DPDK's log.
 */
#ifndef NDPIP_LINUX_DPDK_H
#define NDPIP_LINUX_DPDK_H

#include <net/ethernet.h>
#include <netinet/ether.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#include <ndpip/pbuf.h>
#include <ndpip/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rte_mbuf;
struct rte_mempool;

/* A neighbour with its Ethernet address; ff:ff:ff:ff:ff:ff sends to all stations. Others are asked for by ARP. */
struct ndpip_arp_peer {
	struct in_addr inaddr;
	struct ether_addr ethaddr;
};

void ndpip_linux_dpdk_init(void);

/* Makes an interface of a port that ndpip is to set up: queues, offloads and buffers are its affair. */
int ndpip_linux_dpdk_register_iface(int port);

/* Settings, while the interface is stopped. inaddr must be set; the Ethernet address is the port's if it is not set. */
int ndpip_linux_dpdk_set_ethaddr(int iface, struct ether_addr ethaddr);
int ndpip_linux_dpdk_set_inaddr(int iface, struct in_addr inaddr);
int ndpip_linux_dpdk_set_arp_table(int iface, struct ndpip_arp_peer *peers, size_t count);
int ndpip_linux_dpdk_set_burst_size(int iface, uint16_t burst);

/* Without this every address is on the link. A gateway of 0.0.0.0 is none. */
int ndpip_set_network(int iface, int prefix_length, struct in_addr gateway);

/* How many buffers each of the interface's two large pools has: 512 or more, before its first start. 8192 if it is not set. */
int ndpip_set_buffers(int iface, unsigned int buffers);

/* Whether threads that poll in vain give their CPU away in between (they do, unless it is turned off). */
int ndpip_set_yield(int iface, int on);

/* Starts the port, and the worker on the next free lcore (without one on a thread of its own). */
int ndpip_linux_dpdk_start_iface(int iface);

/*
 * Closes the interface's sockets, lets their connections end (0.3 s), and stops worker and port. The lcore is free then,
 * and the interface can be started again.
 */
int ndpip_linux_dpdk_stop_iface(int iface);

/*
 * Sockets and epoll instances that the calling thread makes from now on belong to this interface. Without it they belong to
 * the one that was started first.
 */
int ndpip_use_iface(int iface);

/*
 * Makes an interface of a port that the program has configured and started itself, and goes on using: it receives on
 * rx_queue, and sends on tx_queue and worker_tx_queue, which may be the same. The queues are the stack's alone from
 * start_iface to stop_iface, and the port is left running. The frames that are sent lie in pool; NULL: in one of ndpip's.
 */
int ndpip_attach_port(int port, uint16_t rx_queue, uint16_t tx_queue, uint16_t worker_tx_queue, struct rte_mempool *pool);

/*
 * Makes an interface without a port: the program hands frames in and takes frames out, whole ones with their Ethernet
 * headers. Returns the interface's number. name has at most 12 characters.
 *
 * ndpip_input returns how many frames were taken, the first ones; those are the stack's, the others the program's. They may
 * come from any pool, and go back to it. ndpip_output returns how many frames it gives: they are the program's, to send or to
 * free, and not to be written to, since the stack keeps them for retransmission. Each of the two is for one thread at a time,
 * and not for the time of stop_iface. Neither sets errno.
 */
int ndpip_register_feed(const char *name);
uint16_t ndpip_input(int iface, struct rte_mbuf **frames, uint16_t count);
uint16_t ndpip_output(int iface, struct rte_mbuf **frames, uint16_t count);

#ifdef __cplusplus
}
#endif

#endif
