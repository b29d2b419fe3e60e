/* What each call says to wrong arguments, and what names, flags and options say to right ones. */
#include "ring.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/uio.h>

static void before_start(int a)
{
	struct sockaddr_in at = name("10.9.0.1", 80);
	struct ether_addr group = {{1, 0, 0, 0, 0, 1}};

	FAILS(ndpip_socket(AF_INET, SOCK_NDPIP, IPPROTO_TCP), ENETDOWN);
	FAILS(ndpip_epoll_create1(0), ENETDOWN);
	FAILS(ndpip_linux_dpdk_start_iface(a), ENODEV);
	FAILS(ndpip_linux_dpdk_set_inaddr(a, at.sin_addr), ENODEV);
	FAILS(ndpip_linux_dpdk_register_iface(31), ENODEV);
	FAILS(ndpip_linux_dpdk_register_iface(-1), ENODEV);
	CHECK(ndpip_linux_dpdk_register_iface(a) == 0);
	FAILS(ndpip_linux_dpdk_start_iface(a), EINVAL); /* no address */
	FAILS(ndpip_linux_dpdk_stop_iface(a), EINVAL);
	FAILS(ndpip_linux_dpdk_set_inaddr(a, ip("0.0.0.0")), EINVAL);
	FAILS(ndpip_linux_dpdk_set_inaddr(a, ip("224.0.0.1")), EINVAL);
	FAILS(ndpip_linux_dpdk_set_ethaddr(a, group), EINVAL);
	FAILS(ndpip_linux_dpdk_set_burst_size(a, 0), EINVAL);
	FAILS(ndpip_linux_dpdk_set_arp_table(a, NULL, 1), EFAULT);
	FAILS(ndpip_set_network(a, 33, at.sin_addr), EINVAL);
	FAILS(ndpip_set_buffers(a, 3), EINVAL);
	FAILS(ndpip_use_iface(30), ENODEV);
	FAILS(ndpip_attach_port(a, 0, 0, 7, NULL), EINVAL);
	FAILS(ndpip_register_feed(NULL), EFAULT);
	FAILS(ndpip_register_feed("a name that is too long"), EINVAL);
}

static void bad_descriptors(int fd)
{
	struct sockaddr_in at = name("10.9.0.1", 80);
	struct epoll_event ev;
	struct ndpip_pbuf *pb = NULL;
	socklen_t len = sizeof(at);
	struct iovec v;
	char b[8];
	int one = 1;

	memset(&ev, 0, sizeof(ev));
	v.iov_base = b;
	v.iov_len = sizeof(b);
	FAILS(ndpip_bind(fd, (struct sockaddr *)&at, sizeof(at)), EBADF);
	FAILS(ndpip_bind(fd, NULL, 0), EBADF);
	FAILS(ndpip_listen(fd, 1), EBADF);
	FAILS(ndpip_connect(fd, (struct sockaddr *)&at, sizeof(at)), EBADF);
	FAILS(ndpip_accept(fd, NULL, NULL), EBADF);
	FAILS(ndpip_shutdown(fd, SHUT_WR), EBADF);
	FAILS(ndpip_close(fd), EBADF);
	FAILS(ndpip_fcntl(fd, F_GETFL), EBADF);
	FAILS(ndpip_fcntl(fd, F_SETFL, O_NONBLOCK), EBADF);
	FAILS(ndpip_getsockname(fd, (struct sockaddr *)&at, &len), EBADF);
	FAILS(ndpip_getpeername(fd, NULL, NULL), EBADF);
	FAILS(ndpip_setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)), EBADF);
	FAILS(ndpip_getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one)), EBADF);
	FAILS(ndpip_read(fd, b, sizeof(b)), EBADF);
	FAILS(ndpip_read(fd, NULL, sizeof(b)), EBADF);
	FAILS(ndpip_write(fd, b, sizeof(b)), EBADF);
	FAILS(ndpip_readv(fd, &v, 1), EBADF);
	FAILS(ndpip_writev(fd, &v, 1), EBADF);
	FAILS(ndpip_recvfrom(fd, b, sizeof(b), 0, NULL, NULL), EBADF);
	FAILS(ndpip_sendto(fd, b, sizeof(b), 0, NULL, 0), EBADF);
	errno = 0;
	CHECK(ndpip_alloc(fd, &pb, 1) == 0 && errno == EBADF);
	FAILS(ndpip_prepare(fd < 0 ? fd : -1, pb), EBADF);
	FAILS(ndpip_send(fd, &pb, 0), EBADF);
	FAILS(ndpip_recv(fd, &pb, 1), EBADF);
	FAILS(ndpip_epoll_ctl(fd, EPOLL_CTL_ADD, fd, &ev), EBADF);
	FAILS(ndpip_epoll_wait(fd, &ev, 1, 0), EBADF);
}

