package peers

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/api"
	"ndpip/cmd/internal/cli"
)

// childConfig says what a child runs on.
type childConfig struct {
	Wire   string // "": the kernel's sockets
	Addr   string // own address, with the prefix length
	Busy   bool   // the worker polls without naps
	Inline bool
	// Congestion is the stack's congestion control, and so its profile. Loss is the share of the frames that is lost, both
	// ways: in the stack's port, or of those that come to a socket of the kernel's.
	Congestion string
	Loss       float64
}

// order is a line that a child reads, and answer one that it writes. Orders are carried out at once, all at the same time.
type order struct {
	ID, N, Count int
	Do, Name, To string
	Options      []option
}

type answer struct {
	ID, N   int
	Err     string
	Text    string
	Seconds float64
}

// option is a socket option of a number.
type option struct{ Level, Name, Value int }

// network is what package net and package api have in common.
type network interface {
	Listen(network, address string) (net.Listener, error)
	ListenPacket(network, address string) (net.PacketConn, error)
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// kernelNet is package net.
type kernelNet struct {
	net.Dialer
	net.ListenConfig
}

func (k *kernelNet) Listen(network, address string) (net.Listener, error) {
	return k.ListenConfig.Listen(context.Background(), network, address)
}

// losing is a Control for sockets that lose a share of what comes to them. A filter of the kernel's drops the frames, and
// TCP never sees them.
func losing(share float64) func(network, address string, raw syscall.RawConn) error {
	return func(_, _ string, raw syscall.RawConn) (err error) {
		const random = 0xfffff000 + 56 // SKF_AD_OFF + SKF_AD_RANDOM
		code := []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: random},
			{Code: unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, K: uint32(share * (1 << 32)), Jf: 1},
			{Code: unix.BPF_RET | unix.BPF_K, K: 1 << 18},
			{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		}
		bad := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]})
		})
		return errors.Join(bad, err)
	}
}
func (*kernelNet) ListenPacket(network, address string) (net.PacketConn, error) {
	return net.ListenPacket(network, address)
}

// child is one that runs.
type child struct {
	host  *api.Host // nil: on the kernel's sockets
	net   network
	ip    netip.Addr
	mu    sync.Mutex // guards conns, and writing
	conns map[string]net.Conn
	open  [maxService]atomic.Int32 // connections of each service
	inUse int                      // buffers before the first connection
}

// runChild serves and obeys until its input ends or SIGTERM comes.
func runChild(text string) error {
	var cfg childConfig
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		return err
	}
	prefix, err := netip.ParsePrefix(cfg.Addr)
	if err != nil {
		return err
	}
	stop := cli.Signals("child")
	kernel := &kernelNet{}
	if cfg.Loss > 0 {
		kernel.Dialer.Control, kernel.ListenConfig.Control = losing(cfg.Loss), losing(cfg.Loss)
	}
	c := &child{net: kernel, ip: prefix.Addr(), conns: map[string]net.Conn{}}
	if cfg.Wire != "" {
		conf := api.Config{Wire: cfg.Wire, Addr: prefix, WorkerCPU: -1, WinScale: -1, Mbufs: 4096, Yield: true, Inline: cfg.Inline,
			Congestion: cfg.Congestion, Faults: api.Faults{Loss: cfg.Loss, SentLoss: cfg.Loss}}
		if !cfg.Busy {
			// Naps, since several of these run at once on machines of two cores; and windows of which a few together fit the
			// kernel's queue to the port, which holds 1000 frames and drops what does not fit.
			conf.IdleSleep, conf.RcvBuf = time.Millisecond, 256<<10
		}
		if c.host, err = cli.Open(conf, os.Stderr, stop, time.Second); err != nil {
			return err
		}
		c.net = c.host.Net()
		c.inUse = c.host.Stats().InUse
	}
	if err := c.serve(); err != nil {
		return err
	}
	fmt.Println(`{"ID":0}`) // ready
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			var o order
			if err := json.Unmarshal(in.Bytes(), &o); err != nil {
				fmt.Fprintln(os.Stderr, err)
				break
			}
			go c.obey(o)
		}
		stop.Ask()
	}()
	<-stop.Done()
	if c.host == nil {
		return nil
	}
	return cli.Close(c.host)
}

func (c *child) obey(o order) {
	begin := time.Now()
	a, err := c.do(o)
	a.ID, a.Seconds = o.ID, time.Since(begin).Seconds()
	if err != nil {
		a.Err = err.Error()
	}
	text, _ := json.Marshal(a)
	c.mu.Lock()
	defer c.mu.Unlock()
	os.Stdout.Write(append(text, '\n'))
}

// do carries out an order.
func (c *child) do(o order) (answer, error) {
	switch o.Do {
	case "get": // N bytes are wanted; the answer is their hash
		return c.get(o)
	case "echo": // Count connections at once send N bytes each and want them back
		return answer{}, c.echoes(o)
	case "turns": // a connection sends N bytes and waits until they are back, for that many ms and at least once
		return c.turns(o)
	case "dial":
		conn, err := c.dial(o.To, o.Options)
		if err == nil {
			c.mu.Lock()
			c.conns[o.Name] = conn
			c.mu.Unlock()
		}
		return answer{}, err
	case "open": // how many connections the service has
		return answer{N: int(c.open[o.N].Load())}, nil
	case "stats":
		return c.stats()
	}
	c.mu.Lock()
	conn := c.conns[o.Name]
	c.mu.Unlock()
	if conn == nil {
		return answer{}, fmt.Errorf("no connection %q", o.Name)
	}
	switch o.Do {
	case "send": // N bytes
		h := sha256.New()
		n, err := io.Copy(conn, io.TeeReader(noise(o.N), h))
		return answer{N: int(n), Text: hex.EncodeToString(h.Sum(nil))}, err
	case "line": // one line
		text, err := bufio.NewReader(conn).ReadString('\n')
		return answer{Text: text}, err
	case "receive": // N bytes; 0: all there are
		h := sha256.New()
		var from io.Reader = conn
		if o.N > 0 {
			from = io.LimitReader(conn, int64(o.N))
		}
		n, err := io.Copy(h, from)
		return answer{N: int(n), Text: hex.EncodeToString(h.Sum(nil))}, err
	case "shut":
		return answer{}, conn.(interface{ CloseWrite() error }).CloseWrite()
	case "close":
		return answer{}, conn.Close()
	}
	return answer{}, fmt.Errorf("no order %q", o.Do)
}

