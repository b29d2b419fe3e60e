/* rte_eth_dev_conf_get is marked experimental; it has been the same since 21.11. */
#define ALLOW_EXPERIMENTAL_API
#include "port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <rte_spinlock.h>
#include <rte_version.h>

#include "ethdev.h"
#include "gate.h"
#include "shim.h"

_Static_assert(NDPIP_ETH_NAME_MAX_LEN >= RTE_ETH_NAME_MAX_LEN, "a port's name fits");

static uint32_t rx_sums(uint64_t off)
{
	return ((off & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM) ? NDPIP_RX_IP_GOOD : 0) |
	       ((off & RTE_ETH_RX_OFFLOAD_TCP_CKSUM) && (off & RTE_ETH_RX_OFFLOAD_UDP_CKSUM) ? NDPIP_RX_L4_GOOD : 0);
}

static uint32_t tx_sums(uint64_t off)
{
	return ((off & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM) ? NDPIP_TX_IP_SUM : 0) |
	       ((off & RTE_ETH_TX_OFFLOAD_TCP_CKSUM) ? NDPIP_TX_TCP_SUM : 0) |
	       ((off & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) ? NDPIP_TX_UDP_SUM : 0);
}

int ndpip_port_info(uint16_t port, struct ndpip_port_info *o, const char **step)
{
	struct rte_eth_dev_info info;
	struct rte_eth_rxq_info rq;
	struct rte_eth_txq_info tq;
	struct rte_eth_conf conf;
	struct rte_eth_link link;
	struct rte_ether_addr mac;
	uint16_t mtu = 0;
	int ret;

	memset(o, 0, sizeof(*o));
	*step = "rte_eth_dev_info_get";
	ret = rte_eth_dev_info_get(port, &info);
	if (ret != 0)
		return ret;
	snprintf(o->driver, sizeof(o->driver), "%s", info.driver_name);
	o->max_rxq = info.max_rx_queues;
	o->max_txq = info.max_tx_queues;
	o->rxq = info.nb_rx_queues;
	o->txq = info.nb_tx_queues;
	o->rx_can = rx_sums(info.rx_offload_capa);
	o->tx_can = tx_sums(info.tx_offload_capa);
	o->min_mtu = info.min_mtu;
	/* Many drivers leave the largest MTU open and state the largest frame: header and CRC come off. */
	o->max_mtu = info.max_mtu;
	if (info.max_mtu == UINT16_MAX && info.max_rx_pktlen < UINT16_MAX)
		o->max_mtu = info.max_rx_pktlen - RTE_ETHER_HDR_LEN - RTE_ETHER_CRC_LEN;
	o->socket = rte_eth_dev_socket_id(port);
	/* What is switched on, whoever configured the port: for all queues, or by the queue. Some drivers keep no record of the latter. */
	if (rte_eth_dev_conf_get(port, &conf) == 0) {
		o->rx_on = rx_sums(conf.rxmode.offloads);
		o->tx_on = tx_sums(conf.txmode.offloads);
	}
	if (o->rxq > 0 && rte_eth_rx_queue_info_get(port, 0, &rq) == 0)
		o->rx_on |= rx_sums(rq.conf.offloads);
	if (o->txq > 0 && rte_eth_tx_queue_info_get(port, 0, &tq) == 0)
		o->tx_on |= tx_sums(tq.conf.offloads);
	if (rte_eth_dev_get_mtu(port, &mtu) == 0)
		o->mtu = mtu;
	if (rte_eth_macaddr_get(port, &mac) == 0)
		memcpy(o->mac, mac.addr_bytes, 6);
	memset(&link, 0, sizeof(link));
	if (rte_eth_link_get_nowait(port, &link) == 0) {
		o->up = link.link_status == RTE_ETH_LINK_UP;
		o->duplex = link.link_duplex == RTE_ETH_LINK_FULL_DUPLEX;
		o->speed = link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : link.link_speed;
	}
	return 0;
}

