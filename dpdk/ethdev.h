/*
 * What of rte_ethdev.h and rte_mempool.h the Go files call by its own name. The headers themselves bring 68,000 lines with
 * them, which cgo would read four times for each file. port.c and mempool.c include both, so that the compiler checks each of these against
 * DPDK's own.
 */
#ifndef NDPIP_ETHDEV_H
#define NDPIP_ETHDEV_H

#include <stdint.h>
#include <rte_config.h> /* RTE_MAX_ETHPORTS, RTE_PKTMBUF_HEADROOM */

#define NDPIP_ETH_NAME_MAX_LEN 64 /* at least RTE_ETH_NAME_MAX_LEN */

int rte_eth_dev_close(uint16_t port_id);
uint16_t rte_eth_dev_count_avail(void);
int rte_eth_dev_get_mtu(uint16_t port_id, uint16_t *mtu);
int rte_eth_dev_get_name_by_port(uint16_t port_id, char *name);
int rte_eth_dev_get_port_by_name(const char *name, uint16_t *port_id);
int rte_eth_dev_is_valid_port(uint16_t port_id);
int rte_eth_dev_set_mtu(uint16_t port_id, uint16_t mtu);
int rte_eth_dev_start(uint16_t port_id);
int rte_eth_dev_stop(uint16_t port_id);
int rte_eth_promiscuous_enable(uint16_t port_id);

struct rte_mempool;

unsigned int rte_mempool_avail_count(const struct rte_mempool *mp);
void rte_mempool_free(struct rte_mempool *mp);
unsigned int rte_mempool_in_use_count(const struct rte_mempool *mp);

#endif