static void arguments(int a, int b, int l)
{
	struct sockaddr_in at = name("10.9.0.1", 80), other = name("10.9.0.77", 80);
	struct epoll_event ev;
	struct iovec v;
	struct ndpip_pbuf *pb = NULL;
	socklen_t len = sizeof(at);
	char buf[8];
	int s, u, ep, ep2, one = 1, got = 0;

	CHECK(ndpip_use_iface(a) == 0);
	FAILS(ndpip_socket(AF_INET6, SOCK_NDPIP, IPPROTO_TCP), EAFNOSUPPORT);
	FAILS(ndpip_socket(AF_INET, SOCK_NDPIP, IPPROTO_ICMP), EPROTONOSUPPORT);
	FAILS(ndpip_socket(AF_INET, SOCK_RAW, IPPROTO_TCP), ESOCKTNOSUPPORT);
	CHECK((s = ndpip_socket(AF_INET, SOCK_NDPIP | SOCK_NONBLOCK, IPPROTO_TCP)) > 2);
	CHECK((u = ndpip_socket(AF_INET, SOCK_NDPIP | SOCK_NONBLOCK, IPPROTO_UDP)) > 2);
	CHECK((ep = ndpip_epoll_create1(EPOLL_CLOEXEC)) > 2);
	FAILS(ndpip_epoll_create1(1), EINVAL);

	FAILS(ndpip_bind(s, NULL, sizeof(at)), EFAULT);
	FAILS(ndpip_bind(s, (struct sockaddr *)&at, 4), EINVAL);
	FAILS(ndpip_bind(s, (struct sockaddr *)&other, sizeof(other)), EADDRNOTAVAIL);
	at.sin_family = AF_UNIX;
	FAILS(ndpip_bind(s, (struct sockaddr *)&at, sizeof(at)), EAFNOSUPPORT);
	FAILS(ndpip_connect(s, NULL, sizeof(at)), EFAULT);
	FAILS(ndpip_accept(s, NULL, NULL), EINVAL);
	FAILS(ndpip_accept(l, (struct sockaddr *)&at, NULL), EFAULT);
	FAILS(ndpip_accept(l, NULL, NULL), EAGAIN);
	FAILS(ndpip_listen(u, 1), EOPNOTSUPP);
	FAILS(ndpip_shutdown(s, SHUT_WR), ENOTCONN);
	FAILS(ndpip_getpeername(s, (struct sockaddr *)&at, &len), ENOTCONN);
	FAILS(ndpip_getsockname(s, NULL, &len), EFAULT);
	FAILS(ndpip_getsockname(s, (struct sockaddr *)&at, NULL), EFAULT);

	FAILS(ndpip_fcntl(s, F_DUPFD, 0), EINVAL);
	CHECK(ndpip_fcntl(s, F_GETFL) == (O_RDWR | O_NONBLOCK));
	CHECK(ndpip_fcntl(s, F_SETFL, 0) == 0 && ndpip_fcntl(s, F_GETFL) == O_RDWR);
	CHECK(ndpip_fcntl(s, F_SETFL, O_NONBLOCK) == 0);

	FAILS(ndpip_setsockopt(s, SOL_SOCKET, SO_KEEPALIVE, NULL, sizeof(one)), EFAULT);
	FAILS(ndpip_setsockopt(s, SOL_SOCKET, SO_KEEPALIVE, &one, 1), EINVAL);
	FAILS(ndpip_setsockopt(s, SOL_SOCKET, SO_NDPIP_GRANTS, &one, sizeof(one)), ENOPROTOOPT);
	FAILS(ndpip_getsockopt(s, SOL_SOCKET, SO_NDPIP_GRANTS, &one, sizeof(one)), ENOPROTOOPT);
	FAILS(ndpip_getsockopt(s, SOL_SOCKET, SO_ERROR, NULL, sizeof(one)), EFAULT);

	FAILS(ndpip_read(s, buf, sizeof(buf)), ENOTCONN);
	FAILS(ndpip_read(u, NULL, sizeof(buf)), EFAULT);
	FAILS(ndpip_write(u, NULL, sizeof(buf)), EFAULT);
	FAILS(ndpip_write(u, buf, sizeof(buf)), EDESTADDRREQ);
	FAILS(ndpip_readv(u, NULL, 1), EFAULT);
	FAILS(ndpip_readv(u, NULL, -1), EINVAL);
	FAILS(ndpip_writev(u, NULL, 5000), EINVAL);
	v.iov_base = NULL;
	v.iov_len = 4;
	FAILS(ndpip_writev(u, &v, 1), EFAULT);
	v.iov_base = buf;
	v.iov_len = (size_t)-1;
	FAILS(ndpip_writev(u, &v, 1), EINVAL);
	FAILS(ndpip_sendto(u, NULL, 4, 0, (struct sockaddr *)&other, sizeof(other)), EFAULT);
	FAILS(ndpip_sendto(u, buf, 4, 0, (struct sockaddr *)&other, 3), EINVAL);
	FAILS(ndpip_sendto(u, buf, 4, MSG_OOB, (struct sockaddr *)&other, sizeof(other)), EOPNOTSUPP);
	FAILS(ndpip_recvfrom(u, buf, 4, 0, (struct sockaddr *)&other, NULL), EFAULT);
	FAILS(ndpip_recvfrom(u, buf, 4, MSG_DONTWAIT, NULL, NULL), EAGAIN);

	errno = 0;
	CHECK(ndpip_alloc(s, &pb, 1) == 0 && errno == ENOTCONN);
	CHECK(ndpip_alloc(s, NULL, 1) == 0 && errno == EFAULT);
	FAILS(ndpip_prepare(s, NULL), EFAULT);
	FAILS(ndpip_send(s, NULL, 1), EFAULT);
	FAILS(ndpip_send(u, &pb, 1), EINVAL);
	FAILS(ndpip_recv(s, NULL, 1), EFAULT);
	FAILS(ndpip_free(s, NULL, 1), EFAULT);
	FAILS(ndpip_free(s, &pb, 1), EINVAL);

	memset(&ev, 0, sizeof(ev));
	FAILS(ndpip_epoll_ctl(ep, EPOLL_CTL_ADD, s, NULL), EFAULT);
	FAILS(ndpip_epoll_ctl(ep, 99, s, &ev), EINVAL);
	FAILS(ndpip_epoll_ctl(ep, EPOLL_CTL_MOD, s, &ev), ENOENT);
	FAILS(ndpip_epoll_ctl(s, EPOLL_CTL_ADD, u, &ev), EINVAL);
	CHECK(ndpip_epoll_ctl(ep, EPOLL_CTL_ADD, u, &ev) == 0);
	FAILS(ndpip_epoll_ctl(ep, EPOLL_CTL_ADD, u, &ev), EEXIST);
	CHECK(ndpip_epoll_ctl(ep, EPOLL_CTL_DEL, u, NULL) == 0);
	FAILS(ndpip_epoll_wait(ep, &ev, 0, 0), EINVAL);
	FAILS(ndpip_epoll_wait(ep, &ev, -3, 0), EINVAL);
	FAILS(ndpip_epoll_wait(ep, NULL, 1, 0), EFAULT);
	FAILS(ndpip_epoll_wait(s, &ev, 1, 0), EINVAL);
	CHECK(ndpip_epoll_wait(ep, &ev, 1, 10) == 0);
	CHECK(ndpip_use_iface(b) == 0);
	CHECK((ep2 = ndpip_epoll_create1(0)) > 2);
	FAILS(ndpip_epoll_ctl(ep2, EPOLL_CTL_ADD, s, &ev), EINVAL); /* of another interface */

	CHECK(ndpip_getsockopt(s, SOL_SOCKET, SO_TYPE, &got, sizeof(got)) == 0 && got == SOCK_STREAM);
	CHECK(ndpip_close(s) == 0 && ndpip_close(u) == 0 && ndpip_close(ep) == 0 && ndpip_close(ep2) == 0);
	FAILS(ndpip_close(s), EBADF);
	FAILS(ndpip_linux_dpdk_set_burst_size(a, 16), EBUSY);
	FAILS(ndpip_linux_dpdk_register_iface(a), EBUSY);
	FAILS(ndpip_linux_dpdk_start_iface(a), EBUSY);
}

