#define _GNU_SOURCE
#include "eal.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_common.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_memory.h>
#include <rte_version.h>

#if RTE_VERSION < RTE_VERSION_NUM(21, 11, 0, 0)
#error "ndpip needs DPDK 21.11 or later"
#endif

/*
 * DPDK's log. A stream of our own keeps the last warnings and errors, so that a failed call can say why; it passes
 * everything on to stderr when the caller asked for DPDK's log (echo).
 */
static struct {
	pthread_mutex_t mu;
	uint64_t end; /* bytes ever kept */
	int echo;
	char keep[8192];
} logs = {.mu = PTHREAD_MUTEX_INITIALIZER};

static void log_keep(const char *buf, size_t n)
{
	size_t i;

	pthread_mutex_lock(&logs.mu);
	for (i = 0; i < n; i++)
		logs.keep[logs.end++ % sizeof(logs.keep)] = buf[i];
	pthread_mutex_unlock(&logs.mu);
}

static ssize_t log_write(void *cookie, const char *buf, size_t n)
{
	(void)cookie;
	if (rte_log_cur_msg_loglevel() <= (int)RTE_LOG_WARNING)
		log_keep(buf, n);
	if (logs.echo && write(STDERR_FILENO, buf, n) < 0)
		return (ssize_t)n; /* nowhere to say it */
	return (ssize_t)n;
}

static void log_open(int echo)
{
	static FILE *stream;
	cookie_io_functions_t io = {.write = log_write};

	logs.echo = echo;
	if (stream == NULL)
		stream = fopencookie(NULL, "w", io);
	if (stream != NULL)
		rte_openlog_stream(stream);
}

/*
 * While it starts, DPDK also writes past its log: to stderr why it gives up, to stdout a page of usage after a wrong
 * option. glibc's stdout and stderr are variables, so C's part of the process can be given others meanwhile; Go writes
 * to the descriptors and does not notice.
 */
#ifdef __GLIBC__
static ssize_t keep_write(void *cookie, const char *buf, size_t n)
{
	(void)cookie;
	log_keep(buf, n);
	return (ssize_t)n;
}

static ssize_t drop_write(void *cookie, const char *buf, size_t n)
{
	(void)cookie;
	(void)buf;
	return (ssize_t)n;
}

struct std {
	FILE *out, *err;
};

static struct std std_divert(void)
{
	static FILE *drop, *keep;
	struct std old = {stdout, stderr};

	if (drop == NULL)
		drop = fopencookie(NULL, "w", (cookie_io_functions_t){.write = drop_write});
	if (keep == NULL)
		keep = fopencookie(NULL, "w", (cookie_io_functions_t){.write = keep_write});
	if (drop != NULL)
		stdout = drop;
	if (keep != NULL) {
		setvbuf(keep, NULL, _IOLBF, 0);
		stderr = keep;
	}
	return old;
}

static void std_restore(struct std old)
{
	fflush(stderr);
	stdout = old.out;
	stderr = old.err;
}
#endif

uint64_t ndpip_log_mark(void)
{
	uint64_t end;

	pthread_mutex_lock(&logs.mu);
	end = logs.end;
	pthread_mutex_unlock(&logs.mu);
	return end;
}

size_t ndpip_log_since(uint64_t mark, char *buf, size_t n)
{
	size_t len = 0;

	pthread_mutex_lock(&logs.mu);
	if (logs.end - mark > sizeof(logs.keep))
		mark = logs.end - sizeof(logs.keep);
	if (logs.end - mark > n)
		mark = logs.end - n;
	for (; mark < logs.end; mark++)
		buf[len++] = logs.keep[mark % sizeof(logs.keep)];
	pthread_mutex_unlock(&logs.mu);
	return len;
}

static int handled(int sig, struct sigaction *sa)
{
	if (sigaction(sig, NULL, sa) != 0)
		return 0;
	return (sa->sa_flags & SA_SIGINFO) != 0 || (sa->sa_handler != SIG_DFL && sa->sa_handler != SIG_IGN);
}

uint64_t ndpip_signals_before(void)
{
	struct sigaction sa;
	uint64_t set = 0;
	int sig;

	for (sig = 1; sig < 64; sig++)
		set |= (uint64_t)handled(sig, &sa) << sig;
	return set;
}

void ndpip_signals_after(uint64_t before)
{
	struct sigaction sa;
	int sig;

	for (sig = 1; sig < 64; sig++) {
		if ((before >> sig & 1) || !handled(sig, &sa) || (sa.sa_flags & SA_ONSTACK))
			continue;
		sa.sa_flags |= SA_ONSTACK;
		sigaction(sig, &sa, NULL);
	}
}

struct init {
	int argc;
	char **argv;
	int ret, err;
};

static void *init_thread(void *arg)
{
	struct init *in = arg;
	uint64_t before;
#ifdef __GLIBC__
	struct std old = {stdout, stderr};

	if (!logs.echo)
		old = std_divert();
#endif
	before = ndpip_signals_before();
	rte_errno = 0;
	in->ret = rte_eal_init(in->argc, in->argv);
	in->err = rte_errno;
	ndpip_signals_after(before);
#ifdef __GLIBC__
	std_restore(old);
#endif
	return NULL;
}

int ndpip_eal_init(int argc, char **argv, int echo, int *err)
{
	struct init in = {.argc = argc, .argv = argv, .ret = -1};
	sigset_t block, old;
	pthread_t t;
	int ret;

	log_open(echo);
	/*
	 * DPDK pins the thread that calls rte_eal_init and makes it an lcore. With Go that would be whichever thread the
	 * goroutine runs on, and threads made from it later would inherit the mask. So the call gets a thread to itself.
	 * DPDK's own threads inherit this thread's signal mask: process-directed signals are to reach Go's threads. The
	 * synchronous ones stay open, or a fault would kill the process without a word.
	 */
	sigfillset(&block);
	sigdelset(&block, SIGSEGV);
	sigdelset(&block, SIGBUS);
	sigdelset(&block, SIGFPE);
	sigdelset(&block, SIGILL);
	sigdelset(&block, SIGTRAP);
	pthread_sigmask(SIG_BLOCK, &block, &old);
	ret = pthread_create(&t, NULL, init_thread, &in);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret != 0) {
		*err = ret;
		return -1;
	}
	pthread_join(t, NULL);
	*err = in.err;
	return in.ret;
}

int ndpip_eal_up(void)
{
	return rte_lcore_count() > 0 && rte_eal_get_physmem_size() > 0;
}

int ndpip_rte_errno(void)
{
	return rte_errno;
}

int ndpip_lcore_register(int cpu)
{
	if (cpu >= 0) {
		cpu_set_t set;

		if (cpu >= CPU_SETSIZE)
			return -EINVAL;
		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		if (sched_setaffinity(0, sizeof(set), &set) != 0)
			return -errno;
	}
	if (rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() != 0)
		return rte_errno != 0 ? -rte_errno : -EINVAL;
	return (int)rte_lcore_id();
}

void ndpip_lcore_unregister(void)
{
	rte_thread_unregister();
}
