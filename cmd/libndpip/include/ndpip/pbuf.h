/* ndpip: packet buffers, for sending and receiving without a copy. */
#ifndef NDPIP_PBUF_H
#define NDPIP_PBUF_H

#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * One packet buffer; what it holds is a payload. It is the program's from ndpip_alloc until ndpip_send takes it or
 * ndpip_free gives it back, and from ndpip_recv until ndpip_free. (It is a struct rte_mbuf of DPDK's.)
 */
struct ndpip_pbuf;

/* The payload's first byte. */
void *ndpip_pbuf_data(struct ndpip_pbuf *pb);

/* The payload's length in bytes. */
uint16_t ndpip_pbuf_length(struct ndpip_pbuf *pb);

/*
 * Moves the payload's start: a negative n drops bytes in front, a positive one adds them.
 * 0, or -1 and EINVAL: there are not that many.
 */
int ndpip_pbuf_offset(struct ndpip_pbuf *pb, int n);

/* Sets the payload's length. 0, or -1 and EINVAL: the buffer has not that much room. */
int ndpip_pbuf_resize(struct ndpip_pbuf *pb, uint16_t length);

#ifdef __cplusplus
}
#endif

#endif
