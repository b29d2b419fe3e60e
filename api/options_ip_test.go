package api

import (
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/stack/link"
)

// IP_TOS and IP_TTL, as Linux has them, reach what is sent: of a connection from its SYN on, or from when they are set.
func TestTOSAndTTL(t *testing.T) {
	both(t, func(t *testing.T, cfg Config) {
		p := link.Port{Buffers: 2048, TxBuffers: 2048}
		l := link.New(link.Config{Wall: true, A: p, B: p})
		a, b := linkHost(t, cfg, l.A, 1, p), linkHost(t, cfg, l.B, 2, p)
		var mu sync.Mutex
		seen := map[[3]byte]int{} // protocol, TOS, TTL of what A has sent
		l.A.Watch(func(_ time.Duration, sent bool, f []byte) {
			if mu.Lock(); sent && len(f) > 34 && f[12] == 8 && f[13] == 0 {
				seen[[3]byte{f[23], f[15], f[22]}]++
			}
			mu.Unlock()
		})
		sent := func(proto, tos, ttl byte) {
			t.Helper()
			eventually(t, func() bool {
				a.poll()
				b.poll()
				mu.Lock()
				defer mu.Unlock()
				return seen[[3]byte{proto, tos, ttl}] > 0
			})
		}
		get := func(fd, name, want int) {
			t.Helper()
			if v, err := a.GetSockOptInt(fd, unix.IPPROTO_IP, name); v != want || err != nil {
				t.Fatalf("option %d is %d (%v), want %d", name, v, err, want)
			}
		}
		set := func(fd, name, v int) { t.Helper(); ok(t, a.SetSockOptInt(fd, unix.IPPROTO_IP, name, v)) }

		lis := listen(t, b, 1)
		at, _ := b.Getsockname(lis)
		c, err := a.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
		ok(t, err)
		get(c, unix.IP_TOS, 0)
		get(c, unix.IP_TTL, 64)
		set(c, unix.IP_TOS, 0xbb)
		get(c, unix.IP_TOS, 0xb8) // the bits of ECN are not the application's
		set(c, unix.IP_TTL, 9)
		for _, v := range []int{0, 256, -2} {
			if err := a.SetSockOptInt(c, unix.IPPROTO_IP, unix.IP_TTL, v); err != unix.EINVAL {
				t.Errorf("IP_TTL %d: %v", v, err)
			}
		}
		if err := a.SetSockOptInt(c, unix.IPPROTO_IP, unix.IP_OPTIONS, 0); err != unix.ENOPROTOOPT {
			t.Errorf("IP_OPTIONS: %v", err)
		}
		if err := a.Connect(c, at); err != unix.EINPROGRESS {
			t.Fatal(err)
		}
		sent(unix.IPPROTO_TCP, 0xb8, 9)
		eventually(t, func() bool { a.poll(); b.poll(); _, err := a.Write(c, []byte("x")); return err == nil })
		set(c, unix.IP_TOS, 0x28)
		set(c, unix.IP_TTL, -1)
		get(c, unix.IP_TTL, 64)
		_, err = a.Write(c, []byte("x"))
		ok(t, err)
		sent(unix.IPPROTO_TCP, 0x28, 64)

		u, err := a.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		ok(t, err)
		set(u, unix.IP_TOS, 0x13)
		to := netip.AddrPortFrom(b.Addr(), 9)
		_, err = a.SendTo(u, []byte("x"), to)
		ok(t, err)
		sent(unix.IPPROTO_UDP, 0x13, 64)
		set(u, unix.IP_TTL, 200)
		_, err = a.SendTo(u, []byte("x"), to)
		ok(t, err)
		sent(unix.IPPROTO_UDP, 0x13, 200)
	})
}

// Keep-alive is off, and its interval two hours, unless an application asks for it otherwise (RFC 9293 3.8.4, MUST-24,
// -25, -27, -28).
func TestKeepAliveOptions(t *testing.T) {
	a, b := linkHosts(t, Config{Inline: true}, link.Config{})
	c, _ := dial(t, a, b, 0)
	for _, o := range []struct{ level, name, value, set int }{
		{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 0, 1},
		{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 7200, 60},
		{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 75, 5},
		{unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 9, 3},
	} {
		for _, want := range []int{o.value, o.set} {
			if v, err := a.GetSockOptInt(c, o.level, o.name); v != want || err != nil {
				t.Errorf("option %d is %d (%v), want %d", o.name, v, err, want)
			}
			ok(t, a.SetSockOptInt(c, o.level, o.name, o.set))
		}
	}
	if k := a.fds.get(c).conn.Load(); k.KeepIdle != 60e9 || k.KeepGap != 5e9 || k.KeepMax != 3 {
		t.Errorf("the connection has %d, %d, %d", k.KeepIdle, k.KeepGap, k.KeepMax)
	}
}

// There is no Nagle's algorithm to turn off, so TCP_NODELAY is always on (RFC 9293 3.7.4, MUST-17).
func TestNoNagle(t *testing.T) {
	a, b := linkHosts(t, Config{Inline: true}, link.Config{})
	c, _ := dial(t, a, b, 0)
	for _, on := range []int{1, 0} {
		ok(t, a.SetSockOptInt(c, unix.IPPROTO_TCP, unix.TCP_NODELAY, on))
		if v, err := a.GetSockOptInt(c, unix.IPPROTO_TCP, unix.TCP_NODELAY); v != 1 || err != nil {
			t.Errorf("TCP_NODELAY is %d (%v)", v, err)
		}
	}
}
