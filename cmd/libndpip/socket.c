/* Sockets: the life cycle, names and options. */
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>

#include "_cgo_export.h"
#include "glue.h"
#include <ndpip/socket.h>

/* A bad argument is told only when the descriptor is a good one. */
static int64_t bad(int fd, int error)
{
	int64_t r = ndpip_go_check(fd);

	return r < 0 ? r : -error;
}

/* Reads an address: 0, or a negated errno. */
static int address(const struct sockaddr *addr, socklen_t len, uint32_t *ip, uint16_t *port)
{
	struct sockaddr_in in;

	if (addr == NULL)
		return -EFAULT;
	if (len < sizeof(in))
		return -EINVAL;
	memcpy(&in, addr, sizeof(in));
	if (in.sin_family != AF_INET)
		return -EAFNOSUPPORT;
	*ip = ntohl(in.sin_addr.s_addr);
	*port = ntohs(in.sin_port);
	return 0;
}

/* Writes an address, which Go gives as ip << 16 | port, as far as there is room, and its whole length. */
static void put_address(struct sockaddr *addr, socklen_t *len, uint64_t name)
{
	struct sockaddr_in in;

	if (addr == NULL || len == NULL)
		return;
	memset(&in, 0, sizeof(in));
	in.sin_family = AF_INET;
	in.sin_addr.s_addr = htonl((uint32_t)(name >> 16));
	in.sin_port = htons((uint16_t)name);
	memcpy(addr, &in, *len < sizeof(in) ? *len : sizeof(in));
	*len = sizeof(in);
}

int ndpip_socket(int domain, int type, int protocol)
{
	return (int)result(ndpip_go_socket(ndpip_slot, domain, type, protocol));
}

int ndpip_bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	uint32_t ip;
	uint16_t port;
	int e = address(addr, len, &ip, &port);

	return (int)result(e != 0 ? bad(fd, -e) : ndpip_go_bind(fd, ip, port));
}

int ndpip_connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	uint32_t ip;
	uint16_t port;
	int e = address(addr, len, &ip, &port);

	return (int)result(e != 0 ? bad(fd, -e) : ndpip_go_connect(fd, ip, port));
}

int ndpip_listen(int fd, int backlog)
{
	return (int)result(ndpip_go_listen(fd, backlog));
}

int ndpip_accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	uint64_t peer = 0;
	int64_t r = addr != NULL && len == NULL ? bad(fd, EFAULT) : ndpip_go_accept(fd, &peer);

	if (r >= 0)
		put_address(addr, len, peer);
	return (int)result(r);
}

int ndpip_shutdown(int fd, int how)
{
	return (int)result(ndpip_go_shutdown(fd, how));
}

int ndpip_close(int fd)
{
	return (int)result(ndpip_go_close(fd));
}

int ndpip_fcntl(int fd, int cmd, ...)
{
	va_list ap;
	int flags;

	switch (cmd) {
	case F_GETFL:
		return (int)result(ndpip_go_getfl(fd));
	case F_SETFL:
		va_start(ap, cmd);
		flags = va_arg(ap, int);
		va_end(ap);
		return (int)result(ndpip_go_setfl(fd, (flags & O_NONBLOCK) != 0));
	}
	return (int)result(bad(fd, EINVAL));
}

static int name_of(int fd, int peer, struct sockaddr *addr, socklen_t *len)
{
	uint64_t name = 0;
	int64_t r = addr == NULL || len == NULL ? bad(fd, EFAULT) : ndpip_go_name(fd, peer, &name);

	if (r >= 0)
		put_address(addr, len, name);
	return (int)result(r);
}

int ndpip_getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	return name_of(fd, 0, addr, len);
}

int ndpip_getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	return name_of(fd, 1, addr, len);
}

int ndpip_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	if (value == NULL)
		return (int)result(bad(fd, EFAULT));
	return (int)result(ndpip_go_setsockopt(fd, level, name, (void *)value, len));
}

int ndpip_getsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	if (value == NULL)
		return (int)result(bad(fd, EFAULT));
	return (int)result(ndpip_go_getsockopt(fd, level, name, (void *)value, len));
}

ssize_t ndpip_recvfrom(int fd, void *buf, size_t count, int flags, struct sockaddr *addr, socklen_t *len)
{
	uint64_t from = 0;
	int64_t r = addr != NULL && len == NULL ? bad(fd, EFAULT) : ndpip_go_recvfrom(fd, buf, count, flags, &from);

	if (r >= 0 && from != 0)
		put_address(addr, len, from);
	return result(r);
}

ssize_t ndpip_sendto(int fd, const void *buf, size_t count, int flags, const struct sockaddr *addr, socklen_t len)
{
	uint32_t ip = 0;
	uint16_t port = 0;
	int e = addr == NULL ? 0 : address(addr, len, &ip, &port);

	if (e != 0)
		return result(bad(fd, -e));
	return result(ndpip_go_sendto(fd, (void *)buf, count, flags, addr != NULL, ip, port));
}
