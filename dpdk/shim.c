/* The work per burst. Everything that knows how an mbuf looks is in this file. */
#include "shim.h"

#include <sched.h>
#include <stddef.h>
#include <string.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_prefetch.h>
#include <rte_spinlock.h>
#include <rte_udp.h>

#include "gate.h"

/* Frames set up and handed to the driver in one go: few enough that a refused burst costs little to undo. */
#define CHUNK 64

static inline struct rte_mbuf *mbuf_of(uint64_t handle)
{
	return (struct rte_mbuf *)(uintptr_t)handle;
}

/* Buffers freed long after they were used are out of the caches: their lines are asked for this far ahead. */
#define FREE_AHEAD 8

static inline void step_free(struct ndpip_block *b)
{
	struct rte_mempool *pool = NULL;
	void *out[CHUNK];
	uint32_t n = b->nfree, k = 0, i;

	for (i = 0; i < n; i++) {
		struct rte_mbuf *m = mbuf_of(b->free[i]);

		if (i + FREE_AHEAD < n) {
			struct rte_mbuf *p = mbuf_of(b->free[i + FREE_AHEAD]);

			rte_prefetch0(p);
			rte_mbuf_prefetch_part2(p);
		}
		if (unlikely(m->nb_segs > 1)) {
			rte_pktmbuf_free(m);
			continue;
		}
		m = rte_pktmbuf_prefree_seg(m);
		if (m == NULL)
			continue;
		if (unlikely(k == CHUNK || m->pool != pool)) {
			if (k > 0)
				rte_mempool_put_bulk(pool, out, k);
			pool = m->pool;
			k = 0;
		}
		out[k++] = m;
	}
	if (k > 0)
		rte_mempool_put_bulk(pool, out, k);
	b->nfree = 0;
}

/* Checksums that the port is to fill in. The second cache line of the mbuf is written only for these. */
static inline uint64_t offload(struct rte_mbuf *m, const struct ndpip_frame *f)
{
	const uint8_t *p = (const uint8_t *)(uintptr_t)f->addr;
	uint64_t ol = RTE_MBUF_F_TX_IPV4;

	m->tx_offload = 0;
	m->l2_len = RTE_ETHER_HDR_LEN;
	m->l3_len = sizeof(struct rte_ipv4_hdr);
	if (f->flags & NDPIP_TX_IP_SUM)
		ol |= RTE_MBUF_F_TX_IP_CKSUM;
	if (f->flags & NDPIP_TX_TCP_SUM) {
		ol |= RTE_MBUF_F_TX_TCP_CKSUM;
		m->l4_len = (p[RTE_ETHER_HDR_LEN + sizeof(struct rte_ipv4_hdr) + 12] >> 4) * 4;
	} else if (f->flags & NDPIP_TX_UDP_SUM) {
		ol |= RTE_MBUF_F_TX_UDP_CKSUM;
		m->l4_len = sizeof(struct rte_udp_hdr);
	}
	return ol;
}

/*
 * What a buffer needs before the port may have it. A buffer from a pool has nb_segs 1 and next NULL, and so has a
 * received one that is not chained, so only the first cache line is written.
 */
static inline struct rte_mbuf *set_up(const struct ndpip_frame *f)
{
	struct rte_mbuf *m = mbuf_of(f->handle);

	m->data_off = (uint16_t)(f->addr - (uintptr_t)m->buf_addr);
	m->data_len = (uint16_t)f->len;
	m->pkt_len = f->len;
	m->ol_flags = likely((f->flags & NDPIP_TX_SUMS) == 0) ? 0 : offload(m, f);
	/*
	 * A plain store when the caller is the only owner, which is every first transmission. On a resend the port may
	 * still hold the reference of an earlier one; then the count is raised atomically.
	 */
	if (f->flags & NDPIP_TX_RETAIN)
		rte_mbuf_refcnt_update(m, 1);
	return m;
}

/* A refused frame is the caller's as it was before. */
static inline void undo(const struct ndpip_frame *f)
{
	if (f->flags & NDPIP_TX_RETAIN)
		rte_mbuf_refcnt_update(mbuf_of(f->handle), -1);
}

/*
 * Takes the lock of a shared queue, but does not wait long: where sending is a system call the holder has it for many
 * microseconds, or has lost its CPU. Then the frames wait in the lane, as they do when the port is full.
 */
static inline int lock_soon(rte_spinlock_t *lock)
{
	int i;

	for (i = 0; i < 64; i++) {
		if (rte_spinlock_trylock(lock))
			return 1;
		rte_pause();
	}
	return 0;
}

