#ifndef NDPIP_SLEEP_H
#define NDPIP_SLEEP_H

#include <stdint.h>

/* A thread's sleep until its receive queue has frames, or another thread writes to kick. */
struct ndpip_sleeper {
	int epoll, kick;
	uint16_t port, rxq;
	int interrupts; /* the port tells of frames */
};

/* port < 0: no port. It returns NULL with *err set. */
struct ndpip_sleeper *ndpip_sleeper_new(int port, uint16_t rxq, int *err);
void ndpip_sleeper_arm(struct ndpip_sleeper *s, int on);
/* ns < 0: without end. */
void ndpip_sleeper_wait(struct ndpip_sleeper *s, int64_t ns);
void ndpip_sleeper_free(struct ndpip_sleeper *s);

#endif
