/* Buffers: what belongs to whom, moving their ends, misuse, and zero copy for TCP and UDP. */
#include "ring.h"

#include <fcntl.h>

static void ends(int s)
{
	struct ndpip_pbuf *pb;
	uint8_t *at;
	uint16_t len;

	CHECK(ndpip_alloc(s, &pb, 1) == 1);
	at = (uint8_t *)ndpip_pbuf_data(pb);
	len = ndpip_pbuf_length(pb);
	CHECK(at != NULL && len == 1460);
	CHECK(ndpip_pbuf_resize(pb, 100) == 0 && ndpip_pbuf_length(pb) == 100 && ndpip_pbuf_data(pb) == at);
	CHECK(ndpip_pbuf_offset(pb, -30) == 0 && ndpip_pbuf_length(pb) == 70 && ndpip_pbuf_data(pb) == at + 30);
	FAILS(ndpip_pbuf_offset(pb, -71), EINVAL);
	CHECK(ndpip_pbuf_offset(pb, 30) == 0 && ndpip_pbuf_length(pb) == 100 && ndpip_pbuf_data(pb) == at);
	FAILS(ndpip_pbuf_offset(pb, 1000), EINVAL); /* the headers need that room */
	FAILS(ndpip_pbuf_offset(pb, -2147483647 - 1), EINVAL);
	FAILS(ndpip_pbuf_resize(pb, 65535), EINVAL);
	CHECK(ndpip_pbuf_resize(pb, 1461) == 0);
	FAILS(ndpip_prepare(s, pb), EMSGSIZE);
	FAILS(ndpip_send(s, &pb, 1), EMSGSIZE);
	CHECK(ndpip_pbuf_resize(pb, 1460) == 0 && ndpip_prepare(s, pb) == 0);
	CHECK(ndpip_free(s, &pb, 1) == 0);
	FAILS(ndpip_prepare(s, pb), EINVAL); /* it is the pool's */
	FAILS(ndpip_send(s, &pb, 1), EINVAL);
	FAILS(ndpip_free(s, &pb, 1), EINVAL);
	FAILS(ndpip_pbuf_resize(NULL, 1), EFAULT);
	FAILS(ndpip_pbuf_offset(NULL, 1), EFAULT);
	CHECK(ndpip_pbuf_data(NULL) == NULL && ndpip_pbuf_length(NULL) == 0);
}

/* What is sent arrives, at whatever ends the buffers were set to. */
static void across(int s, int t)
{
	struct ndpip_pbuf *out[100], *in[100];
	unsigned int sent = 0, got = 0;
	int i, n;

	CHECK(ndpip_alloc(s, out, 100) == 100);
	for (i = 0; i < 100; i++) {
		uint8_t *p = (uint8_t *)ndpip_pbuf_data(out[i]);
		int k;

		for (k = 0; k < 1460; k++)
			p[k] = (uint8_t)(i + k);
		CHECK(ndpip_pbuf_offset(out[i], -i) == 0);
		CHECK(ndpip_pbuf_resize(out[i], (uint16_t)(1 + i)) == 0);
		CHECK(ndpip_prepare(s, out[i]) == 0);
		sent += 1 + (unsigned int)i;
	}
	for (i = 0; i < 100; i += n) {
		n = ndpip_send(s, out + i, (uint16_t)(100 - i));
		CHECK(n > 0);
	}
	FAILS(ndpip_free(s, out, 1), EINVAL); /* it is the stack's */
	for (i = 0; got < sent;) {
		int k;

		n = ndpip_recv(t, in, 100);
		CHECK(n > 0);
		for (k = 0; k < n; k++, i++) {
			uint8_t *p = (uint8_t *)ndpip_pbuf_data(in[k]);
			int j;

			CHECK(ndpip_pbuf_length(in[k]) == 1 + i);
			for (j = 0; j <= i; j++)
				CHECK(p[j] == (uint8_t)(i + i + j));
			got += ndpip_pbuf_length(in[k]);
			CHECK(ndpip_pbuf_offset(in[k], -1) == 0 && ndpip_pbuf_length(in[k]) == i);
			CHECK(ndpip_pbuf_offset(in[k], 1) == 0);
		}
		FAILS(ndpip_send(t, in, 1), EINVAL); /* received ones cannot be sent */
		CHECK(ndpip_free(t, in, (size_t)n) == 0);
	}
}

