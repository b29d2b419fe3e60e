/* Reading and writing with one copy, and epoll. */
#include "_cgo_export.h"
#include "glue.h"
#include <ndpip/epoll.h>

ssize_t ndpip_read(int fd, void *buf, size_t count)
{
	return result(ndpip_go_read(fd, buf, count));
}

ssize_t ndpip_write(int fd, void *buf, size_t count)
{
	return result(ndpip_go_write(fd, buf, count));
}

ssize_t ndpip_readv(int fd, const struct iovec *iov, int count)
{
	return result(ndpip_go_vector(fd, 0, (struct iovec *)iov, count));
}

ssize_t ndpip_writev(int fd, const struct iovec *iov, int count)
{
	return result(ndpip_go_vector(fd, 1, (struct iovec *)iov, count));
}

int ndpip_epoll_create1(int flags)
{
	return (int)result(ndpip_go_epoll_create(ndpip_slot, flags));
}

int ndpip_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	return (int)result(ndpip_go_epoll_ctl(epfd, op, fd, event));
}

int ndpip_epoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout)
{
	return (int)result(ndpip_go_epoll_wait(epfd, events, maxevents, timeout));
}