int ndpip_port_configure(uint16_t port, struct ndpip_port_conf *c, const char **step)
{
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf;
	struct rte_eth_rxconf rxconf;
	struct rte_eth_txconf txconf;
	uint16_t q;
	int socket, ret;

	*step = "rte_eth_dev_info_get";
	ret = rte_eth_dev_info_get(port, &info);
	if (ret != 0)
		return ret;
	memset(&conf, 0, sizeof(conf));
	conf.rxmode.mtu = c->mtu;
	if (c->offload) {
		conf.rxmode.offloads = info.rx_offload_capa & (RTE_ETH_RX_OFFLOAD_IPV4_CKSUM |
							       RTE_ETH_RX_OFFLOAD_TCP_CKSUM |
							       RTE_ETH_RX_OFFLOAD_UDP_CKSUM);
		conf.txmode.offloads = info.tx_offload_capa & (RTE_ETH_TX_OFFLOAD_IPV4_CKSUM |
							       RTE_ETH_TX_OFFLOAD_TCP_CKSUM |
							       RTE_ETH_TX_OFFLOAD_UDP_CKSUM);
	}
	/*
	 * RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE stays off: a frame may be held by the sender as well as by the port, and the
	 * transmit side may see buffers of several pools.
	 */
	*step = "rte_eth_dev_configure";
	conf.intr_conf.rxq = c->interrupts;
	ret = rte_eth_dev_configure(port, c->rxq, c->txq, &conf);
	if (ret != 0 && c->interrupts) {
		conf.intr_conf.rxq = 0;
		ret = rte_eth_dev_configure(port, c->rxq, c->txq, &conf);
	}
	if (ret != 0)
		return ret;
	*step = "rte_eth_dev_adjust_nb_rx_tx_desc";
	ret = rte_eth_dev_adjust_nb_rx_tx_desc(port, &c->rx_desc, &c->tx_desc);
	if (ret != 0)
		return ret;
	socket = rte_eth_dev_socket_id(port);
	if (socket < 0)
		socket = SOCKET_ID_ANY;
	rxconf = info.default_rxconf;
	rxconf.offloads = conf.rxmode.offloads;
	txconf = info.default_txconf;
	txconf.offloads = conf.txmode.offloads;
	*step = "rte_eth_rx_queue_setup";
	for (q = 0; q < c->rxq; q++) {
		ret = rte_eth_rx_queue_setup(port, q, c->rx_desc, (unsigned)socket, &rxconf, c->pool);
		if (ret != 0)
			return ret;
	}
	*step = "rte_eth_tx_queue_setup";
	for (q = 0; q < c->txq; q++) {
		ret = rte_eth_tx_queue_setup(port, q, c->tx_desc, (unsigned)socket, &txconf);
		if (ret != 0)
			return ret;
	}
	if (c->mtu != 0) {
		/* Some drivers take the MTU from the configuration, others only by this call. */
		*step = "rte_eth_dev_set_mtu";
		ret = rte_eth_dev_set_mtu(port, c->mtu);
		if (ret != 0 && ret != -ENOTSUP)
			return ret;
	}
	if (c->promiscuous) {
		*step = "rte_eth_promiscuous_enable";
		ret = rte_eth_promiscuous_enable(port);
		/* Virtual ports that filter nothing often have no such switch. */
		if (ret != 0 && ret != -ENOTSUP)
			return ret;
	}
	return 0;
}

int ndpip_port_stats(uint16_t port, struct ndpip_port_stats *o)
{
	struct rte_eth_stats s;
	int ret = rte_eth_stats_get(port, &s);

	if (ret != 0)
		return ret;
	o->rx_frames = s.ipackets;
	o->tx_frames = s.opackets;
	o->rx_bytes = s.ibytes;
	o->tx_bytes = s.obytes;
	o->rx_missed = s.imissed;
	o->rx_errors = s.ierrors;
	o->tx_errors = s.oerrors;
	o->rx_no_mbuf = s.rx_nombuf;
	return 0;
}

int ndpip_port_link(uint16_t port)
{
	struct rte_eth_link link;
	int ret;

	memset(&link, 0, sizeof(link));
	ret = rte_eth_link_get_nowait(port, &link);
	return ret != 0 ? ret : link.link_status == RTE_ETH_LINK_UP;
}

int ndpip_port_set_mac(uint16_t port, const uint8_t mac[6])
{
	struct rte_ether_addr a;

	memcpy(a.addr_bytes, mac, 6);
	return rte_eth_dev_default_mac_addr_set(port, &a);
}

