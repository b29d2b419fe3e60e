/* rte_intr_instance_alloc and its like are marked experimental in 21.11 to 23.11; later they are stable as they are. */
#define ALLOW_EXPERIMENTAL_API
#define _GNU_SOURCE
#include "gate.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/membarrier.h>

#include <rte_config.h>
#include <rte_interrupts.h>

#include "shim.h"

static struct ndpip_gate gates[RTE_MAX_ETHPORTS];
static pthread_mutex_t gates_mu = PTHREAD_MUTEX_INITIALIZER; /* the lists of lanes, and the guard's ports */

static int membarrier(int cmd)
{
	return (int)syscall(__NR_membarrier, cmd, 0, 0);
}

/*
 * A burst stores in_burst and then loads shut; whoever shuts stores shut and then loads in_burst. Each must see the
 * other's store, or both would go on. The fence between store and load is paid here, in the rare case, for all threads:
 * membarrier makes every running thread of the process pass one.
 */
static int barrier_works;

static void barrier_init(void)
{
	barrier_works = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

static void barrier(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (barrier_works)
		membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

struct ndpip_gate *ndpip_gate_of(uint16_t port)
{
	return &gates[port];
}

void ndpip_gate_reset(uint16_t port, int shut)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, barrier_init);
	pthread_mutex_lock(&gates_mu);
	gates[port].fence = !barrier_works;
	__atomic_store_n(&gates[port].shut, shut ? 1 : 0, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&gates_mu);
}

/* With gates_mu held. A lane whose thread is preempted in a burst is waited for. */
static void wait_quiet(uint16_t port)
{
	struct ndpip_block *b;

	for (b = gates[port].lanes; b != NULL; b = (struct ndpip_block *)(uintptr_t)b->priv.next) {
		while (__atomic_load_n(&b->priv.in_burst, __ATOMIC_ACQUIRE) != 0)
			sched_yield();
	}
}

void ndpip_gate_shut(uint16_t port)
{
	pthread_mutex_lock(&gates_mu);
	__atomic_fetch_add(&gates[port].shut, 1, __ATOMIC_SEQ_CST);
	barrier();
	wait_quiet(port);
	pthread_mutex_unlock(&gates_mu);
}

/* Release: a burst that sees the gate open sees what was done while it was shut. */
void ndpip_gate_open(uint16_t port)
{
	__atomic_fetch_sub(&gates[port].shut, 1, __ATOMIC_RELEASE);
}

void ndpip_gate_join(uint16_t port, struct ndpip_block *b)
{
	pthread_mutex_lock(&gates_mu);
	b->priv.gate = (uintptr_t)&gates[port];
	b->priv.next = (uintptr_t)gates[port].lanes;
	gates[port].lanes = b;
	pthread_mutex_unlock(&gates_mu);
}

void ndpip_gate_leave(uint16_t port, struct ndpip_block *b)
{
	struct ndpip_block *o;

	pthread_mutex_lock(&gates_mu);
	if (gates[port].lanes == b) {
		gates[port].lanes = (struct ndpip_block *)(uintptr_t)b->priv.next;
	} else {
		for (o = gates[port].lanes; o != NULL; o = (struct ndpip_block *)(uintptr_t)o->priv.next) {
			if (o->priv.next == (uintptr_t)b) {
				o->priv.next = b->priv.next;
				break;
			}
		}
	}
	pthread_mutex_unlock(&gates_mu);
}

/*
 * The guard. DPDK has one interrupt thread, which waits on an epoll descriptor and runs one callback after the other.
 * The guard registers a callback of its own and stays in it: while the thread is parked there, it runs nothing else.
 * Parked, it polls that epoll descriptor. When something is due, it shuts the gates, returns, and is called again at
 * once, because its own event is always pending; between the two, and only then, other callbacks run.
 */
static struct {
	struct rte_intr_handle *handle;
	int event; /* ours; readable except while parked */
	int wake;  /* ends the parking */
	int epoll; /* the interrupt thread's descriptor, -1: not known */
	int ports; /* that are guarded */
	int stop;  /* atomic */
	uint64_t turns;
	unsigned char on[RTE_MAX_ETHPORTS], held[RTE_MAX_ETHPORTS];
} guard = {.event = -1, .wake = -1, .epoll = -1};

/*
 * Who stops or closes a port keeps the interrupt thread parked meanwhile: net_memif would unmap the rings twice, on that
 * thread because the peer has gone and on this one, and the second time may hit what others have mapped there since.
 */
static pthread_mutex_t hold_mu = PTHREAD_MUTEX_INITIALIZER; /* parked, holds */
static pthread_cond_t hold_changed = PTHREAD_COND_INITIALIZER;
static int parked, holds;

static void set_parked(int now)
{
	pthread_mutex_lock(&hold_mu);
	while (!now && holds > 0)
		pthread_cond_wait(&hold_changed, &hold_mu);
	parked = now;
	pthread_cond_broadcast(&hold_changed);
	pthread_mutex_unlock(&hold_mu);
}

/* Without sight of what is due, the guard lets the interrupt thread work this often, in milliseconds. */
#define BLIND_MS 20

/* Whether fd is an epoll descriptor that waits for our event: then it is the interrupt thread's. */
static int waits_for_event(int fd)
{
	char path[64], line[256];
	int found = 0, tfd;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	if (f == NULL)
		return 0;
	while (!found && fgets(line, sizeof(line), f) != NULL)
		found = sscanf(line, "tfd: %d", &tfd) == 1 && tfd == guard.event;
	fclose(f);
	return found;
}

