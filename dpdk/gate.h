/*
 * A port's gate. Bursts pass it, and it can be shut: then no burst is under way and none begins. A port that is stopped
 * has its gate shut, so an exchange on it moves nothing instead of calling into a driver that is not ready.
 *
 * The guard shuts the gates of some ports whenever DPDK's interrupt thread is about to work. net_memif needs it: when the
 * peer goes away, the driver unmaps the rings on that thread, whether or not a burst is using them.
 */
#ifndef NDPIP_GATE_H
#define NDPIP_GATE_H

#include <stdint.h>

struct ndpip_block;

struct ndpip_gate {
	uint32_t shut;  /* how many reasons there are to keep bursts out; written with port_mu held */
	uint32_t fence; /* the kernel has no membarrier: bursts need a fence of their own */
	struct ndpip_block *lanes;
} __attribute__((aligned(64)));

/* ndpip_gate_of is the gate of a port; it exists for the life of the process. */
struct ndpip_gate *ndpip_gate_of(uint16_t port);

/* ndpip_gate_reset forgets all reasons; shut: there is one from the start. Nobody may use the port. */
void ndpip_gate_reset(uint16_t port, int shut);

/* ndpip_gate_shut adds a reason and waits until no burst is under way; ndpip_gate_open takes one away. */
void ndpip_gate_shut(uint16_t port);
void ndpip_gate_open(uint16_t port);

/* A lane's block belongs to the gate from its making to its release. */
void ndpip_gate_join(uint16_t port, struct ndpip_block *b);
void ndpip_gate_leave(uint16_t port, struct ndpip_block *b);

/* ndpip_guard_start and ndpip_guard_stop: 0, or a negated errno. */
int ndpip_guard_start(uint16_t port);
void ndpip_guard_stop(uint16_t port);

/*
 * ndpip_guard_hold waits until the interrupt thread is parked and keeps it so until ndpip_guard_release. 0: the port is not
 * guarded, nothing is held.
 */
int ndpip_guard_hold(uint16_t port);
void ndpip_guard_release(void);

/* How often the guard let the interrupt thread work, and whether it can see when that is due (or has to guess). */
uint64_t ndpip_guard_turns(void);
int ndpip_guard_sees(void);

#endif
