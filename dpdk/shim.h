/* The memory that Go and C share, and the one call that is made per burst. */
#ifndef NDPIP_SHIM_H
#define NDPIP_SHIM_H

#include <stdint.h>

/* Capacities of a block's arrays. layout.go checks each against its Go twin when the package is compiled. */
enum {
	NDPIP_RX_CAP = 256,
	NDPIP_TX_CAP = 512,
	NDPIP_STOCK_CAP = 256,
	NDPIP_FREE_CAP = 1024,
};

enum {
	NDPIP_OP_YIELD = 1 << 0,
	NDPIP_OP_TX = 1 << 1,
	NDPIP_OP_FREE = 1 << 2,
	NDPIP_OP_STOCK = 1 << 3,
	NDPIP_OP_RX = 1 << 4,
};

enum {
	NDPIP_RX_IP_GOOD = 1 << 0,
	NDPIP_RX_IP_BAD = 1 << 1,
	NDPIP_RX_L4_GOOD = 1 << 2,
	NDPIP_RX_L4_BAD = 1 << 3,
	NDPIP_RX_CHAINED = 1 << 4,
	NDPIP_TX_IP_SUM = 1 << 5,
	NDPIP_TX_TCP_SUM = 1 << 6,
	NDPIP_TX_UDP_SUM = 1 << 7,
	NDPIP_TX_RETAIN = 1 << 8,
	NDPIP_TX_SUMS = NDPIP_TX_IP_SUM | NDPIP_TX_TCP_SUM | NDPIP_TX_UDP_SUM,
};

struct ndpip_frame {
	uint64_t handle; /* struct rte_mbuf *; a number, so that cgo checks no pointer */
	uint64_t addr;
	uint32_t len;
	uint32_t flags;
};

/* The driver's own part of a block. Addresses are numbers here for the same reason as above. */
struct ndpip_priv {
	uint64_t lock;      /* rte_spinlock_t * of a transmit queue that lanes share, or 0 */
	uint64_t pool;      /* struct rte_mempool * that OpStock takes from, or 0 */
	uint64_t gate;      /* struct ndpip_gate * of the port (gate.h) */
	uint64_t tx_bad;    /* frames dropped because the driver cannot ever send them */
	uint32_t stock_off; /* from a pool's mbuf to the first byte of a frame in it */
	uint32_t stock_len; /* and the room from there */
	uint16_t port, rxq, txq;
	uint16_t has_rx;
	uint64_t in_burst;  /* the lane's side of the gate: set while it is in the driver */
	uint64_t next;      /* struct ndpip_block * of the gate's next lane */
};

/* dpdk.Block. */
struct ndpip_block {
	uint32_t nfree, ntx, nstock, nrx;
	uint32_t rx_max, want;
	uint32_t fill;
	uint32_t rx_line;   /* from a received mbuf to its frame's first cache line, as it was with the last one */
	uint64_t tsc, tx_sent, tx_refuse, no_mem;
	struct ndpip_priv priv;
	uint64_t free[NDPIP_FREE_CAP];
	struct ndpip_frame tx[NDPIP_TX_CAP];
	struct ndpip_frame stock[NDPIP_STOCK_CAP];
	struct ndpip_frame rx[NDPIP_RX_CAP];
};

/* ndpip_exchange takes the steps of op on b, in the order of the NDPIP_OP_ constants. It neither calls Go nor keeps b. */
void ndpip_exchange(struct ndpip_block *b, uint32_t op);

#endif