/* DPDK makes a new epoll descriptor whenever its set of interrupts changes. */
static void find_epoll(void)
{
	struct dirent *e;
	DIR *d;

	if (guard.epoll >= 0 && waits_for_event(guard.epoll))
		return;
	guard.epoll = -1;
	d = opendir("/proc/self/fdinfo");
	if (d == NULL)
		return;
	while (guard.epoll < 0 && (e = readdir(d)) != NULL) {
		int fd = atoi(e->d_name);

		if (e->d_name[0] != '.' && waits_for_event(fd))
			guard.epoll = fd;
	}
	closedir(d);
}

static void signal_fd(int fd)
{
	uint64_t one = 1;

	while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

static void drain_fd(int fd)
{
	uint64_t n;

	while (read(fd, &n, sizeof(n)) < 0 && errno == EINTR)
		;
}

static void guard_gates(int shut)
{
	int port;

	pthread_mutex_lock(&gates_mu);
	for (port = 0; port < RTE_MAX_ETHPORTS; port++) {
		if (!guard.on[port] || guard.held[port] == shut)
			continue;
		guard.held[port] = (unsigned char)shut;
		if (shut)
			__atomic_fetch_add(&gates[port].shut, 1, __ATOMIC_SEQ_CST);
		else
			ndpip_gate_open((uint16_t)port);
	}
	if (shut) {
		barrier();
		for (port = 0; port < RTE_MAX_ETHPORTS; port++) {
			if (guard.on[port])
				wait_quiet((uint16_t)port);
		}
	}
	pthread_mutex_unlock(&gates_mu);
}

/* On the interrupt thread. */
static void guard_park(void *arg)
{
	struct pollfd fds[2];

	(void)arg;
	drain_fd(guard.event);
	find_epoll();
	set_parked(1);
	guard_gates(0);
	fds[0] = (struct pollfd){.fd = guard.wake, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = guard.epoll, .events = POLLIN};
	while (poll(fds, 2, guard.epoll < 0 ? BLIND_MS : -1) < 0 && errno == EINTR)
		;
	guard_gates(1);
	set_parked(0);
	drain_fd(guard.wake);
	__atomic_fetch_add(&guard.turns, 1, __ATOMIC_RELAXED);
	if (!__atomic_load_n(&guard.stop, __ATOMIC_ACQUIRE))
		signal_fd(guard.event);
}

static int guard_make(void)
{
	if (guard.event < 0)
		guard.event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (guard.wake < 0)
		guard.wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (guard.event < 0 || guard.wake < 0)
		return -errno;
	if (guard.handle == NULL) {
		guard.handle = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
		if (guard.handle == NULL)
			return -ENOMEM;
		if (rte_intr_fd_set(guard.handle, guard.event) != 0 ||
		    rte_intr_type_set(guard.handle, RTE_INTR_HANDLE_EXT) != 0)
			return -EINVAL;
	}
	return 0;
}

/* ndpip_guard_start and _stop are called by one thread at a time. */
int ndpip_guard_start(uint16_t port)
{
	int ret = guard_make();

	if (ret != 0 || guard.on[port])
		return ret;
	if (guard.ports == 0) {
		__atomic_store_n(&guard.stop, 0, __ATOMIC_RELEASE);
		signal_fd(guard.event);
		ret = rte_intr_callback_register(guard.handle, guard_park, NULL);
		if (ret < 0)
			return ret;
	}
	/* Shut until the interrupt thread is parked the next time. */
	pthread_mutex_lock(&gates_mu);
	guard.ports++;
	guard.on[port] = guard.held[port] = 1;
	__atomic_fetch_add(&gates[port].shut, 1, __ATOMIC_SEQ_CST);
	barrier();
	wait_quiet(port);
	pthread_mutex_unlock(&gates_mu);
	signal_fd(guard.wake);
	return 0;
}

void ndpip_guard_stop(uint16_t port)
{
	int last;

	if (!guard.on[port])
		return;
	pthread_mutex_lock(&gates_mu);
	guard.on[port] = 0;
	if (guard.held[port])
		ndpip_gate_open(port);
	guard.held[port] = 0;
	last = --guard.ports == 0;
	pthread_mutex_unlock(&gates_mu);
	if (!last)
		return;
	__atomic_store_n(&guard.stop, 1, __ATOMIC_RELEASE);
	do {
		signal_fd(guard.wake);
		sched_yield();
	} while (rte_intr_callback_unregister(guard.handle, guard_park, NULL) == -EAGAIN);
	drain_fd(guard.event);
	drain_fd(guard.wake);
}

int ndpip_guard_hold(uint16_t port)
{
	if (!guard.on[port])
		return 0;
	pthread_mutex_lock(&hold_mu);
	holds++;
	while (!parked)
		pthread_cond_wait(&hold_changed, &hold_mu);
	pthread_mutex_unlock(&hold_mu);
	return 1;
}

void ndpip_guard_release(void)
{
	pthread_mutex_lock(&hold_mu);
	holds--;
	pthread_cond_broadcast(&hold_changed);
	pthread_mutex_unlock(&hold_mu);
}

uint64_t ndpip_guard_turns(void)
{
	return __atomic_load_n(&guard.turns, __ATOMIC_RELAXED);
}

int ndpip_guard_sees(void)
{
	return guard.epoll >= 0;
}
