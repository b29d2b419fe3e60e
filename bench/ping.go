package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/api"
)

// pingSize is what goes to and fro.
const pingSize = 64

// trips are round trips, in ns.
type trips struct{ median, p99 float64 }

func sumTrips(all []int64) (trips, error) {
	if len(all) < 1000 {
		return trips{}, fmt.Errorf("%d round trips, want 1000 at least", len(all))
	}
	slices.Sort(all)
	return trips{float64(all[len(all)/2]), float64(all[len(all)*99/100])}, nil
}

// runPing measures the round trip between two ends on a CPU each, beside the kernel's.
func runPing(name string, measure func(*env) (trips, error)) func(*env, point) ([]result, error) {
	return func(e *env, p point) ([]result, error) {
		if len(cpus()) < 2 {
			return nil, errSkip{"it needs two CPUs"}
		}
		before, err := lineTrip()
		if err != nil {
			return nil, err
		}
		ours, err := measure(e)
		if err != nil {
			return nil, err
		}
		after, err := lineTrip()
		if err != nil {
			return nil, err
		}
		r := result{Bench: name, point: p, NsPerSegment: ours.median, NsPerTrip: ours.median, P99Ns: ours.p99, LineNs: (before + after) / 2}
		kernel, err := e.kernelTrips()
		var skip errSkip
		if err != nil && !errors.As(err, &skip) {
			return nil, err
		}
		if r.LinuxNsPerTrip, r.FloorNs = kernel.median, kernel.median; kernel.median > 0 {
			r.Ratio = ours.median / kernel.median
		}
		return []result{r}, nil
	}
}

// lineTrip is how long a cache line takes between the two CPUs, there and back: what no stack can do without. It says how
// far from each other they are, which changes on a virtual machine.
func lineTrip() (float64, error) {
	const n = 50_000
	var line struct {
		_  [64]byte
		at atomic.Uint32
		_  [64]byte
	}
	use := cpus()
	back := make(chan error, 1)
	defer moreProcs()()
	go func() {
		runtime.LockOSThread() // and never unlocked
		_, err := pinned(use[1])
		for i := uint32(1); i < 2*n && err == nil; i += 2 {
			for line.at.Load() != i {
			}
			line.at.Store(i + 1)
		}
		back <- err
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	free, err := pinned(use[0])
	if err != nil {
		return 0, err
	}
	defer free()
	line.at.Store(1)
	for line.at.Load() != 2 { // or the other could not be pinned
		select {
		case err := <-back:
			return 0, err
		default:
		}
	}
	start := time.Now()
	for i := uint32(2); i < 2*n; i += 2 {
		line.at.Store(i + 1)
		for line.at.Load() != i+2 {
		}
	}
	ns := float64(time.Since(start).Nanoseconds()) / (n - 1)
	return ns, <-back
}

// ringTrips is between two inline hosts in this process, on a thread each, over a net_ring pair.
func ringTrips(e *env) (trips, error) {
	x, y, err := e.apiHosts()
	if err != nil {
		return trips{}, err
	}
	s, err := newAPIStep(x, y, 1, pingSize)
	if err != nil {
		return trips{}, err
	}
	defer s.close()
	defer moreProcs()()
	use := cpus()
	var stop atomic.Bool
	echo := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked
		if _, err := pinned(use[1]); err != nil {
			echo <- err
			return
		}
		echo <- answer(y, s.theirs[0], &stop)
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	back, err := pinned(use[0])
	if err != nil {
		stop.Store(true)
		return trips{}, errors.Join(err, <-echo)
	}
	defer back()
	all, err := ask(x, s.fds[0], e.each)
	stop.Store(true)
	if err = errors.Join(err, <-echo); err != nil {
		return trips{}, err
	}
	return sumTrips(all)
}

// answer sends back what comes, until stop.
func answer(h *api.Host, fd int, stop *atomic.Bool) error {
	buf := make([]byte, pingSize)
	for !stop.Load() {
		n, err := h.Read(fd, buf)
		if err == unix.EAGAIN {
			continue
		}
		if err != nil || n == 0 {
			return fmt.Errorf("ping: read at the other end: %d bytes, %w", n, err)
		}
		if _, err := h.Write(fd, buf[:n]); err != nil {
			return fmt.Errorf("ping: write at the other end: %w", err)
		}
	}
	return nil
}

// ask sends and waits for the answer, for a time. What comes before the caches are warm is not counted.
func ask(h *api.Host, fd int, d time.Duration) ([]int64, error) {
	buf := make([]byte, pingSize)
	all := make([]int64, 0, 1<<20)
	begin := time.Now()
	for at, n := begin, 0; at.Sub(begin) < d && len(all) < cap(all); n++ {
		if _, err := h.Write(fd, buf); err != nil {
			return nil, fmt.Errorf("ping: write: %w", err)
		}
		for got, empty := 0, 0; got < pingSize; {
			k, err := h.Read(fd, buf[got:])
			if err == unix.EAGAIN {
				if empty++; empty&(1<<20-1) == 0 && time.Since(at) > stuck {
					return nil, fmt.Errorf("ping: no answer for %s", stuck)
				}
				continue
			}
			if err != nil || k == 0 {
				return nil, fmt.Errorf("ping: read: %d bytes, %w", k, err)
			}
			got += k
		}
		now := time.Now()
		if n >= 1000 {
			all = append(all, now.Sub(at).Nanoseconds())
		}
		at = now
	}
	return all, nil
}

// memifTrips is between two processes, 'ndpip-perf ping' and 'recv --echo', over shared memory.
func memifTrips(e *env) (trips, error) {
	perf, err := e.perfProgram()
	if err != nil {
		return trips{}, err
	}
	use := cpus()
	pairs++
	socket := filepath.Join(e.dir, fmt.Sprintf("memif%d", pairs))
	var sum struct {
		Type        string           `json:"type"`
		Percentiles map[string]int64 `json:"percentiles_ns"`
	}
	var mu sync.Mutex
	line := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(text, `"summary"`) {
			_ = json.Unmarshal([]byte(text), &sum)
		}
	}
	args := func(cpu int, verb string, more ...string) []string {
		return append([]string{perf, verb, "--wire", "memif:" + socket, "--inline", "--checksum", "off", "--format", "json",
			"--interval", "0", "--cpu", strconv.Itoa(cpu)}, more...)
	}
	recv, err := startProcess(e.ctx, e.each+grace/2, func(string) {}, "", args(use[1], "recv", "--echo")...)
	if err != nil {
		return trips{}, err
	}
	defer recv.stop()
	ping, err := startProcess(e.ctx, e.each+grace/2, line, "", args(use[0], "ping", "--size", strconv.Itoa(pingSize),
		"--timeout", strconv.FormatFloat(e.each.Seconds(), 'f', -1, 64), "--connect-timeout", strconv.FormatFloat((grace/3).Seconds(), 'f', -1, 64))...)
	if err != nil {
		return trips{}, err
	}
	defer ping.stop()
	select {
	case <-ping.done:
	case <-recv.done:
		ping.kill()
		return trips{}, recv.fail(errors.New("ended before the one that asks"))
	}
	if err := ping.wait(); err != nil {
		return trips{}, fmt.Errorf("%w\n%w", err, recv.fail(errors.New("the one that answers")))
	}
	mu.Lock()
	defer mu.Unlock()
	t := trips{float64(sum.Percentiles["50"]), float64(sum.Percentiles["99"])}
	if t.median == 0 {
		return trips{}, ping.fail(errors.New("no percentiles in the summary"))
	}
	return t, nil
}

