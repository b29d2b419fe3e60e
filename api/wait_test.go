package api

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/stack/link"
)

// TestNoWakeUpIsLost lets many goroutines block in reads at once, each on a connection of its own, and wakes each many
// times, by single bytes at odd moments. A wake-up that is lost is a goroutine that never comes back.
func TestNoWakeUpIsLost(t *testing.T) {
	both(t, func(t *testing.T, cfg Config) {
		a, b := linkHosts(t, cfg, link.Config{})
		conns, rounds := 200, 40
		if testing.Short() {
			conns, rounds = 20, 20
		}
		l := listen(t, b, conns)
		var wg sync.WaitGroup
		for range conns {
			ca, cb := dialTo(t, a, b, l, 0)
			wg.Add(2)
			go echo(t, &wg, b, cb, rounds)
			go func() {
				defer wg.Done()
				p := make([]byte, 1)
				for i := range rounds {
					if _, err := a.Write(ca, []byte{byte(i)}); err != nil {
						t.Errorf("write: %v", err)
						return
					}
					if n, err := a.Read(ca, p); n != 1 || p[0] != byte(i) {
						t.Errorf("read %d: %d bytes, %v", i, n, err)
						return
					}
				}
			}()
		}
		waitFor(t, &wg, 60*time.Second, a, b)
	})
}

func echo(t *testing.T, wg *sync.WaitGroup, h *Host, fd, rounds int) {
	defer wg.Done()
	p := make([]byte, 1)
	for range rounds {
		if n, err := h.Read(fd, p); n != 1 {
			t.Errorf("echo: read %d bytes, %v", n, err)
			return
		}
		if _, err := h.Write(fd, p); err != nil {
			t.Errorf("echo: write: %v", err)
			return
		}
	}
}

// waitFor waits for goroutines that must end by themselves.
func waitFor(t *testing.T, wg *sync.WaitGroup, limit time.Duration, hosts ...*Host) {
	t.Helper()
	done := make(chan bool)
	go func() { wg.Wait(); close(done) }()
	expired := make(chan bool)
	stop := time.AfterFunc(limit, func() { close(expired) })
	defer stop.Stop()
	end := make(chan bool)
	go func() {
		select {
		case <-done:
		case <-expired:
		}
		close(end)
	}()
	drive(end, hosts...)
	select {
	case <-done:
	default:
		for i, h := range hosts {
			t.Logf("host %d: %+v", i, h.Stats())
			h.fds.each(func(s *sock) { t.Logf("host %d: %s", i, dump(h, s)) })
		}
		t.Fatalf("goroutines still wait after %v", limit)
	}
}

// dump is all there is to know of a connection that hangs.
func dump(h *Host, s *sock) string {
	c := s.conn.Load()
	if c == nil {
		return fmt.Sprintf("%d: kind %d", s.fd, s.kind.Load())
	}
	_, unread := c.Unread()
	room, nxt, idle := c.Room()
	ack, wnd := c.AckWord()
	var debug string
	h.st.Do(func() { debug = c.Debug() })
	text := fmt.Sprintf("%d: %s, %+v unread %d, staged %v, room %d nxt %d idle %v, ack %d wnd %d shift %d, writable %v, worth %v, noSpace %v, watch %#x ready %#x asleep %d",
		s.fd, debug, h.st.Info(c), unread, c.Staged(), room, nxt, idle, ack, wnd, c.RcvShift, c.Writable(), c.Worth(room), s.noSpace.Load(), c.Watch.Load(), c.Ready.Load(), s.asleep.Load())
	if items := s.items.Load(); items != nil {
		for _, it := range *items {
			text += fmt.Sprintf(", item %#x listed %v", it.ev.Load(), it.listed)
		}
	}
	return text
}

