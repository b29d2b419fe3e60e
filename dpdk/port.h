/* Ports: what rte_ethdev does with structures and macros, as plain calls. */
#ifndef NDPIP_PORT_H
#define NDPIP_PORT_H

#include <stdint.h>

struct rte_mempool;
struct ndpip_block;

struct ndpip_port_info {
	char driver[64];
	uint32_t max_rxq, max_txq;     /* queues that the port can have */
	uint32_t rxq, txq;             /* and has */
	uint32_t rx_can, tx_can;       /* checksum offloads it can do, as NDPIP_RX_*_GOOD and NDPIP_TX_*_SUM */
	uint32_t rx_on, tx_on;         /* and does on queue 0 */
	uint32_t min_mtu, max_mtu, mtu;
	int32_t socket;
	uint8_t mac[6];
	uint8_t up, duplex;
	uint32_t speed;                /* Mb/s, 0 unknown */
};

struct ndpip_port_conf {
	uint16_t rxq, txq, rx_desc, tx_desc; /* in: wanted; out: what it became */
	uint16_t mtu;                        /* 0: the driver's */
	uint8_t offload, promiscuous, interrupts;
	struct rte_mempool *pool;
};

struct ndpip_port_stats {
	uint64_t rx_frames, tx_frames, rx_bytes, tx_bytes, rx_missed, rx_errors, tx_errors, rx_no_mbuf;
};

/* Each returns 0 or a negated errno; *step names the DPDK function that failed. */
int ndpip_port_info(uint16_t port, struct ndpip_port_info *info, const char **step);
int ndpip_port_configure(uint16_t port, struct ndpip_port_conf *conf, const char **step);
int ndpip_port_stats(uint16_t port, struct ndpip_port_stats *out);
int ndpip_port_link(uint16_t port);
int ndpip_port_set_mac(uint16_t port, const uint8_t mac[6]);

/* ndpip_memif_client says whether a net_memif port is the client of its link. */
int ndpip_memif_client(uint16_t port);

/* Bursts of mbufs by their addresses, for those who keep mbufs themselves; the pool of a receive queue, or NULL. */
uint16_t ndpip_rx_burst(uint16_t port, uint16_t q, uintptr_t *b, uint16_t n);
uint16_t ndpip_tx_burst(uint16_t port, uint16_t q, uintptr_t *b, uint16_t n);
struct rte_mempool *ndpip_rx_pool(uint16_t port, uint16_t q);
void ndpip_free_buf(uintptr_t b);

/* Two net_ring ports, each receiving on the rings that the other sends on. The names are "net_ring_" NAME "a" and "b". */
#define NDPIP_RING_QUEUES 8
struct ndpip_ring_pair {
	uint16_t a, b;
	uint32_t queues;
	struct rte_ring *ab[NDPIP_RING_QUEUES], *ba[NDPIP_RING_QUEUES];
};
int ndpip_ring_pair(const char *name, uint32_t size, uint32_t queues, struct ndpip_ring_pair *out, const char **step);
void ndpip_ring_pair_free(struct ndpip_ring_pair *p);

/* Lanes: a block in DPDK's memory, zeroed, or NULL; and its release, buffers first. */
struct ndpip_block *ndpip_lane_new(uint16_t port, int rxq, uint16_t txq, struct rte_mempool *pool, int *err);
void ndpip_lane_free(struct ndpip_block *b);
void *ndpip_lock_new(void);
void ndpip_lock_free(void *lock);
uint64_t ndpip_tsc_hz(void);

#endif
