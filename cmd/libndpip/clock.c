/* The clock: that of the processor, from an arbitrary point. */
#include <rte_cycles.h>

#include <ndpip/socket.h>

uint64_t ndpip_tsc(void)
{
	return rte_rdtsc();
}

void ndpip_tsc2time(uint64_t tsc, struct timespec *time)
{
	uint64_t hz = rte_get_tsc_hz();

	if (time == NULL)
		return;
	if (hz == 0) /* the EAL has not been started */
		hz = 1000000000;
	time->tv_sec = (time_t)(tsc / hz);
	time->tv_nsec = (long)((unsigned __int128)(tsc % hz) * 1000000000 / hz);
}

void ndpip_time_now(struct timespec *now)
{
	ndpip_tsc2time(rte_rdtsc(), now);
}