/* Hands k frames to the port; returns how many are gone. sums: some of them ask for checksums. */
static inline uint32_t hand_over(struct ndpip_block *b, struct rte_mbuf **m, uint32_t k, uint32_t sums)
{
	struct ndpip_priv *p = &b->priv;
	rte_spinlock_t *lock = (rte_spinlock_t *)(uintptr_t)p->lock;
	uint32_t ready = k, sent;

	if (lock != NULL && !lock_soon(lock))
		return 0;
	if (unlikely(sums))
		ready = rte_eth_tx_prepare(p->port, p->txq, m, k);
	sent = rte_eth_tx_burst(p->port, p->txq, m, ready);
	if (lock != NULL)
		rte_spinlock_unlock(lock);
	b->tx_sent += sent;
	if (unlikely(ready < k && sent == ready)) {
		/* The driver will never take this one: it would block the list for good. */
		rte_pktmbuf_free(m[sent]);
		p->tx_bad++;
		sent++;
	}
	return sent;
}

static inline void step_tx(struct ndpip_block *b)
{
	struct rte_mbuf *m[CHUNK];
	uint32_t n = b->ntx, done = 0;

	while (done < n) {
		const struct ndpip_frame *f = &b->tx[done];
		uint32_t k = RTE_MIN(n - done, (uint32_t)CHUNK), sums = 0, i, sent;

		for (i = 0; i < k; i++) {
			m[i] = set_up(&f[i]);
			sums |= f[i].flags & NDPIP_TX_SUMS;
		}
		sent = hand_over(b, m, k, sums);
		done += sent;
		if (unlikely(sent < k)) {
			for (i = sent; i < k; i++)
				undo(&f[i]);
			b->tx_refuse++;
			memmove(&b->tx[0], &b->tx[done], (n - done) * sizeof(b->tx[0]));
			break;
		}
	}
	b->ntx = n - done;
}

static inline void step_stock(struct ndpip_block *b)
{
	struct rte_mempool *pool = (struct rte_mempool *)(uintptr_t)b->priv.pool;
	uint32_t off = b->priv.stock_off, room = b->priv.stock_len;
	uint32_t want = RTE_MIN(b->want, (uint32_t)NDPIP_STOCK_CAP);
	uint32_t n = want - b->nstock, empty = 0, i;
	void *got[NDPIP_STOCK_CAP];
	/* They will be written: the headers soon, the mbuf when the frame is sent. Of those to fill in, the payload. */
	uint32_t first = b->fill ? off + 64 : off, second = b->fill ? off + 128 : 0;

	while (b->nstock < want && n > 0) {
		/* All or nothing is how a pool gives; near its end half as many are asked for, down to one. */
		if (unlikely(rte_mempool_get_bulk(pool, got, n) != 0)) {
			empty = 1;
			n /= 2;
			continue;
		}
		for (i = 0; i < n; i++) {
			struct ndpip_frame *f = &b->stock[b->nstock + i];
			/* The address follows from the pool's layout (ndpip_lane_new checks it): no mbuf is waited for. */
			f->handle = (uintptr_t)got[i];
			f->addr = (uintptr_t)got[i] + off;
			f->len = room;
			f->flags = 0;
			__builtin_prefetch((char *)got[i] + first, 1);
			__builtin_prefetch((char *)got[i] + second, 1);
		}
		b->nstock += n;
		n = RTE_MIN(n, want - b->nstock);
	}
	b->no_mem += empty;
}

/* What the port says of a frame's checksums. GOOD together with BAD is DPDK's "not filled in, but intact". */
static inline uint32_t rx_flags(uint64_t ol)
{
	uint32_t f = 0;

	if (ol & RTE_MBUF_F_RX_IP_CKSUM_GOOD)
		f |= NDPIP_RX_IP_GOOD;
	else if (ol & RTE_MBUF_F_RX_IP_CKSUM_BAD)
		f |= NDPIP_RX_IP_BAD;
	if (ol & RTE_MBUF_F_RX_L4_CKSUM_GOOD)
		f |= NDPIP_RX_L4_GOOD;
	else if (ol & RTE_MBUF_F_RX_L4_CKSUM_BAD)
		f |= NDPIP_RX_L4_BAD;
	return f;
}

/*
 * Asks for what is going to be looked at: the mbuf, which is written too (its count of references), the headers, and the
 * payload's beginning. Where these lie is in the mbuf, but may well be where they lay with the last one: then the three
 * come at the same time. From another CPU's cache each takes 100 ns and more.
 */
static inline void fetch_rx(const struct rte_mbuf *m, uint32_t line)
{
	__builtin_prefetch(m, 1);
	rte_prefetch0((const char *)m + line);
	rte_prefetch0((const char *)m + line + 64);
}

