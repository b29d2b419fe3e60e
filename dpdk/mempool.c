#include <errno.h>
#include <string.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>

#include "mempool.h"

unsigned ndpip_pool_size(const struct rte_mempool *mp) { return mp->size; }

const char *ndpip_pool_name(const struct rte_mempool *mp) { return mp->name; }

uint16_t ndpip_pool_room(struct rte_mempool *mp) { return rte_pktmbuf_data_room_size(mp); }

/*
 * DPDK's own choice is a ring, which hands out the buffer that was returned longest ago: when one thread takes buffers
 * and another returns them, all buffers of the pool pass through the processor's caches in turn. A stack hands out the
 * one returned last. The lock-free one does not make others wait for a thread that is preempted in it. A platform that
 * wants a pool of its own kind, or a user (--mbuf-pool-ops-name), has precedence.
 */
struct rte_mempool *ndpip_pool_create(const char *name, unsigned n, unsigned cache, uint16_t priv, uint16_t room, int socket)
{
	static const char *const stacks[] = {"lf_stack", "stack"};
	struct rte_mempool *mp;
	unsigned i;

	if (rte_mbuf_user_mempool_ops() == NULL && strcmp(rte_mbuf_best_mempool_ops(), RTE_MBUF_DEFAULT_MEMPOOL_OPS) == 0) {
		for (i = 0; i < 2; i++) {
			mp = rte_pktmbuf_pool_create_by_ops(name, n, cache, priv, room, socket, stacks[i]);
			if (mp != NULL || rte_errno == ENOMEM || rte_errno == EEXIST)
				return mp;
		}
	}
	return rte_pktmbuf_pool_create(name, n, cache, priv, room, socket);
}
