package api

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/stack/link"
)

// both runs a test on hosts with a worker, without, and with one that sends; the last ones' sockets have the lossy profile.
func both(t *testing.T, f func(t *testing.T, cfg Config)) {
	t.Run("worker", func(t *testing.T) { f(t, Config{}) })
	t.Run("inline", func(t *testing.T) { f(t, Config{Inline: true}) })
	t.Run("worker sends", func(t *testing.T) { f(t, Config{WorkerSends: true, Congestion: "cubic"}) })
}

// random is n bytes that follow from a seed.
func random(seed uint64, n int) []byte {
	r := rand.NewChaCha8([32]byte{byte(seed)})
	b := make([]byte, n)
	_, _ = r.Read(b)
	return b
}

// TestTransfer sends both ways at once, with blocking calls of random lengths, over a link that loses and reorders.
func TestTransfer(t *testing.T) {
	both(t, func(t *testing.T, cfg Config) {
		faults := link.Path{Loss: 0.002, Duplicate: 0.002, Reorder: 0.002, ReorderBy: time.Millisecond}
		a, b := linkHosts(t, cfg, link.Config{Seed: 7, AB: faults, BA: faults})
		ca, cb := dial(t, a, b, 0)
		const size = 1 << 20
		var wg sync.WaitGroup
		send := func(h *Host, fd int, seed uint64) {
			defer wg.Done()
			r := rand.New(rand.NewPCG(seed, 0))
			for p := random(seed, size); len(p) > 0; {
				n, err := h.Write(fd, p[:min(len(p), 1+r.IntN(20000))])
				if err != nil {
					t.Errorf("write: %v", err)
					return
				}
				p = p[n:]
			}
			if err := h.Shutdown(fd, unix.SHUT_WR); err != nil {
				t.Errorf("shutdown: %v", err)
			}
		}
		receive := func(h *Host, fd int, seed uint64) {
			defer wg.Done()
			r := rand.New(rand.NewPCG(seed, 1))
			sum := sha256.New()
			for p := make([]byte, 30000); ; {
				n, err := h.Read(fd, p[:1+r.IntN(len(p))])
				if err != nil {
					t.Errorf("read: %v", err)
					return
				}
				if n == 0 {
					break
				}
				sum.Write(p[:n])
			}
			if want := sha256.Sum256(random(seed, size)); !bytes.Equal(sum.Sum(nil), want[:]) {
				t.Errorf("other bytes arrived than were sent")
			}
		}
		wg.Add(4)
		go send(a, ca, 1)
		go send(b, cb, 2)
		go receive(b, cb, 1)
		go receive(a, ca, 2)
		done := make(chan bool)
		go func() { wg.Wait(); close(done) }()
		drive(done, a, b)
		ok(t, a.Close(ca))
		ok(t, b.Close(cb))
	})
}

// drive takes the turns of inline hosts whose goroutines may have ended while their peers still need an answer.
func drive(done <-chan bool, hosts ...*Host) {
	for {
		select {
		case <-done:
			return
		default:
		}
		busy := false
		for _, h := range hosts {
			busy = h.poll() || busy
		}
		if !busy {
			time.Sleep(20 * time.Microsecond)
		}
	}
}

// TestVectors writes and reads with Writev and Readv.
func TestVectors(t *testing.T) {
	both(t, func(t *testing.T, cfg Config) {
		a, b := linkHosts(t, cfg, link.Config{})
		ca, cb := dial(t, a, b, 0)
		want := random(3, 30000)
		done := make(chan error, 1)
		go func() {
			n, err := a.Writev(ca, [][]byte{want[:1], nil, want[1:5], want[5:9000], want[9000:9001], want[9001:]})
			if err == nil && n != len(want) {
				err = io.ErrShortWrite
			}
			done <- err
		}()
		got := make([]byte, len(want))
		for n := 0; n < len(got); {
			k, err := b.Readv(cb, [][]byte{got[n : n+min(1, len(got)-n)], nil, got[min(n+1, len(got)):min(n+100, len(got))], got[min(n+100, len(got)):]})
			ok(t, err)
			if k == 0 {
				t.Fatal("end of stream")
			}
			n += k
		}
		ok(t, <-done)
		if !bytes.Equal(got, want) {
			t.Error("other bytes arrived than were sent")
		}
		// Small pieces share a segment.
		before := a.Stats().TxSegments
		_, err := a.Writev(ca, [][]byte{{1}, {2}, {3}, {4}})
		ok(t, err)
		if n := a.Stats().TxSegments - before; n != 1 {
			t.Errorf("4 bytes in 4 pieces took %d segments", n)
		}
		if n, err := a.Writev(ca, nil); n != 0 || err != nil {
			t.Error(n, err)
		}
		if n, err := b.Readv(cb, nil); n != 0 || err != nil {
			t.Error(n, err)
		}
	})
}