static void options(int a, int l)
{
	struct sockaddr_in to = name("10.9.0.2", 4242), me;
	struct linger lin = {1, 5}, lin2;
	struct tcp_info info;
	socklen_t len = sizeof(me);
	uint8_t scale = 7, scale2 = 0;
	uint16_t burst = 0;
	int s, t, seg = 512, v = 0, one = 1;

	CHECK(ndpip_use_iface(a) == 0);
	CHECK((s = ndpip_socket(AF_INET, SOCK_NDPIP, IPPROTO_TCP)) > 2);
	CHECK(ndpip_setsockopt(s, SOL_SOCKET, SO_NDPIP_TCP_WIN_SCALE, &scale, sizeof(scale)) == 0);
	CHECK(ndpip_getsockopt(s, SOL_SOCKET, SO_NDPIP_TCP_WIN_SCALE, &scale2, sizeof(scale2)) == 0 && scale2 == 7);
	CHECK(ndpip_setsockopt(s, SOL_SOCKET, SO_NDPIP_MAX_TX_SEG, &seg, sizeof(seg)) == 0);
	CHECK(ndpip_setsockopt(s, SOL_SOCKET, SO_NDPIP_TCP_MAX_RX_SEG, &seg, sizeof(seg)) == 0);
	CHECK(ndpip_getsockopt(s, SOL_SOCKET, SO_NDPIP_BURST, &burst, sizeof(burst)) == 0 && burst == 32);
	FAILS(ndpip_setsockopt(s, SOL_SOCKET, SO_NDPIP_BURST, &burst, sizeof(burst)), ENOPROTOOPT);
	CHECK(ndpip_setsockopt(s, SOL_SOCKET, SO_LINGER, &lin, sizeof(lin)) == 0);
	CHECK(ndpip_getsockopt(s, SOL_SOCKET, SO_LINGER, &lin2, sizeof(lin2)) == 0 && lin2.l_onoff == 1 && lin2.l_linger == 5);
	CHECK(ndpip_setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0);
	CHECK(ndpip_connect(s, (struct sockaddr *)&to, sizeof(to)) == 0);
	FAILS(ndpip_connect(s, (struct sockaddr *)&to, sizeof(to)), EISCONN);
	FAILS(ndpip_setsockopt(s, SOL_SOCKET, SO_NDPIP_TCP_WIN_SCALE, &scale, sizeof(scale)), EISCONN);
	CHECK(ndpip_getsockopt(s, SOL_SOCKET, SO_NDPIP_MAX_TX_SEG, &v, sizeof(v)) == 0 && v == 512);
	CHECK(ndpip_getsockopt(s, SOL_SOCKET, SO_ERROR, &v, sizeof(v)) == 0 && v == 0);
	memset(&info, 0, sizeof(info));
	CHECK(ndpip_getsockopt(s, IPPROTO_TCP, TCP_INFO, &info, sizeof(info)) == 0 && info.tcpi_state == TCP_ESTABLISHED);
	CHECK(ndpip_getsockname(s, (struct sockaddr *)&me, &len) == 0 && len == sizeof(me));
	CHECK(me.sin_addr.s_addr == ip("10.9.0.1").s_addr && me.sin_port != 0);
	CHECK(ndpip_getpeername(s, (struct sockaddr *)&me, &len) == 0 && ntohs(me.sin_port) == 4242);
	len = 4; /* too short a room gets a part, and the whole length */
	CHECK(ndpip_getpeername(s, (struct sockaddr *)&me, &len) == 0 && len == sizeof(me));
	do {
		t = ndpip_accept(l, NULL, NULL);
	} while (t < 0 && errno == EAGAIN);
	CHECK(t > 2 && ndpip_fcntl(t, F_GETFL) == (O_RDWR | O_NONBLOCK)); /* the listener's */
	FAILS(ndpip_read(t, &v, sizeof(v)), EAGAIN);
	CHECK(ndpip_close(t) == 0 && ndpip_close(s) == 0);

	CHECK((s = ndpip_socket(AF_INET, SOCK_NDPIP, IPPROTO_TCP)) > 2);
	to.sin_port = htons(9);
	FAILS(ndpip_connect(s, (struct sockaddr *)&to, sizeof(to)), ECONNREFUSED);
	CHECK(ndpip_close(s) == 0);
}

