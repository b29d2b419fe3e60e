/* What the C files of the library share. */
#ifndef NDPIP_GLUE_H
#define NDPIP_GLUE_H

#include <errno.h>
#include <stdint.h>

/* Interfaces at once, and how descriptors are numbered: the interface's slot above, from 3 on below. */
enum {
	NDPIP_SLOTS = 64,
	NDPIP_SLOT_BITS = 20,
	NDPIP_FIRST_FD = 3, /* programs test for fd > 0, and 0 to 2 are somebody else's everywhere */
};

/* result turns what Go returns, a value or a negated errno, into what C returns. */
static inline int64_t result(int64_t r)
{
	if (__builtin_expect(r < 0, 0)) {
		errno = (int)-r;
		return -1;
	}
	return r;
}

/* The slot that the calling thread's sockets belong to; -1: the first that was started. */
extern __thread int ndpip_slot;

/*
 * The tag of a buffer that a program owns stands in its mbuf's packet_type, which has no use then. It says whose the buffer
 * is: the slot, how often that was started, and whether it was received. Real packet types leave the highest bits alone.
 */
enum {
	NDPIP_TAG = (int)0xa0000000,
	NDPIP_TAG_MASK = (int)0xf0000000,
	NDPIP_TAG_SLOT = 16,
	NDPIP_TAG_RECEIVED = 1,
};

/* The tags of allocated buffers by slot, 0 while the interface is stopped. Set by Go. */
void ndpip_set_tag(int slot, uint32_t tag);

/* Lcores: the first worker that is free, or -1; start and wait for ndpip_go_work(slot) there. */
int ndpip_lcore_free(void);
int ndpip_lcore_start(int lcore, int slot);
void ndpip_lcore_wait(int lcore);

/* The port at the program's end of a feed. */
void ndpip_set_feed(int iface, int port);

void ndpip_log(int error, const char *text);
void ndpip_shield_signals(void);

#endif