// TestEachLength is A9: writes of every length up to a bit more than two segments arrive once, whatever the reads.
func TestEachLength(t *testing.T) {
	a, b := linkHosts(t, Config{Inline: true, MSS: 100}, link.Config{})
	ca, cb := dial(t, a, b, 0)
	src := random(5, 400)
	buf := make([]byte, 1000)
	for n := 1; n <= 301; n++ {
		for _, r := range []int{n - 1, n, n + 1, 1 + n/3} {
			if r < 1 {
				continue
			}
			k, err := a.Write(ca, src[:n])
			ok(t, err)
			var got []byte
			for len(got) < k {
				m, err := b.Read(cb, buf[:r])
				ok(t, err)
				got = append(got, buf[:m]...)
				a.poll()
			}
			if !bytes.Equal(got, src[:n]) {
				t.Fatalf("%d bytes written, read by %d: %d bytes arrived, or others", n, r, len(got))
			}
		}
	}
	ok(t, b.SetNonblock(cb, true))
	if n, err := b.Read(cb, buf); err != unix.EAGAIN {
		t.Error(n, err)
	}
}

// TestNoDelay is A8: one byte leaves at once.
func TestNoDelay(t *testing.T) {
	a, b := linkHosts(t, Config{Inline: true}, link.Config{})
	ca, cb := dial(t, a, b, unix.SOCK_NONBLOCK)
	for range 100 {
		_, err := a.Write(ca, []byte{1})
		ok(t, err)
		if !b.poll() { // it must lie on the wire already
			t.Fatal("nothing has arrived")
		}
		if n, err := b.Read(cb, make([]byte, 2)); n != 1 {
			t.Fatal(n, err)
		}
	}
}

// TestStopWhileInUse stops a host under goroutines in all kinds of calls: each ends, with EBADF, and nothing is left.
func TestStopWhileInUse(t *testing.T) {
	both(t, func(t *testing.T, cfg Config) {
		a, b := linkHosts(t, cfg, link.Config{})
		l := listen(t, b, 64)
		ok(t, b.SetNonblock(l, false))
		var wg sync.WaitGroup
		run := func(what string, f func() error) {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for {
					if err := f(); err != nil {
						if !errors.Is(err, unix.EBADF) && !errors.Is(err, unix.ENETDOWN) && !errors.Is(err, unix.EPIPE) {
							t.Errorf("%s: %v", what, err)
						}
						return
					}
				}
			}()
		}
		at, err := b.Getsockname(l)
		ok(t, err)
		conns := make(chan int, 100)
		run("accept", func() error {
			fd, _, err := b.Accept(l)
			if err == nil {
				conns <- fd
			}
			return err
		})
		for range 20 {
			ca, err := a.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			ok(t, err)
			ok(t, a.Connect(ca, at))
			cb := <-conns
			run("read", func() error { _, err := b.Read(cb, make([]byte, 100)); return err })
			run("write", func() error { _, err := b.Write(cb, make([]byte, 5000)); return err })
			run("getsockname", func() error { time.Sleep(time.Millisecond); _, err := b.Getsockname(cb); return err })
			run("alloc", func() error {
				time.Sleep(time.Millisecond)
				var bufs [4]Buf
				n, err := b.Alloc(cb, bufs[:])
				if err == unix.ENOBUFS {
					return nil
				}
				_ = b.Free(cb, bufs[:n])
				return err
			})
		}
		ep, err := b.EpollCreate()
		ok(t, err)
		run("epoll", func() error { _, err := b.EpollWait(ep, make([]EpollEvent, 1), -1); return err })
		time.Sleep(50 * time.Millisecond)
		ok(t, b.Stop())
		wg.Wait()
		_ = b.Stats()
		_, err = b.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
		if err != unix.ENETDOWN {
			t.Error(err)
		}
	})
}