static inline void step_rx(struct ndpip_block *b)
{
	struct rte_mbuf *m[NDPIP_RX_CAP + 8];
	uint32_t n, i, line = b->rx_line;

	n = rte_eth_rx_burst(b->priv.port, b->priv.rxq, m, RTE_MIN(b->rx_max, (uint32_t)NDPIP_RX_CAP));
	for (i = 0; i < RTE_MIN(n, 4u); i++)
		fetch_rx(m[i], line);
	for (i = 0; i < n; i++) {
		struct ndpip_frame *f = &b->rx[i];
		struct rte_mbuf *p = m[i];

		if (i + 4 < n)
			fetch_rx(m[i + 4], line);
		f->flags = rx_flags(p->ol_flags);
		if (unlikely(p->nb_segs > 1) && rte_pktmbuf_linearize(p) != 0)
			f->flags |= NDPIP_RX_CHAINED;
		f->handle = (uintptr_t)p;
		f->addr = (uintptr_t)rte_pktmbuf_mtod(p, void *);
		f->len = p->data_len;
	}
	if (n > 0)
		b->rx_line = (uint32_t)((b->rx[n - 1].addr & ~(uint64_t)63) - b->rx[n - 1].handle);
	b->nrx = n;
}

/*
 * Passes the port's gate; 0 when it is shut. The store and the load must not change places. The compiler is told so
 * here; the processor only where the kernel cannot do it for us when the gate is shut (gate.c).
 */
static inline int gate_enter(struct ndpip_priv *p)
{
	struct ndpip_gate *g = (struct ndpip_gate *)(uintptr_t)p->gate;

	__atomic_store_n(&p->in_burst, 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (unlikely(g->fence))
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (likely(__atomic_load_n(&g->shut, __ATOMIC_ACQUIRE) == 0))
		return 1;
	__atomic_store_n(&p->in_burst, 0, __ATOMIC_RELEASE);
	return 0;
}

static inline void gate_exit(struct ndpip_priv *p)
{
	__atomic_store_n(&p->in_burst, 0, __ATOMIC_RELEASE);
}

void ndpip_exchange(struct ndpip_block *b, uint32_t op)
{
	int in = 0;

	if (op & NDPIP_OP_YIELD)
		sched_yield();
	if (op & (NDPIP_OP_TX | NDPIP_OP_RX))
		in = gate_enter(&b->priv);
	if (op & NDPIP_OP_TX) {
		if (likely(in))
			step_tx(b);
		else if (b->ntx != 0)
			b->tx_refuse++;
	}
	if (op & NDPIP_OP_FREE)
		step_free(b);
	if ((op & NDPIP_OP_STOCK) && b->priv.pool != 0)
		step_stock(b);
	b->nrx = 0;
	if (op & NDPIP_OP_RX) {
		if (likely(in) && b->priv.has_rx)
			step_rx(b);
		b->tsc = rte_rdtsc();
	}
	if (in)
		gate_exit(&b->priv);
}

/* Layout: dpdk.Block and dpdk.Frame as Go lays them out on a 64-bit machine (layout.go asks the Go compiler). */
#define AT(type, field, off) _Static_assert(offsetof(struct type, field) == (off), #type "." #field)
AT(ndpip_frame, handle, 0);
AT(ndpip_frame, addr, 8);
AT(ndpip_frame, len, 16);
AT(ndpip_frame, flags, 20);
_Static_assert(sizeof(struct ndpip_frame) == 24, "Frame");
_Static_assert(sizeof(struct ndpip_priv) == 64, "the driver's part of a Block");
AT(ndpip_block, nfree, 0);
AT(ndpip_block, ntx, 4);
AT(ndpip_block, nstock, 8);
AT(ndpip_block, nrx, 12);
AT(ndpip_block, rx_max, 16);
AT(ndpip_block, want, 20);
AT(ndpip_block, tsc, 32);
AT(ndpip_block, tx_sent, 40);
AT(ndpip_block, tx_refuse, 48);
AT(ndpip_block, no_mem, 56);
AT(ndpip_block, priv, 64);
AT(ndpip_block, free, 128);
AT(ndpip_block, tx, 128 + 8 * 1024);
AT(ndpip_block, stock, 128 + 8 * 1024 + 24 * 512);
AT(ndpip_block, rx, 128 + 8 * 1024 + 24 * 768);
_Static_assert(sizeof(struct ndpip_block) == 128 + 8 * 1024 + 24 * 1024, "Block");
_Static_assert(sizeof(void *) == 8, "ndpip needs a 64-bit machine");