// kernelTrips is between sockets of the kernel's over veth: the best of blocking calls with both ends on one CPU and on
// two, calls that busy-poll (SO_BUSY_POLL), and calls that do not block and are made again and again.
func (e *env) kernelTrips() (best trips, err error) {
	v, err := e.newVeth(1460)
	if err != nil {
		return trips{}, err
	}
	defer v.remove()
	defer moreProcs()()
	defer moreProcs()()
	use := cpus()
	for i, how := range []kernelPing{{cpu: use[0]}, {cpu: use[1]}, {cpu: use[1], busy: true}, {cpu: use[1], spin: true}} {
		k := &how
		k.port, k.up, k.long = vethPort+1+i, make(chan struct{}), e.each
		echo := inNamespace(v.to, k.cpu, k.answer)
		select {
		case <-k.up:
		case err := <-echo:
			return trips{}, fmt.Errorf("linux: ping: %w", err)
		}
		if err := errors.Join(<-inNamespace(v.from, use[0], k.ask), <-echo); err != nil {
			return trips{}, fmt.Errorf("linux: ping: %w", err)
		}
		t, err := sumTrips(k.all)
		if err != nil {
			return trips{}, fmt.Errorf("linux: %w", err)
		}
		if best.median == 0 || t.median < best.median {
			best = t
		}
	}
	return best, nil
}

// kernelPing is a round trip over sockets of the kernel's.
type kernelPing struct {
	cpu  int  // of the one that answers
	busy bool // SO_BUSY_POLL
	spin bool // calls do not block
	port int
	up   chan struct{}
	long time.Duration
	all  []int64
}

// prepare sets a connected socket up.
func (k *kernelPing) prepare(fd int) error {
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
		return err
	}
	if k.busy {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUSY_POLL, 1000); err != nil {
			return err
		}
	}
	return unix.SetNonblock(fd, k.spin)
}

// again repeats a call that a signal of Go's has interrupted, or that found nothing.
func (k *kernelPing) again(call func(int, []byte) (int, error), fd int, b []byte) (n int, err error) {
	for n, err = call(fd, b); err == unix.EINTR || k.spin && err == unix.EAGAIN; {
		n, err = call(fd, b)
	}
	return n, err
}

func (k *kernelPing) answer() error {
	l, err := tcpSocket()
	if err != nil {
		return err
	}
	defer unix.Close(l)
	if err := unix.Bind(l, &unix.SockaddrInet4{Port: k.port}); err != nil {
		return err
	}
	if err := unix.Listen(l, 1); err != nil {
		return err
	}
	close(k.up)
	fd, _, err := unix.Accept4(l, unix.SOCK_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := k.prepare(fd); err != nil {
		return err
	}
	buf := make([]byte, pingSize)
	for {
		n, err := k.again(unix.Read, fd, buf)
		if err != nil || n == 0 {
			return err
		}
		if _, err := k.again(unix.Write, fd, buf[:n]); err != nil {
			return err
		}
	}
}

func (k *kernelPing) ask() error {
	fd, err := tcpSocket()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: k.port, Addr: [4]byte{10, 3, 0, 2}}); err != nil {
		return err
	}
	if err := k.prepare(fd); err != nil {
		return err
	}
	buf := make([]byte, pingSize)
	k.all = make([]int64, 0, 1<<20)
	begin := time.Now()
	for at, n := begin, 0; at.Sub(begin) < k.long && len(k.all) < cap(k.all); n++ {
		if _, err := k.again(unix.Write, fd, buf); err != nil {
			return err
		}
		for got := 0; got < pingSize; {
			m, err := k.again(unix.Read, fd, buf[got:])
			if err != nil {
				return err
			}
			got += m
		}
		now := time.Now()
		if n >= 100 {
			k.all = append(k.all, now.Sub(at).Nanoseconds())
		}
		at = now
	}
	return nil
}