// TestReaderAndEpoll has goroutines that block in Read next to one that polls with EpollWait: who takes news takes them
// for the others, too.
func TestReaderAndEpoll(t *testing.T) {
	a, b := linkHosts(t, Config{IdleSleep: time.Millisecond}, link.Config{})
	l := listen(t, b, 16)
	ep, err := b.EpollCreate()
	ok(t, err)
	polled, peer := dialTo(t, a, b, l, unix.SOCK_NONBLOCK)
	ok(t, b.EpollCtl(ep, unix.EPOLL_CTL_ADD, peer, &EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET}))
	const rounds = 300
	var wg sync.WaitGroup
	for range 4 {
		ca, cb := dialTo(t, a, b, l, 0)
		wg.Add(2)
		go echo(t, &wg, b, cb, rounds)
		go func() {
			defer wg.Done()
			p := make([]byte, 1)
			for range rounds {
				if _, err := a.Write(ca, p); err != nil {
					t.Error(err)
				}
				if n, err := a.Read(ca, p); n != 1 {
					t.Error(n, err)
				}
			}
		}()
	}
	wg.Add(1)
	go func() {
		defer wg.Done()
		evs, p := make([]EpollEvent, 4), make([]byte, 10)
		for n := 0; n < rounds; {
			if _, err := b.EpollWait(ep, evs, -1); err != nil {
				t.Error(err)
				return
			}
			for {
				k, err := b.Read(peer, p)
				if err != nil {
					break
				}
				n += k
			}
		}
	}()
	for range rounds {
		_, err := a.Write(polled, []byte{1})
		ok(t, err)
		time.Sleep(time.Duration(time.Now().UnixNano() % 3e5))
	}
	waitFor(t, &wg, 60*time.Second)
}

// TestIdleSleep has EpollWait asleep when the news come, and when the time is over.
func TestIdleSleep(t *testing.T) {
	both(t, func(t *testing.T, cfg Config) {
		cfg.IdleSleep = time.Microsecond
		a, b := linkHosts(t, cfg, link.Config{})
		ca, cb := dial(t, a, b, unix.SOCK_NONBLOCK)
		ep, err := b.EpollCreate()
		ok(t, err)
		ok(t, b.EpollCtl(ep, unix.EPOLL_CTL_ADD, cb, &EpollEvent{Events: unix.EPOLLIN}))
		evs := make([]EpollEvent, 4)
		for i := range 20 {
			begin := time.Now()
			if n, err := b.EpollWait(ep, evs, 5); n != 0 || err != nil {
				t.Fatal(n, err)
			}
			if d := time.Since(begin); d < 5*time.Millisecond {
				t.Errorf("a wait of 5 ms took %v", d)
			}
			got := make(chan int)
			go func() {
				n, _ := b.EpollWait(ep, evs, -1)
				got <- n
			}()
			time.Sleep(time.Duration(i) * 300 * time.Microsecond)
			_, err := a.Write(ca, []byte{1})
			ok(t, err)
			select {
			case n := <-got:
				if n != 1 {
					t.Fatal(n)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("the wait sleeps on")
			}
			_, err = b.Read(cb, make([]byte, 10))
			ok(t, err)
		}
		// Closing the instance ends the wait.
		got := make(chan error)
		go func() {
			_, err := b.EpollWait(ep, evs, -1)
			got <- err
		}()
		time.Sleep(5 * time.Millisecond)
		ok(t, b.Close(ep))
		if err := <-got; err != unix.EBADF {
			t.Error(err)
		}
	})
}

// TestEpollWaitersShare has several goroutines wait on one instance: each event goes to one of them.
func TestEpollWaitersShare(t *testing.T) {
	a, b := linkHosts(t, Config{IdleSleep: 100 * time.Microsecond}, link.Config{})
	const conns = 30
	l := listen(t, b, conns)
	ep, err := b.EpollCreate()
	ok(t, err)
	var events atomic.Int32
	var wg sync.WaitGroup
	for range 3 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			evs := make([]EpollEvent, 2)
			for {
				n, err := b.EpollWait(ep, evs, -1)
				if err != nil {
					return
				}
				events.Add(int32(n))
			}
		}()
	}
	for i := range conns {
		ca, cb := dialTo(t, a, b, l, unix.SOCK_NONBLOCK)
		ok(t, b.EpollCtl(ep, unix.EPOLL_CTL_ADD, cb, &EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Data: uint64(i)}))
		_, err := a.Write(ca, []byte{1})
		ok(t, err)
	}
	eventually(t, func() bool { return events.Load() >= conns })
	time.Sleep(10 * time.Millisecond)
	if n := events.Load(); n != conns {
		t.Errorf("%d events for %d sockets", n, conns)
	}
	ok(t, b.Close(ep))
	wg.Wait()
}