static int rings_new(struct rte_ring **r, uint32_t n, uint32_t size, const char *name, const char *way)
{
	char full[RTE_RING_NAMESIZE];
	uint32_t i;

	for (i = 0; i < n; i++) {
		/*
		 * One producer and one consumer: a queue belongs to one lane at a time, or to several behind a lock.
		 * EXACT_SZ: a ring of 2^n holds one entry less otherwise.
		 */
		snprintf(full, sizeof(full), "%s_%s%u", name, way, i);
		r[i] = rte_ring_create(full, size, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
		if (r[i] == NULL)
			return rte_errno != 0 ? -rte_errno : -ENOMEM;
	}
	return 0;
}

static int ring_port(const char *name, const char *end, struct rte_ring **rx, struct rte_ring **tx, uint32_t n, uint16_t *id)
{
	char full[RTE_ETH_NAME_MAX_LEN];
	int ret;

	snprintf(full, sizeof(full), "%s%s", name, end);
	rte_errno = 0;
	ret = rte_eth_from_rings(full, rx, n, tx, n, 0);
	if (ret < 0)
		return rte_errno != 0 ? -rte_errno : -ENODEV;
	*id = (uint16_t)ret;
	return 0;
}

int ndpip_ring_pair(const char *name, uint32_t size, uint32_t queues, struct ndpip_ring_pair *p, const char **step)
{
	int ret;

	memset(p, 0, sizeof(*p));
	p->queues = queues;
	*step = "rte_ring_create";
	ret = rings_new(p->ab, queues, size, name, "ab");
	if (ret == 0)
		ret = rings_new(p->ba, queues, size, name, "ba");
	if (ret == 0) {
		*step = "rte_eth_from_rings";
		ret = ring_port(name, "a", p->ba, p->ab, queues, &p->a);
		if (ret == 0) {
			ret = ring_port(name, "b", p->ab, p->ba, queues, &p->b);
			if (ret != 0)
				rte_eth_dev_close(p->a);
		}
	}
	if (ret != 0)
		ndpip_ring_pair_free(p);
	return ret;
}

static void ring_drain(struct rte_ring *r)
{
	void *m;

	if (r == NULL)
		return;
	while (rte_ring_dequeue(r, &m) == 0)
		rte_pktmbuf_free(m);
	rte_ring_free(r);
}

void ndpip_ring_pair_free(struct ndpip_ring_pair *p)
{
	uint32_t i;

	for (i = 0; i < p->queues; i++) {
		ring_drain(p->ab[i]);
		ring_drain(p->ba[i]);
		p->ab[i] = p->ba[i] = NULL;
	}
}

struct ndpip_block *ndpip_lane_new(uint16_t port, int rxq, uint16_t txq, struct rte_mempool *pool, int *err)
{
	struct ndpip_block *b = rte_zmalloc("ndpip_lane", sizeof(*b), 64);

	if (b == NULL) {
		*err = ENOMEM;
		return NULL;
	}
	b->priv.port = port;
	b->priv.txq = txq;
	b->priv.has_rx = rxq >= 0;
	b->priv.rxq = rxq >= 0 ? (uint16_t)rxq : 0;
	b->rx_max = 32;
	b->want = 64;
	if (pool != NULL) {
		uint32_t head = sizeof(struct rte_mbuf) + rte_pktmbuf_priv_size(pool);
		struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

		if (m == NULL) {
			*err = ENOBUFS;
			goto fail;
		}
		/* step_stock computes addresses by this; a pool over external memory is laid out otherwise. */
		*err = (char *)m->buf_addr == (char *)m + head ? 0 : ENOTSUP;
		rte_pktmbuf_free(m);
		if (*err != 0)
			goto fail;
		b->priv.pool = (uintptr_t)pool;
		b->priv.stock_off = head + RTE_PKTMBUF_HEADROOM;
		b->priv.stock_len = rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM;
	}
	ndpip_gate_join(port, b);
	return b;
fail:
	rte_free(b);
	return NULL;
}

void ndpip_lane_free(struct ndpip_block *b)
{
	uint32_t i;

	ndpip_gate_leave(b->priv.port, b);
	for (i = 0; i < b->ntx; i++)
		rte_pktmbuf_free((struct rte_mbuf *)(uintptr_t)b->tx[i].handle);
	for (i = 0; i < b->nstock; i++)
		rte_pktmbuf_free((struct rte_mbuf *)(uintptr_t)b->stock[i].handle);
	for (i = 0; i < b->nfree; i++)
		rte_pktmbuf_free((struct rte_mbuf *)(uintptr_t)b->free[i]);
	rte_free(b);
}

void *ndpip_lock_new(void)
{
	rte_spinlock_t *l = rte_zmalloc("ndpip_lock", 64, 64);

	if (l != NULL)
		rte_spinlock_init(l);
	return l;
}

void ndpip_lock_free(void *lock)
{
	rte_free(lock);
}

uint64_t ndpip_tsc_hz(void)
{
	return rte_get_tsc_hz();
}

uint16_t ndpip_rx_burst(uint16_t port, uint16_t q, uintptr_t *b, uint16_t n)
{
	return rte_eth_rx_burst(port, q, (struct rte_mbuf **)b, n);
}

uint16_t ndpip_tx_burst(uint16_t port, uint16_t q, uintptr_t *b, uint16_t n)
{
	return rte_eth_tx_burst(port, q, (struct rte_mbuf **)b, n);
}

struct rte_mempool *ndpip_rx_pool(uint16_t port, uint16_t q)
{
	struct rte_eth_rxq_info info;

	return rte_eth_rx_queue_info_get(port, q, &info) == 0 ? info.mp : NULL;
}

void ndpip_free_buf(uintptr_t b)
{
	rte_pktmbuf_free((struct rte_mbuf *)b);
}

static const char *port_args(uint16_t port)
{
	const struct rte_devargs *da;
	struct rte_eth_dev_info info;

	if (rte_eth_dev_info_get(port, &info) != 0 || info.device == NULL)
		return NULL;
#if RTE_VERSION >= RTE_VERSION_NUM(22, 11, 0, 0)
	da = rte_dev_devargs(info.device);
#else
	da = info.device->devargs;
#endif
	return da == NULL ? NULL : da->args;
}

int ndpip_memif_client(uint16_t port)
{
	const char *args = port_args(port);

	return args != NULL && strstr(args, "role=server") == NULL && strstr(args, "role=master") == NULL;
}