/* A full window takes no more, and leaves the rest unaltered. */
static void full(int s, int t)
{
	struct ndpip_pbuf *pb;
	char b[16];
	ssize_t more, total;
	int n, taken = 0;

	memset(b, 'y', sizeof(b));
	for (;;) {
		CHECK(ndpip_alloc(s, &pb, 1) == 1);
		memset(ndpip_pbuf_data(pb), 'y', 1460);
		n = ndpip_send(s, &pb, 1);
		if (n == 0)
			break;
		CHECK(n == 1 && ++taken < 100000);
	}
	CHECK(taken > 10 && ndpip_pbuf_length(pb) == 1460 && *(char *)ndpip_pbuf_data(pb) == 'y');
	CHECK(ndpip_free(s, &pb, 1) == 0);
	total = (ssize_t)taken * 1460;
	while ((more = ndpip_write(s, b, sizeof(b))) > 0) /* what is less than a segment */
		total += more;
	CHECK(more == 0); /* as the original has it */
	while (total > 0) {
		more = ndpip_read(t, b, sizeof(b));
		CHECK(more > 0 && b[0] == 'y');
		total -= more;
	}
}

static void datagrams(int a, int b)
{
	struct sockaddr_in to = name("10.9.0.2", 7000), from;
	socklen_t len = sizeof(from);
	struct ndpip_pbuf *pb[3];
	char buf[100];
	int s, u, n;

	CHECK(ndpip_use_iface(b) == 0 && (u = ndpip_socket(AF_INET, SOCK_NDPIP, IPPROTO_UDP)) > 2);
	CHECK(ndpip_bind(u, (struct sockaddr *)&to, sizeof(to)) == 0);
	CHECK(ndpip_use_iface(a) == 0 && (s = ndpip_socket(AF_INET, SOCK_NDPIP, IPPROTO_UDP)) > 2);
	CHECK(ndpip_connect(s, (struct sockaddr *)&to, sizeof(to)) == 0);
	CHECK(ndpip_alloc(s, pb, 3) == 3 && ndpip_pbuf_length(pb[0]) == 1472);
	for (n = 0; n < 3; n++)
		CHECK(ndpip_pbuf_resize(pb[n], 5) == 0 && memcpy(ndpip_pbuf_data(pb[n]), "hello", 5) != NULL);
	CHECK(ndpip_send(s, pb, 3) == 3);
	CHECK(ndpip_recv(u, pb, 1) == 1 && ndpip_pbuf_length(pb[0]) == 5 && memcmp(ndpip_pbuf_data(pb[0]), "hello", 5) == 0);
	CHECK(ndpip_free(u, pb, 1) == 0);
	CHECK(ndpip_read(u, buf, sizeof(buf)) == 5);
	CHECK(ndpip_recvfrom(u, buf, sizeof(buf), 0, (struct sockaddr *)&from, &len) == 5);
	CHECK(len == sizeof(from) && from.sin_addr.s_addr == ip("10.9.0.1").s_addr && from.sin_port != 0);
	CHECK(ndpip_sendto(u, "ho", 2, MSG_NOSIGNAL, (struct sockaddr *)&from, sizeof(from)) == 2);
	CHECK(ndpip_read(s, buf, sizeof(buf)) == 2 && memcmp(buf, "ho", 2) == 0);
	CHECK(ndpip_close(s) == 0 && ndpip_close(u) == 0);
}

int main(int argc, char **argv)
{
	struct ndpip_pbuf *late[3], *last;
	int a, b, l, s, t, end;
	char c;

	CHECK(rte_eal_init(argc, argv) >= 0);
	ring_pair(&a, &b);
	start_pair(a, b);
	l = listener(b, 80, 0);
	s = dial(a, l, 80, &t);
	ends(s);
	across(s, t);
	across(t, s);
	CHECK(ndpip_fcntl(s, F_SETFL, O_NONBLOCK) == 0);
	full(s, t);
	datagrams(a, b);

	/* Buffers outlive their socket, and their interface. */
	CHECK(ndpip_alloc(s, late, 3) == 3);
	CHECK(ndpip_write(s, (void *)"z", 1) == 1);
	CHECK(ndpip_recv(t, &last, 1) == 1);
	CHECK(ndpip_close(s) == 0);
	CHECK(ndpip_free(s, late, 1) == 0);
	end = ndpip_recv(t, late, 1);
	CHECK(end == 0); /* the end of the stream */
	CHECK(ndpip_close(t) == 0);
	FAILS(ndpip_read(t, &c, 1), EBADF);
	CHECK(ndpip_free(t, &last, 1) == 0);
	CHECK(ndpip_close(l) == 0);
	CHECK(ndpip_linux_dpdk_stop_iface(a) == 0);
	CHECK(ndpip_linux_dpdk_stop_iface(b) == 0);
	CHECK(in_use() == 2);
	CHECK(ndpip_free(s, late + 1, 2) == 0);
	CHECK(in_use() == 0);
	puts("ok");
	return 0;
}