// TestTimes ends blocking calls by deadlines and by timeouts.
func TestTimes(t *testing.T) {
	both(t, func(t *testing.T, cfg Config) {
		a, b := linkHosts(t, cfg, link.Config{})
		l := listen(t, b, 4)
		ca, cb := dialTo(t, a, b, l, 0)
		const short = 20 * time.Millisecond
		p := make([]byte, 1)
		timed := func(what string, want error, f func() error) {
			t.Helper()
			begin := time.Now()
			if err := f(); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
			if d := time.Since(begin); d < short-time.Millisecond || d > 10*time.Second {
				t.Errorf("%s took %v", what, d)
			}
		}
		read := func() error { _, err := b.Read(cb, p); return err }
		accept := func() error { _, _, err := b.Accept(l); return err }
		ok(t, b.SetNonblock(l, false))

		ok(t, b.SetReadDeadline(cb, time.Now().Add(short)))
		timed("read by a deadline", os.ErrDeadlineExceeded, read)
		_, err := a.Write(ca, p)
		ok(t, err)
		eventually(t, func() bool { a.poll(); b.poll(); return b.st.Readable(b.fds.get(cb).conn.Load()) })
		if err := read(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a deadline that is over does not end a read for which there is something: %v", err)
		}
		ok(t, b.SetReadDeadline(cb, time.Time{}))
		ok(t, read())

		timeval := func(fd, name int, d time.Duration) {
			t.Helper()
			ok(t, b.SetSockOptTimeval(fd, unix.SOL_SOCKET, name, unix.NsecToTimeval(int64(d))))
		}
		timeval(cb, unix.SO_RCVTIMEO, short)
		timed("read by SO_RCVTIMEO", unix.EAGAIN, read)
		timed("read by SO_RCVTIMEO once more", unix.EAGAIN, read)
		timeval(cb, unix.SO_RCVTIMEO, 0)
		timeval(l, unix.SO_RCVTIMEO, short)
		timed("accept by SO_RCVTIMEO", unix.EAGAIN, accept)
		timeval(l, unix.SO_RCVTIMEO, 0)
		ok(t, b.SetReadDeadline(l, time.Now().Add(short)))
		timed("accept by a deadline", os.ErrDeadlineExceeded, accept)

		// A deadline that is set while a call waits ends it.
		go func() {
			time.Sleep(short)
			_ = b.SetReadDeadline(cb, time.Unix(1, 0))
		}()
		timed("read by a deadline set meanwhile", os.ErrDeadlineExceeded, read)
		ok(t, b.SetReadDeadline(cb, time.Time{}))

		// A write into a window that stays closed.
		fill := make([]byte, 4<<20)
		timeval(cb, unix.SO_SNDTIMEO, short)
		if n, err := b.Write(cb, fill); n == 0 || n == len(fill) || err != nil {
			t.Errorf("a write that cannot be finished takes %d bytes, %v", n, err)
		}
		eventually(t, func() bool { a.poll(); b.poll(); return !b.fds.get(cb).conn.Load().Writable() })
		write := func() (err error) {
			for err == nil { // a probe of the closed window may make room for a byte
				_, err = b.Write(cb, fill)
			}
			return err
		}
		timed("write by SO_SNDTIMEO", unix.EAGAIN, write)
		timeval(cb, unix.SO_SNDTIMEO, 0)
		ok(t, b.SetWriteDeadline(cb, time.Now().Add(short)))
		timed("write by a deadline", os.ErrDeadlineExceeded, write)

		// A connect that nobody answers.
		fd, err := a.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		ok(t, err)
		ok(t, a.SetSockOptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, unix.NsecToTimeval(int64(short))))
		nobody := netip.MustParseAddrPort("10.0.0.99:80")
		timed("connect by SO_SNDTIMEO", unix.EINPROGRESS, func() error { return a.Connect(fd, nobody) })
		timed("connect again", unix.EINPROGRESS, func() error { return a.Connect(fd, nobody) })
	})
}