int main(int argc, char **argv)
{
	struct timespec t1, t2;
	uint64_t tsc;
	int a, b, l;

	FAILS(ndpip_linux_dpdk_register_iface(0), EINVAL); /* no EAL yet */
	CHECK(rte_eal_init(argc, argv) >= 0);
	ring_pair(&a, &b);
	ndpip_linux_dpdk_init();
	before_start(a);
	bad_descriptors(-1);
	start_pair(a, b);
	l = listener(b, 4242, SOCK_NONBLOCK);
	bad_descriptors(-1);
	bad_descriptors(0);
	bad_descriptors(1);
	bad_descriptors(99);
	bad_descriptors(0x7fffffff);
	arguments(a, b, l);
	options(a, l);

	tsc = ndpip_tsc();
	ndpip_tsc2time(tsc, &t1);
	ndpip_time_now(&t2);
	CHECK(t2.tv_sec - t1.tv_sec <= 1 && ndpip_tsc() > tsc);
	ndpip_time_now(NULL);

	usleep(50000); /* until b has sent its last ACK: what comes when a is stopped stays in the ring, and in use */
	CHECK(ndpip_linux_dpdk_stop_iface(a) == 0);
	CHECK(ndpip_linux_dpdk_stop_iface(b) == 0);
	FAILS(ndpip_linux_dpdk_stop_iface(b), EINVAL);
	FAILS(ndpip_read(l, &t1, sizeof(t1)), EBADF);
	CHECK(in_use() == 0);
	puts("ok");
	return 0;
}
