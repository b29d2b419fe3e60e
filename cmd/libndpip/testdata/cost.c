/*
 * What a call through the library costs over one from Go: writes of one segment, in batches by turns, from C and in a loop
 * in Go (the library is built with the tag ndpipbench). Prints both medians in ns; how many times the second the first may be
 * is a condition, if given.
 */
#include "ring.h"

#ifdef __cplusplus
extern "C"
#endif
int64_t ndpip_go_write_many(int fd, void *p, size_t n, int times);

enum { BATCH = 32, BATCHES = 4000, SEGMENT = 64 };

static int by_number(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static double median(uint64_t *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), by_number);
	return (double)v[n / 2] * 1e9 / (double)rte_get_tsc_hz() / BATCH;
}

int main(int argc, char **argv)
{
	static uint64_t c_took[BATCHES / 2], go_took[BATCHES / 2];
	static char buf[SEGMENT * BATCH];
	int eal = rte_eal_init(argc, argv);
	int a, b, l, s, t, i, k, seg = SEGMENT;
	struct sockaddr_in to = name("10.9.0.2", 5001);
	double c, go;

	CHECK(eal >= 0);
	ring_pair(&a, &b);
	start_pair(a, b);
	l = listener(b, 5001, 0);
	CHECK(ndpip_use_iface(a) == 0);
	CHECK((s = ndpip_socket(AF_INET, SOCK_NDPIP, IPPROTO_TCP)) > 2);
	CHECK(ndpip_setsockopt(s, SOL_SOCKET, SO_NDPIP_MAX_TX_SEG, &seg, sizeof(seg)) == 0);
	CHECK(ndpip_connect(s, (struct sockaddr *)&to, sizeof(to)) == 0);
	CHECK((t = ndpip_accept(l, NULL, NULL)) > 2);
	for (i = 0; i < BATCHES; i++) {
		uint64_t begin = ndpip_tsc();
		size_t got = 0;

		if (i % 2 == 0) {
			for (k = 0; k < BATCH; k++)
				CHECK(ndpip_write(s, buf, SEGMENT) == SEGMENT);
			c_took[i / 2] = ndpip_tsc() - begin;
		} else {
			CHECK(ndpip_go_write_many(s, buf, SEGMENT, BATCH) == BATCH * SEGMENT);
			go_took[i / 2] = ndpip_tsc() - begin;
		}
		while (got < sizeof(buf)) {
			ssize_t n = ndpip_read(t, buf, sizeof(buf) - got);

			CHECK(n > 0);
			got += (size_t)n;
		}
	}
	c = median(c_took, BATCHES / 2);
	go = median(go_took, BATCHES / 2);
	printf("a write of one segment: %.0f ns from C, %.0f ns from Go, %.0f ns more\n", c, go, c - go);
	CHECK(argc - eal < 2 || c <= go * atof(argv[eal + 1]));
	CHECK(ndpip_linux_dpdk_stop_iface(a) == 0 && ndpip_linux_dpdk_stop_iface(b) == 0);
	puts("ok");
	return 0;
}