// TestEndings ends calls that wait by what happens to their socket.
func TestEndings(t *testing.T) {
	both(t, func(t *testing.T, cfg Config) {
		for _, c := range []struct {
			name string
			want error
			n    int
			end  func(a, b *Host, ca, cb int) error
		}{
			{"close", unix.EBADF, 0, func(_, b *Host, _, cb int) error { return b.Close(cb) }},
			{"shutdown for reading", nil, 0, func(_, b *Host, _, cb int) error { return b.Shutdown(cb, unix.SHUT_RD) }},
			{"the peer's end", nil, 0, func(a, _ *Host, ca, _ int) error { return a.Shutdown(ca, unix.SHUT_WR) }},
			{"the peer's close", nil, 0, func(a, _ *Host, ca, _ int) error { return a.Close(ca) }},
			{"a byte", nil, 1, func(a, _ *Host, ca, _ int) error { _, err := a.Write(ca, []byte{1}); return err }},
			{"a reset", unix.ECONNRESET, 0, func(a, _ *Host, ca, _ int) error { _ = a.SetLinger(ca, true, 0); return a.Close(ca) }},
			{"stop", unix.EBADF, 0, func(_, b *Host, _, _ int) error { return b.Stop() }},
		} {
			t.Run(c.name, func(t *testing.T) {
				a, b := linkHosts(t, cfg, link.Config{})
				ca, cb := dial(t, a, b, 0)
				var wg sync.WaitGroup
				wg.Add(1)
				go func() {
					defer wg.Done()
					if n, err := b.Read(cb, make([]byte, 5)); n != c.n || !errors.Is(err, c.want) {
						t.Errorf("read gives %d, %v", n, err)
					}
				}()
				time.Sleep(3 * time.Millisecond)
				ok(t, c.end(a, b, ca, cb))
				waitFor(t, &wg, 20*time.Second, a, b)
			})
		}
		t.Run("accept", func(t *testing.T) {
			_, b := linkHosts(t, cfg, link.Config{})
			for _, end := range []struct {
				want error
				f    func(l int) error
			}{{unix.EBADF, b.Close}, {unix.EINVAL, func(l int) error { return b.Shutdown(l, unix.SHUT_RD) }}} {
				l := listen(t, b, 1)
				ok(t, b.SetNonblock(l, false))
				var wg sync.WaitGroup
				for range 3 {
					wg.Add(1)
					go func() {
						defer wg.Done()
						if _, _, err := b.Accept(l); err != end.want {
							t.Errorf("accept gives %v, want %v", err, end.want)
						}
					}()
				}
				time.Sleep(3 * time.Millisecond)
				ok(t, end.f(l))
				waitFor(t, &wg, 20*time.Second, b)
			}
		})
		t.Run("connect", func(t *testing.T) {
			a, _ := linkHosts(t, cfg, link.Config{})
			for _, end := range []struct {
				want error
				f    func(fd int) error
			}{{unix.EBADF, a.Close}, {unix.ECONNABORTED, func(fd int) error { return a.Shutdown(fd, unix.SHUT_RDWR) }}} {
				fd, err := a.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
				ok(t, err)
				var wg sync.WaitGroup
				wg.Add(1)
				go func() {
					defer wg.Done()
					if err := a.Connect(fd, netip.MustParseAddrPort("10.0.0.99:80")); err != end.want {
						t.Errorf("connect gives %v, want %v", err, end.want)
					}
				}()
				time.Sleep(3 * time.Millisecond)
				ok(t, end.f(fd))
				waitFor(t, &wg, 20*time.Second, a)
			}
		})
	})
}

// TestLinger closes with SO_LINGER.
func TestLinger(t *testing.T) {
	both(t, func(t *testing.T, cfg Config) {
		a, b := linkHosts(t, cfg, link.Config{AB: link.Path{Delay: 10 * time.Millisecond}})
		l := listen(t, b, 4)
		var wg sync.WaitGroup
		wg.Add(1)
		go func() { // the test waits in Close on a: b's turns are taken here
			defer wg.Done()
			ca, cb := dialTo(t, a, b, l, 0)
			_, err := a.Write(ca, make([]byte, 100))
			ok(t, err)
			ok(t, a.SetLinger(ca, true, 20))
			begin := time.Now()
			ok(t, a.Close(ca))
			if d := time.Since(begin); d < 10*time.Millisecond || d > 15*time.Second {
				t.Errorf("a close that lingers took %v, the peer needs 10 ms to hear of it", d)
			}
			if n, err := b.Read(cb, make([]byte, 200)); n != 100 {
				t.Errorf("the peer reads %d bytes, %v", n, err)
			}
			// A peer that is not there any more.
			ca, _ = dialTo(t, a, b, l, 0)
			a.dev.(*linkPort).end.SetPath(link.Path{Loss: 1})
			ok(t, a.SetLinger(ca, true, 1))
			begin = time.Now()
			ok(t, a.Close(ca))
			if d := time.Since(begin); d < time.Second || d > 15*time.Second {
				t.Errorf("a close that lingers at most 1 s took %v", d)
			}
		}()
		waitFor(t, &wg, 40*time.Second, b)
	})
}
