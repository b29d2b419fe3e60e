/*
 * Buffers. A pbuf is an mbuf: its data and lengths describe the payload. They are the program's own while it has the buffer:
 * over net_ring the sender's stack may hold the same mbuf for retransmission, but it keeps address and length for itself.
 */
#include <ndpip/socket.h>

#include <rte_mbuf.h>

#include "../../dpdk/shim.h"
#include "_cgo_export.h"
#include "glue.h"

/* Buffers that go through one call into Go. */
#define BATCH 64

/* What stays free in front of a payload: the headers of Ethernet, IPv4 and TCP. */
#define HEADERS 54

static uint32_t tags[NDPIP_SLOTS];

void ndpip_set_tag(int slot, uint32_t tag)
{
	__atomic_store_n(&tags[slot], tag, __ATOMIC_RELEASE);
}

static inline struct rte_mbuf *mbuf(struct ndpip_pbuf *pb)
{
	return (struct rte_mbuf *)pb;
}

/* The tag of buffers that can be sent on fd; 0: none. */
static uint32_t tag_of(int fd)
{
	uint32_t slot = (uint32_t)fd >> NDPIP_SLOT_BITS;

	return slot < NDPIP_SLOTS ? __atomic_load_n(&tags[slot], __ATOMIC_ACQUIRE) : 0;
}

static inline void describe(struct ndpip_frame *f, struct rte_mbuf *m)
{
	f->handle = (uintptr_t)m;
	f->addr = (uintptr_t)rte_pktmbuf_mtod(m, void *);
	f->len = m->data_len;
	f->flags = 0;
}

static inline struct ndpip_pbuf *adopt(const struct ndpip_frame *f, uint32_t tag)
{
	struct rte_mbuf *m = (struct rte_mbuf *)(uintptr_t)f->handle;

	m->data_off = (uint16_t)(f->addr - (uintptr_t)m->buf_addr);
	m->data_len = (uint16_t)f->len;
	m->pkt_len = f->len;
	m->packet_type = tag;
	return (struct ndpip_pbuf *)m;
}

void *ndpip_pbuf_data(struct ndpip_pbuf *pb)
{
	return pb == NULL ? NULL : rte_pktmbuf_mtod(mbuf(pb), void *);
}

uint16_t ndpip_pbuf_length(struct ndpip_pbuf *pb)
{
	return pb == NULL ? 0 : mbuf(pb)->data_len;
}

int ndpip_pbuf_offset(struct ndpip_pbuf *pb, int n)
{
	struct rte_mbuf *m = mbuf(pb);

	if (pb == NULL)
		return (int)result(-EFAULT);
	if (n < -(int)m->data_len || n > (int)m->data_off - HEADERS || m->data_len + n > UINT16_MAX)
		return (int)result(-EINVAL);
	m->data_off = (uint16_t)(m->data_off - n);
	m->data_len = (uint16_t)(m->data_len + n);
	m->pkt_len = m->data_len;
	return 0;
}

int ndpip_pbuf_resize(struct ndpip_pbuf *pb, uint16_t length)
{
	struct rte_mbuf *m = mbuf(pb);

	if (pb == NULL)
		return (int)result(-EFAULT);
	if (m->data_off + length > m->buf_len)
		return (int)result(-EINVAL);
	m->data_len = length;
	m->pkt_len = length;
	return 0;
}

size_t ndpip_alloc(int fd, struct ndpip_pbuf **pbs, size_t count)
{
	struct ndpip_frame f[BATCH];
	uint32_t tag = tag_of(fd);
	size_t n = 0;
	int64_t k;

	if (pbs == NULL && count > 0) {
		k = ndpip_go_check(fd);
		errno = k < 0 ? (int)-k : EFAULT;
		return 0;
	}
	while (n < count) {
		int want = (int)RTE_MIN(count - n, (size_t)BATCH), i;

		k = ndpip_go_alloc(fd, f, want);
		if (k < 0 && n == 0)
			errno = (int)-k;
		if (k <= 0)
			break;
		for (i = 0; i < k; i++) {
			pbs[n + i] = adopt(&f[i], tag);
			mbuf(pbs[n + i])->hash.usr = f[i].len; /* ndpip_prepare's limit */
		}
		n += (size_t)k;
		if (k < want)
			break;
	}
	return n;
}

