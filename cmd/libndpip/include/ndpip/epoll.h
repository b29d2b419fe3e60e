/* ndpip: epoll for ndpip's descriptors, with Linux's struct epoll_event and EPOLL values. A wait polls without rest. */
#ifndef NDPIP_EPOLL_H
#define NDPIP_EPOLL_H

#include <sys/epoll.h>

#include <ndpip/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

int ndpip_epoll_create1(int flags);
int ndpip_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event);
int ndpip_epoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout);

#ifdef __cplusplus
}
#endif

#endif
