package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/nettest"
	"golang.org/x/sys/unix"

	"ndpip/stack/link"
)

// netPair is a connection from a to b as net.Conns.
func netPair(t testing.TB, a, b *Host) (x, y net.Conn) {
	t.Helper()
	l, err := b.Net().Listen("tcp", ":0")
	ok(t, err)
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		var err error
		y, err = l.Accept()
		done <- err
	}()
	x, err = a.Net().Dial("tcp", l.Addr().(*net.TCPAddr).AddrPort().String())
	if err != nil {
		// The listener's own address is 0.0.0.0.
		x, err = a.Net().Dial("tcp", fmt.Sprintf("%s:%d", b.Addr(), l.Addr().(*net.TCPAddr).Port))
	}
	ok(t, err)
	ok(t, <-done)
	return x, y
}

// TestNetConn is the conformance test of golang.org/x/net.
func TestNetConn(t *testing.T) {
	a, b := linkHosts(t, Config{}, link.Config{})
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		c1, c2 = netPair(t, a, b)
		return c1, c2, func() { c1.Close(); c2.Close() }, nil
	})
}

// TestHTTP has net/http's server and client on two hosts.
func TestHTTP(t *testing.T) {
	a, b := linkHosts(t, Config{}, link.Config{})
	l, err := b.Net().Listen("tcp", b.Addr().String()+":80")
	ok(t, err)
	body := random(9, 3<<20)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/echo":
			_, _ = io.Copy(w, r.Body)
		case "/body":
			http.ServeContent(w, r, "body", time.Time{}, bytes.NewReader(body))
		default:
			fmt.Fprintf(w, "hello %s", r.RemoteAddr)
		}
	}))
	srv.Listener.Close()
	srv.Listener = l
	srv.Start()
	defer srv.Close()
	client := &http.Client{Transport: &http.Transport{DialContext: a.Net().DialContext, MaxIdleConnsPerHost: 20}, Timeout: 60 * time.Second}
	defer client.CloseIdleConnections()
	get := func(path string) []byte {
		resp, err := client.Get("http://" + b.Addr().String() + path)
		if err != nil {
			t.Error(err)
			return nil
		}
		defer resp.Body.Close()
		p, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Error(err)
		}
		return p
	}
	if s := string(get("/")); !strings.HasPrefix(s, "hello 10.0.0.1:") {
		t.Errorf("%q", s)
	}
	if sha256.Sum256(get("/body")) != sha256.Sum256(body) {
		t.Error("another body arrived than was sent")
	}
	resp, err := client.Post("http://10.0.0.2/echo", "", bytes.NewReader(body[:1<<20]))
	ok(t, err)
	p, err := io.ReadAll(resp.Body)
	ok(t, err)
	resp.Body.Close()
	if !bytes.Equal(p, body[:1<<20]) {
		t.Error("another echo came back than was sent")
	}
	var wg sync.WaitGroup
	for range 10 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 20 {
				get("/")
			}
		}()
	}
	wg.Wait()
}

// TestCopy sends a file's worth through ReadFrom and WriteTo, without a copy, and leaks no buffer.
func TestCopy(t *testing.T) {
	a, b := linkHosts(t, Config{}, link.Config{})
	x, y := netPair(t, a, b)
	want := random(4, 2<<20)
	sent := make(chan error, 1)
	go func() {
		n, err := io.Copy(x, struct{ io.Reader }{bytes.NewReader(want)})
		if err == nil && n != int64(len(want)) {
			err = io.ErrShortWrite
		}
		_ = x.(*TCPConn).CloseWrite()
		sent <- err
	}()
	var got bytes.Buffer
	n, err := io.Copy(struct{ io.Writer }{&got}, y)
	ok(t, err)
	ok(t, <-sent)
	if n != int64(len(want)) || !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%d bytes of %d arrived, or others", n, len(want))
	}
	// An error of the writer ends the copy, and what it left is freed.
	go func() { _, _ = y.Write(want[:100000]) }()
	if _, err := io.Copy(failing{}, x); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	x.Close()
	y.Close()
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestHalfClose ends one direction and goes on in the other.
func TestHalfClose(t *testing.T) {
	a, b := linkHosts(t, Config{}, link.Config{})
	x, y := netPair(t, a, b)
	ok(t, x.(*TCPConn).CloseWrite())
	if n, err := y.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Error(n, err)
	}
	_, err := y.Write([]byte("still"))
	ok(t, err)
	p := make([]byte, 10)
	if n, err := x.Read(p); string(p[:n]) != "still" || err != nil {
		t.Error(n, err)
	}
	if _, err := x.Write(p); !errors.Is(err, unix.EPIPE) {
		t.Error(err)
	}
	ok(t, x.(*TCPConn).CloseRead())
	if n, err := x.Read(p); n != 0 || err != io.EOF {
		t.Error(n, err)
	}
	ok(t, x.Close())
	if err := x.Close(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	for _, err := range []error{x.SetDeadline(time.Time{}), x.(*TCPConn).CloseWrite(), x.(*TCPConn).SetKeepAlive(true), x.(*TCPConn).SetLinger(1)} {
		if !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	}
	ok(t, y.Close())
}