int ndpip_prepare(int fd, struct ndpip_pbuf *pb)
{
	uint32_t tag = tag_of(fd);

	if (fd < 0 || tag == 0)
		return (int)result(-EBADF);
	if (pb == NULL)
		return (int)result(-EFAULT);
	if (mbuf(pb)->packet_type != tag)
		return (int)result(-EINVAL);
	if (mbuf(pb)->data_len > mbuf(pb)->hash.usr)
		return (int)result(-EMSGSIZE);
	return 0;
}

int ndpip_send(int fd, struct ndpip_pbuf **pbs, uint16_t count)
{
	struct ndpip_frame f[BATCH];
	uint32_t tag = tag_of(fd);
	int done = 0;

	if (tag == 0 || (pbs == NULL && count > 0)) {
		int64_t r = ndpip_go_check(fd);

		return (int)result(r < 0 ? r : -EFAULT);
	}
	do {
		int want = RTE_MIN(count - done, BATCH), k, i;
		int64_t n;

		/* The tag goes before the stack sees the buffer: from then on it may be anybody's. */
		for (k = 0; k < want; k++) {
			struct ndpip_pbuf *pb = pbs[done + k];

			if (pb == NULL || mbuf(pb)->packet_type != tag)
				break;
			describe(&f[k], mbuf(pb));
			mbuf(pb)->packet_type = 0;
		}
		n = k == 0 && want > 0 ? -EINVAL : ndpip_go_send(fd, f, k, done > 0);
		for (i = n < 0 ? 0 : (int)n; i < k; i++)
			mbuf(pbs[done + i])->packet_type = tag;
		if (n < 0)
			return done > 0 ? done : (int)result(n);
		done += (int)n;
		if (n < want)
			return done;
	} while (done < count);
	return done;
}

int ndpip_recv(int fd, struct ndpip_pbuf **pbs, uint16_t count)
{
	struct ndpip_frame f[BATCH];
	uint32_t tag = tag_of(fd) | NDPIP_TAG_RECEIVED;
	int64_t n;
	int i;

	if (pbs == NULL && count > 0) {
		n = ndpip_go_check(fd);
		return (int)result(n < 0 ? n : -EFAULT);
	}
	n = ndpip_go_recv(fd, f, RTE_MIN(count, BATCH));
	for (i = 0; i < n; i++)
		pbs[i] = adopt(&f[i], tag);
	return (int)result(n);
}

/* Gives buffers to the stack that they came from, or to their pools if it has stopped meanwhile. */
static void give_back(struct ndpip_frame *f, int n, uint32_t tag)
{
	int i;

	if (n > 0 && ndpip_go_free((tag >> NDPIP_TAG_SLOT) % NDPIP_SLOTS, f, n, tag & NDPIP_TAG_RECEIVED) < 0) {
		for (i = 0; i < n; i++)
			rte_pktmbuf_free((struct rte_mbuf *)(uintptr_t)f[i].handle);
	}
}

int ndpip_free(int fd, struct ndpip_pbuf **pbs, size_t count)
{
	struct ndpip_frame f[BATCH];
	uint32_t tag = 0; /* of all in f */
	int n = 0, error = 0;
	size_t i;

	(void)fd;
	if (pbs == NULL && count > 0)
		return (int)result(-EFAULT);
	for (i = 0; i < count; i++) {
		struct rte_mbuf *m = mbuf(pbs[i]);
		uint32_t t = m == NULL ? 0 : m->packet_type;

		if ((t & (uint32_t)NDPIP_TAG_MASK) != (uint32_t)NDPIP_TAG) {
			error = EINVAL; /* not the program's; the others are given back all the same */
			continue;
		}
		m->packet_type = 0;
		if (n == BATCH || (n > 0 && t != tag)) {
			give_back(f, n, tag);
			n = 0;
		}
		tag = t;
		f[n++].handle = (uintptr_t)m;
	}
	give_back(f, n, tag);
	return (int)result(-error);
}
