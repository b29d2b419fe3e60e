/* Pools of packet buffers: what DPDK does with structures and inline functions, as plain calls. */
#ifndef NDPIP_MEMPOOL_H
#define NDPIP_MEMPOOL_H

#include "ethdev.h"

/* NULL: rte_errno says why. room is a buffer's, headroom included. */
struct rte_mempool *ndpip_pool_create(const char *name, unsigned n, unsigned cache, uint16_t priv, uint16_t room, int socket);

unsigned ndpip_pool_size(const struct rte_mempool *mp);
const char *ndpip_pool_name(const struct rte_mempool *mp);
uint16_t ndpip_pool_room(struct rte_mempool *mp);

#endif
