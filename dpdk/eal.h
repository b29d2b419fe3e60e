/* The environment layer: start, stop, and what DPDK logs meanwhile. */
#ifndef NDPIP_EAL_H
#define NDPIP_EAL_H

#include <stddef.h>
#include <stdint.h>

/*
 * ndpip_eal_init runs rte_eal_init on a thread of its own, which ends with the call. *err is rte_errno. The strings of
 * argv must stay for the life of the process, since DPDK keeps them.
 */
int ndpip_eal_init(int argc, char **argv, int echo, int *err);

/* ndpip_eal_up: memory and lcores are there. Must not be called after rte_eal_cleanup. */
int ndpip_eal_up(void);

/* ndpip_log_mark and ndpip_log_since: what DPDK logged, warnings and worse, between the two calls. */
uint64_t ndpip_log_mark(void);
size_t ndpip_log_since(uint64_t mark, char *buf, size_t n);

/*
 * ndpip_signals_before and _after stand around calls in which a driver may install a signal handler. net_tap does, without
 * SA_ONSTACK; under Go the handler would then run on a goroutine's small stack. After gives new handlers that flag.
 */
uint64_t ndpip_signals_before(void);
void ndpip_signals_after(uint64_t before);

/* rte_errno is a thread-local behind a macro. */
int ndpip_rte_errno(void);

/* ndpip_lcore_register pins the calling thread to cpu (-1: no) and registers it; the lcore's number, or a negated errno. */
int ndpip_lcore_register(int cpu);
void ndpip_lcore_unregister(void);

#endif
