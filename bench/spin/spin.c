/*
 * spin CPU MILLISECONDS: reads the clock without rest on one CPU and prints how long it was kept from it: a line
 * "nanoseconds count" per size of gap. What it sees is the machine's own: interrupts, other threads, the hypervisor.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { SUB = 32, BUCKETS = 64 * SUB };

static uint64_t count[BUCKETS];

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* 32 buckets to each power of two: 3 per cent wide. */
static unsigned bucket(uint64_t v)
{
	unsigned log;

	if (v < SUB)
		return (unsigned)v;
	log = 63 - (unsigned)__builtin_clzll(v);
	return (log - 4) * SUB + (unsigned)(v >> (log - 5)) % SUB;
}

static uint64_t value(unsigned b)
{
	unsigned log = b / SUB + 4;

	return b < SUB ? b : (uint64_t)(SUB + b % SUB) << (log - 5);
}

int main(int argc, char **argv)
{
	uint64_t start, last, end;
	cpu_set_t set;
	unsigned b;

	if (argc < 3) {
		fprintf(stderr, "usage: spin CPU MILLISECONDS\n");
		return 2;
	}
	CPU_ZERO(&set);
	CPU_SET(atoi(argv[1]), &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0) {
		perror("sched_setaffinity");
		return 1;
	}
	start = last = now();
	end = start + strtoull(argv[2], NULL, 10) * 1000000u;
	while (last < end) {
		uint64_t t = now();

		count[bucket(t - last)]++;
		last = t;
	}
	for (b = 0; b < BUCKETS; b++)
		if (count[b] != 0)
			printf("%llu %llu\n", (unsigned long long)value(b), (unsigned long long)count[b]);
	return 0;
}
