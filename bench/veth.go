package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// veth is a pair of interfaces in two network namespaces, joined so that the kernel sends one segment per buffer.
type veth struct {
	from, to string // namespaces
	remove   func()
}

const (
	vethName = "bench0"
	vethFrom = "10.3.0.1"
	vethTo   = "10.3.0.2"
	vethPort = 5001
)

// ip finds a tool of the network's, which need not be in every user's PATH.
func systemTool(name string) (string, error) {
	for _, path := range []string{name, "/usr/sbin/" + name, "/sbin/" + name} {
		if found, err := exec.LookPath(path); err == nil {
			return found, nil
		}
	}
	return "", errSkip{"it needs the program " + name}
}

// newVeth makes the pair. The MTU is what makes a segment of mss bytes the largest: TCP_MAXSEG goes no lower than 88.
func (e *env) newVeth(mss int) (*veth, error) {
	if os.Geteuid() != 0 {
		return nil, errSkip{"network namespaces need root"}
	}
	ip, err := systemTool("ip")
	if err != nil {
		return nil, err
	}
	ethtool, err := systemTool("ethtool")
	if err != nil {
		return nil, err
	}
	pairs++
	name := fmt.Sprintf("ndpip-bench-%d-%d", os.Getpid(), pairs)
	v := &veth{from: name + "a", to: name + "b"}
	v.remove = atEnd.add(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		for _, ns := range []string{v.from, v.to} {
			_ = exec.CommandContext(ctx, ip, "netns", "delete", ns).Run()
		}
	})
	mtu := strconv.Itoa(mss + 40)
	var steps [][]string
	for _, ns := range []string{v.from, v.to} {
		steps = append(steps, []string{ip, "netns", "add", ns})
	}
	steps = append(steps, []string{ip, "link", "add", vethName, "netns", v.from, "type", "veth", "peer", "name", vethName, "netns", v.to})
	for ns, addr := range map[string]string{v.from: vethFrom, v.to: vethTo} {
		steps = append(steps,
			// Without the timestamps option, whose 12 bytes would come off each segment, as ndpip does without it.
			[]string{ip, "netns", "exec", ns, "sh", "-c", "echo 0 >/proc/sys/net/ipv4/tcp_timestamps"},
			[]string{ip, "netns", "exec", ns, ethtool, "-K", vethName, "tso", "off", "gso", "off", "gro", "off"},
			[]string{ip, "-n", ns, "link", "set", vethName, "mtu", mtu, "gso_max_segs", "1"},
			[]string{ip, "-n", ns, "addr", "add", addr + "/24", "dev", vethName},
			[]string{ip, "-n", ns, "link", "set", vethName, "up"})
	}
	for _, argv := range steps {
		if err := e.command(10*time.Second, "", argv...); err != nil {
			v.remove()
			return nil, err
		}
	}
	return v, nil
}

// packets is how many frames have arrived in the receiver's namespace.
func (v *veth) packets() (int, error) {
	ip, err := systemTool("ip")
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, ip, "netns", "exec", v.to, "cat", "/sys/class/net/"+vethName+"/statistics/rx_packets").Output()
	if err != nil {
		return 0, fmt.Errorf("reading the interface's counter: %w", err)
	}
	return strconv.Atoi(strings.TrimSpace(string(out)))
}

// inNamespace runs f on a thread of its own, in a namespace and on a CPU. The thread ends with f.
func inNamespace(ns string, cpu int, f func() error) <-chan error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked
		done <- func() error {
			fd, err := unix.Open("/var/run/netns/"+ns, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return fmt.Errorf("namespace %s: %w", ns, err)
			}
			defer unix.Close(fd)
			if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("setns to %s: %w", ns, err)
			}
			if _, err := pinned(cpu); err != nil {
				return err
			}
			return f()
		}()
	}()
	return done
}

// stream is a sender and a receiver on sockets of the kernel's.
type stream struct {
	mss   int
	stop  atomic.Bool
	up    chan struct{}
	_     [64]byte
	bytes atomic.Uint64 // received
	_     [64]byte
}

// tcpSocket makes a blocking socket whose calls return after a second at most.
func tcpSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	second := unix.Timeval{Sec: 1}
	// The congestion control is Linux's usual one, whatever the machine's is: one that paces by the clock, such as BBR,
	// is not for a wire without a rate, and slow there.
	if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic"); err != nil {
		_ = unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno") // always there
	}
	for _, err := range []error{
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &second),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &second),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
	} {
		if err != nil {
			unix.Close(fd)
			return -1, fmt.Errorf("setsockopt: %w", err)
		}
	}
	return fd, nil
}

