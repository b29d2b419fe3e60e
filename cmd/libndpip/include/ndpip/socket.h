/*
 * ndpip: sockets. Each call is that of POSIX without the prefix, on descriptors of ndpip's own: they are not the kernel's.
 * A call that fails returns -1 and sets errno, unless its comment says otherwise. docs/c-api.md tells the differences.
 */
#ifndef NDPIP_SOCKET_H
#define NDPIP_SOCKET_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#include <ndpip/pbuf.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A type of socket; the protocol (IPPROTO_TCP or IPPROTO_UDP) says which. SOCK_STREAM and SOCK_DGRAM do as well. */
#define SOCK_NDPIP 42

/* Options at level SOL_SOCKET. */
#define SO_NDPIP_TCP_WIN_SCALE 100  /* uint8_t: window scale to offer, before connect or listen */
#define SO_NDPIP_GRANTS 101         /* not supported: ENOPROTOOPT */
#define SO_NDPIP_BURST 102          /* uint16_t, get alone: frames per turn of the worker */
#define SO_NDPIP_MAX_TX_SEG 103     /* int: largest segment sent */
#define SO_NDPIP_TCP_MAX_RX_SEG 104 /* int: largest segment asked for */
#define SO_NDPIP_PROFILE 120        /* int: 0 lossless, 1 lossy; TCP_CONGESTION chooses the congestion control */

/* Life cycle. type may have SOCK_NONBLOCK; an accepted socket takes it over from its listener. */
int ndpip_socket(int domain, int type, int protocol);
int ndpip_bind(int fd, const struct sockaddr *addr, socklen_t len);
int ndpip_listen(int fd, int backlog);
int ndpip_connect(int fd, const struct sockaddr *addr, socklen_t len);
int ndpip_accept(int fd, struct sockaddr *addr, socklen_t *len);
int ndpip_shutdown(int fd, int how);
int ndpip_close(int fd);

/* F_GETFL, and F_SETFL with O_NONBLOCK; all else is EINVAL. */
int ndpip_fcntl(int fd, int cmd, ...);

int ndpip_getsockname(int fd, struct sockaddr *addr, socklen_t *len);
int ndpip_getpeername(int fd, struct sockaddr *addr, socklen_t *len);

/* The length of an option's value is passed by value both times. */
int ndpip_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int ndpip_getsockopt(int fd, int level, int name, const void *value, socklen_t len);

/*
 * Data, with one copy. ndpip_write returns 0 when the socket is non-blocking and nothing fits the window; ndpip_writev and
 * ndpip_sendto fail with EAGAIN then. ndpip_sendto and ndpip_recvfrom take no flags but MSG_DONTWAIT and MSG_NOSIGNAL.
 */
ssize_t ndpip_read(int fd, void *buf, size_t count);
ssize_t ndpip_write(int fd, void *buf, size_t count);
ssize_t ndpip_readv(int fd, const struct iovec *iov, int count);
ssize_t ndpip_writev(int fd, const struct iovec *iov, int count);
ssize_t ndpip_recvfrom(int fd, void *buf, size_t count, int flags, struct sockaddr *addr, socklen_t *len);
ssize_t ndpip_sendto(int fd, const void *buf, size_t count, int flags, const struct sockaddr *addr, socklen_t len);

/*
 * Data, without a copy: see ndpip/pbuf.h.
 *
 * ndpip_alloc gives buffers for sending on fd, each as long as the largest segment, and returns how many: with an error 0.
 * ndpip_prepare says whether a buffer can be sent: 0, or -1.
 * ndpip_send returns how many buffers were taken, the first ones, which are the stack's now; the others are unaltered. It
 * returns 0 when the socket is non-blocking and nothing fits the window.
 * ndpip_recv returns how many buffers were given: 0 at the end of the stream, -1 and EAGAIN when there is nothing yet.
 * ndpip_free gives buffers back, allocated and received ones; fd may have been closed.
 */
size_t ndpip_alloc(int fd, struct ndpip_pbuf **pbs, size_t count);
int ndpip_prepare(int fd, struct ndpip_pbuf *pb);
int ndpip_send(int fd, struct ndpip_pbuf **pbs, uint16_t count);
int ndpip_recv(int fd, struct ndpip_pbuf **pbs, uint16_t count);
int ndpip_free(int fd, struct ndpip_pbuf **pbs, size_t count);

/* The processor's clock: now, in cycles, and cycles as time. It counts from an arbitrary point and never goes back. */
void ndpip_time_now(struct timespec *now);
uint64_t ndpip_tsc(void);
void ndpip_tsc2time(uint64_t tsc, struct timespec *time);

#ifdef __cplusplus
}
#endif

#endif