// stats is what is still held: buffers, over what there was before the first connection.
func (c *child) stats() (answer, error) {
	s := c.host.Stats()
	text := fmt.Sprintf("%d frames in, %d out, %d resent, %d probes, %d resets, %d opened, %d accepted, %d dropped, %d by the port",
		s.RxFrames, s.TxFrames, s.Retransmits, s.Probes, s.Resets, s.Opened, s.Accepted, s.Drops, s.PortDrops)
	return answer{N: s.InUse - c.inUse, Text: text}, nil
}

// dial connects, with options that are set before.
func (c *child) dial(to string, options []option) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if c.host == nil {
		var bad error
		lose := c.net.(*kernelNet).Dialer.Control
		d := net.Dialer{Control: func(network, address string, raw syscall.RawConn) error {
			if lose != nil {
				if err := lose(network, address, raw); err != nil {
					return err
				}
			}
			return raw.Control(func(fd uintptr) {
				for _, o := range options {
					bad = unix.SetsockoptInt(int(fd), o.Level, o.Name, o.Value)
				}
			})
		}}
		conn, err := d.DialContext(ctx, "tcp", to)
		if err == nil {
			err = bad
		}
		return conn, err
	}
	conn, err := c.net.DialContext(ctx, "tcp", to)
	if err != nil {
		return nil, err
	}
	for _, o := range options {
		if err := c.host.SetSockOptInt(conn.(*api.TCPConn).Fd(), o.Level, o.Name, o.Value); err != nil {
			return nil, err
		}
	}
	return conn, nil
}

func (c *child) get(o order) (answer, error) {
	client := http.Client{Transport: &http.Transport{DialContext: c.net.DialContext, DisableKeepAlives: true}}
	r, err := client.Get(o.To)
	if err != nil {
		return answer{}, err
	}
	defer r.Body.Close()
	h := sha256.New()
	n, err := io.Copy(h, r.Body)
	if err == nil && r.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", r.Status)
	}
	return answer{N: int(n), Text: hex.EncodeToString(h.Sum(nil))}, err
}

// echoes opens all connections before it sends anything.
func (c *child) echoes(o order) error {
	errs := make(chan error, o.Count)
	var up sync.WaitGroup
	up.Add(o.Count)
	for i := range o.Count {
		go func() {
			conn, err := c.dial(o.To, nil)
			up.Done()
			if err == nil {
				defer conn.Close()
				up.Wait()
				err = echoed(conn, o.N+i)
			}
			errs <- err
		}()
	}
	failed, first := 0, error(nil)
	for range o.Count {
		if err := <-errs; err != nil {
			failed++
			if first == nil {
				first = err
			}
		}
	}
	if first != nil {
		return fmt.Errorf("%d of %d connections failed, one with: %w", failed, o.Count, first)
	}
	return nil
}

// echoed sends n bytes, ends its side, and wants the same bytes back.
func echoed(conn net.Conn, n int) error {
	sent := make(chan error, 1)
	go func() {
		_, err := io.Copy(conn, noise(n))
		if err == nil {
			err = conn.(interface{ CloseWrite() error }).CloseWrite()
		}
		sent <- err
	}()
	got, want := sha256.New(), sha256.New()
	back, err := io.Copy(got, conn)
	if sentErr := <-sent; err == nil {
		err = sentErr
	}
	if err != nil {
		return err
	}
	io.Copy(want, noise(n))
	if hex.EncodeToString(got.Sum(nil)) != hex.EncodeToString(want.Sum(nil)) {
		return fmt.Errorf("of %d bytes %d came back, or others", n, back)
	}
	return nil
}

// turns is request and response for Count ms. The answer is how many there were.
func (c *child) turns(o order) (a answer, err error) {
	conn, err := c.dial(o.To, nil)
	if err != nil {
		return a, err
	}
	defer conn.Close()
	b := make([]byte, o.N)
	for end := time.Now().Add(time.Duration(o.Count) * time.Millisecond); a.N == 0 || time.Now().Before(end); a.N++ {
		want, err := io.ReadAll(noise(o.N + a.N%2))
		if err != nil {
			return a, err
		}
		if _, err := conn.Write(want[:o.N]); err != nil {
			return a, err
		}
		if _, err := io.ReadFull(conn, b); err != nil {
			return a, err
		}
		if !bytes.Equal(b, want[:o.N]) {
			return a, fmt.Errorf("turn %d: other bytes came back", a.N)
		}
	}
	return a, nil
}

// noise is n bytes that follow from n.
func noise(n int) io.Reader {
	var seed [32]byte
	seed[0], seed[1], seed[2], seed[3] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
	return io.LimitReader(rand.NewChaCha8(seed), int64(n))
}

// noiseSum is the SHA-256 of noise(n).
func noiseSum(n int) string {
	h := sha256.New()
	io.Copy(h, noise(n))
	return hex.EncodeToString(h.Sum(nil))
}