func passing(err error) bool {
	return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) || errors.Is(err, unix.EINPROGRESS)
}

// receive takes one connection and reads until it ends or stop is asked.
func (s *stream) receive() error {
	l, err := tcpSocket()
	if err != nil {
		return err
	}
	defer unix.Close(l)
	if err := unix.Bind(l, &unix.SockaddrInet4{Port: vethPort}); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	if err := unix.Listen(l, 1); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	close(s.up)
	fd := -1
	for fd < 0 {
		if s.stop.Load() {
			return nil
		}
		if fd, _, err = unix.Accept4(l, unix.SOCK_CLOEXEC); err != nil && !passing(err) {
			return fmt.Errorf("accept: %w", err)
		}
	}
	defer unix.Close(fd)
	second := unix.Timeval{Sec: 1}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &second); err != nil {
		return fmt.Errorf("setsockopt: %w", err)
	}
	buf := make([]byte, burst*s.mss)
	for !s.stop.Load() {
		n, err := unix.Read(fd, buf)
		switch {
		case n > 0:
			s.bytes.Add(uint64(n))
		case err == nil:
			return nil
		case !passing(err):
			return fmt.Errorf("read: %w", err)
		}
	}
	return nil
}

// send writes bursts until stop is asked.
func (s *stream) send() error {
	fd, err := tcpSocket()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: vethPort, Addr: [4]byte{10, 3, 0, 2}}); err != nil {
		return fmt.Errorf("connect to %s: %w", vethTo, err)
	}
	buf := make([]byte, burst*s.mss)
	for !s.stop.Load() {
		if _, err := unix.Write(fd, buf); err != nil && !passing(err) {
			if s.stop.Load() {
				return nil // the receiver has gone first
			}
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}

// watchStream gives what arrives in steps of 50 ms, for d, after a start that is not counted.
func (s *stream) watch(e *env, d time.Duration, floor float64) ([]block, error) {
	const step = 50 * time.Millisecond
	time.Sleep(4 * step)
	var blocks []block
	last, at := s.bytes.Load(), time.Now()
	for begin := at; time.Since(begin) < d; {
		time.Sleep(step)
		if e.ctx.Err() != nil {
			return nil, context.Cause(e.ctx)
		}
		n, now := s.bytes.Load(), time.Now()
		if n == last {
			if now.Sub(at) > stuck {
				return nil, fmt.Errorf("no byte arrived for %s (%d before)", stuck, n)
			}
			continue
		}
		segments := float64(n-last) / float64(s.mss)
		blocks = append(blocks, block{ns: float64(now.Sub(at).Nanoseconds()) / segments, floor: floor})
		last, at = n, now
	}
	return blocks, nil
}

// runVeth measures the kernel's TCP on n CPUs.
func runVeth(n int) func(*env, point) ([]result, error) {
	return func(e *env, p point) ([]result, error) {
		use := cpus()
		if len(use) < n {
			return nil, errSkip{fmt.Sprintf("it needs %d CPUs", n)}
		}
		floor, err := e.floorNow(p.MSS)
		if err != nil {
			return nil, err
		}
		v, err := e.newVeth(p.MSS)
		if err != nil {
			return nil, err
		}
		defer v.remove()
		s := &stream{mss: p.MSS, up: make(chan struct{})}
		recv := inNamespace(v.to, use[n-1], s.receive)
		select {
		case <-s.up:
		case err := <-recv:
			return nil, fmt.Errorf("receiver: %w", err)
		}
		send := inNamespace(v.from, use[0], s.send)
		blocks, err := s.watch(e, e.each, floor)
		s.stop.Store(true)
		for who, ch := range map[string]<-chan error{"receiver": recv, "sender": send} {
			if end := <-ch; err == nil && end != nil {
				err = fmt.Errorf("%s: %w", who, end)
			}
		}
		if err != nil {
			return nil, err
		}
		packets, err := v.packets()
		if err != nil {
			return nil, err
		}
		if want := float64(s.bytes.Load()) / float64(p.MSS); float64(packets) < 0.9*want {
			return nil, fmt.Errorf("the kernel sent %d frames for %.0f segments of %d bytes: it does not send one segment per buffer", packets, want, p.MSS)
		}
		name := "linux-veth"
		if n == 1 {
			name = "linux-veth-1cpu"
		}
		return []result{newResult(name, p, blocks)}, nil
	}
}