// TestDialer ends dials by time and by context, and says why they fail.
func TestDialer(t *testing.T) {
	a, b := linkHosts(t, Config{}, link.Config{})
	nobody := "10.0.0.99:80"
	timedOut := func(what string, err error) {
		t.Helper()
		var n net.Error
		if !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &n) || !n.Timeout() {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := a.Net().DialTimeout("tcp", nobody, 20*time.Millisecond)
	timedOut("timeout", err)
	_, err = (&Dialer{Host: a, Deadline: time.Now().Add(20 * time.Millisecond)}).Dial("tcp", nobody)
	timedOut("deadline", err)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err = a.Net().DialContext(ctx, "tcp", nobody); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err = a.Net().DialContext(ctx, "tcp", nobody); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	if _, err = a.Net().Dial("tcp", "10.0.0.2:9"); !errors.Is(err, unix.ECONNREFUSED) {
		t.Errorf("refused: %v", err)
	}
	for _, c := range []struct{ network, address string }{{"tcp6", "10.0.0.2:9"}, {"tcp", "[::1]:80"}, {"unix", "/x"}, {"tcp", "10.0.0.2"}, {"tcp", "10.0.0.2:no-such-service"}} {
		if c, err := a.Net().Dial(c.network, c.address); err == nil {
			t.Errorf("dial %v: %v", c, err)
		}
	}
	if _, err := b.Net().Listen("udp", ":0"); err == nil {
		t.Error("a UDP listener")
	}
	if _, err := b.Net().Listen("tcp", "10.0.0.77:0"); !errors.Is(err, unix.EADDRNOTAVAIL) {
		t.Error(err)
	}

	l, err := b.Net().Listen("tcp", "10.0.0.2:7")
	ok(t, err)
	local := &net.TCPAddr{Port: 4321}
	c, err := (&Dialer{Host: a, LocalAddr: local, KeepAlive: time.Second}).Dial("tcp", "10.0.0.2:7")
	ok(t, err)
	if s := c.LocalAddr().String() + " " + c.RemoteAddr().String(); s != "10.0.0.1:4321 10.0.0.2:7" {
		t.Error(s)
	}
	if v, err := a.GetSockOptInt(c.(*TCPConn).Fd(), unix.SOL_SOCKET, unix.SO_KEEPALIVE); v != 1 {
		t.Error(v, err)
	}
	ok(t, l.(*TCPListener).SetDeadline(time.Now().Add(time.Hour)))
	d, err := l.Accept()
	ok(t, err)
	ok(t, l.(*TCPListener).SetDeadline(time.Now().Add(20*time.Millisecond)))
	_, err = l.Accept()
	timedOut("accept", err)
	ok(t, l.(*TCPListener).SetDeadline(time.Time{}))
	time.AfterFunc(10*time.Millisecond, func() { l.Close() })
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	// A connection outlives the context that it was dialled with.
	_, err = c.Write([]byte("x"))
	ok(t, err)
	_, err = d.Read(make([]byte, 1))
	ok(t, err)
	c.Close()
	d.Close()
}

// TestPacketConn sends datagrams by net.PacketConn and net.Conn.
func TestPacketConn(t *testing.T) {
	a, b := linkHosts(t, Config{}, link.Config{})
	s, err := b.Net().ListenPacket("udp", "10.0.0.2:53")
	ok(t, err)
	c, err := a.Net().Dial("udp", "10.0.0.2:53")
	ok(t, err)
	p := make([]byte, 100)
	for _, text := range []string{"one", "", "three"} {
		_, err = c.Write([]byte(text))
		ok(t, err)
		n, from, err := s.ReadFrom(p)
		ok(t, err)
		if string(p[:n]) != text || from.String() != c.LocalAddr().String() {
			t.Errorf("%q from %v", p[:n], from)
		}
		_, err = s.WriteTo([]byte("re: "+text), from)
		ok(t, err)
		n, err = c.Read(p)
		ok(t, err)
		if string(p[:n]) != "re: "+text {
			t.Errorf("%q", p[:n])
		}
	}
	if _, err := c.(*UDPConn).WriteTo(p, s.LocalAddr()); !errors.Is(err, net.ErrWriteToConnected) {
		t.Error(err)
	}
	if _, err := s.WriteTo(make([]byte, 2000), c.LocalAddr()); !errors.Is(err, unix.EMSGSIZE) {
		t.Error(err)
	}
	if _, err := s.WriteTo(p, nil); !errors.Is(err, unix.EDESTADDRREQ) {
		t.Error(err)
	}
	if _, err := s.WriteTo(p, &net.UnixAddr{}); err == nil {
		t.Error("a datagram to a Unix socket")
	}
	ok(t, s.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
	if _, _, err := s.ReadFrom(p); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	ok(t, s.Close())
	// Nobody is there any more, and ICMP says so.
	_, err = c.Write([]byte("x"))
	ok(t, err)
	if _, err := c.Read(p); !errors.Is(err, unix.ECONNREFUSED) {
		t.Error(err)
	}
	ok(t, c.Close())
	if _, err := c.Write(p); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}
