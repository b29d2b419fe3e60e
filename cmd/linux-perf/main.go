// Command linux-perf is ndpip-perf over the kernel's sockets: the same writes and reads, one thread that polls an epoll,
// the same lines. 'linux-perf help' explains the options.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"ndpip/cmd/internal/meter"
)

//go:embed help.txt
var help string

func main() {
	signal.Ignore(syscall.SIGPIPE) // a closed standard output is an error of the write
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// usageError is a fault in the command line.
type usageError struct{ error }

func usagef(format string, a ...any) error { return usageError{fmt.Errorf(format, a...)} }

// run is the program; it returns the exit status. The end of ctx ends it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args)
	if err == nil {
		err = perform(ctx, o, stdout)
	}
	var usage usageError
	switch {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprint(stdout, help)
		return 0
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "linux-perf: %v\n", err)
		return 2
	case err != nil:
		fmt.Fprintf(stderr, "linux-perf %s: %v\n", o.verb, err)
		return 1
	}
	return 0
}

// job is what all verbs have in common.
type job struct {
	o     *options
	count meter.Counters
	meter meter.Meter
	asked atomic.Bool // the program is to end

	ep     int
	events []unix.EpollEvent

	// What TCP_INFO says, summed over the connections that are closed and those that are open. The loop writes it several
	// times per interval and at the end; the meter's goroutine reads it.
	segments, backSegments, retransmissions atomic.Uint64
	closed                                  totals
	due                                     time.Time

	least, most uint64 // bytes of a connection
	total       int
}

type totals struct{ segments, back, retransmissions uint64 }

// store is what the meter reads from now on.
func (j *job) store(t totals) {
	j.segments.Store(t.segments)
	j.backSegments.Store(t.back)
	j.retransmissions.Store(t.retransmissions)
}

func perform(ctx context.Context, o *options, stdout io.Writer) error {
	runtime.LockOSThread()
	if o.cpu >= 0 {
		var set unix.CPUSet
		set.Set(o.cpu)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return fmt.Errorf("--cpu %d: %w; see which CPUs there are with 'nproc --all' and 'taskset -p $$'", o.cpu, err)
		}
	}
	if err := moreFiles(max(o.connections, o.parallel)); err != nil {
		return err
	}
	j := &job{o: o, events: make([]unix.EpollEvent, 256)}
	j.meter = meter.Meter{W: stdout, JSON: o.format == "json", Both: o.bidir || o.echo, Read: j.reading, Fail: func() { j.asked.Store(true) }}
	defer context.AfterFunc(ctx, func() { j.asked.Store(true) })()
	var err error
	if j.ep, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("epoll_create1: %w", err)
	}
	defer unix.Close(j.ep)
	if o.verb == "ping" || o.verb == "conn" {
		return j.ask(stdout)
	}
	done, printed := make(chan struct{}), make(chan struct{})
	go func() {
		j.meter.Run(o.interval, done)
		close(printed)
	}()
	work := j.receive
	if o.verb == "send" {
		work = j.send
	}
	verb, span, err := work()
	close(done)
	<-printed
	if err != nil {
		return err
	}
	r := j.reading()
	r.Least, r.Most = j.least, j.most
	j.meter.Summary(verb, r, span, j.total)
	return nil
}

// moreFiles raises the limit on open files where that is needed. A receiver cannot know how many will come.
func moreFiles(connections int) error {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		return fmt.Errorf("getrlimit: %w", err)
	}
	want := uint64(connections) + 64
	if lim.Max < want && os.Geteuid() == 0 {
		lim.Max = want
	}
	lim.Cur = lim.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &lim); err != nil || lim.Cur < want {
		return fmt.Errorf("%d connections need %d open files, and the limit is %d: raise it with 'ulimit -n'", connections, want, lim.Max)
	}
	return nil
}

func (j *job) reading() meter.Reading {
	return meter.Reading{
		Bytes: j.count.Bytes.Load(), Back: j.count.Back.Load(), Connections: int(j.count.Connections.Load()), Moving: int(j.count.Moving.Load()),
		Segments: j.segments.Load(), BackSegments: j.backSegments.Load(), Retransmissions: j.retransmissions.Load(),
	}
}

// info adds what the kernel says of a connection.
func (j *job) info(fd int, t *totals) {
	i, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return
	}
	to, back := uint64(i.Data_segs_in), uint64(i.Data_segs_out)
	if j.o.verb == "send" {
		to, back = back, to
	}
	t.segments += to
	t.back += back
	t.retransmissions += uint64(i.Total_retrans)
}

// look sums up TCP_INFO, which takes about a microsecond per connection: ten times per interval, or less often where there
// are many.
func (j *job) look(each func(visit func(fd int))) {
	if now := time.Now(); now.Before(j.due) || j.o.interval == 0 || j.o.udp {
		return
	} else {
		j.due = now.Add(max(j.o.interval/10, time.Duration(j.count.Connections.Load())*20*time.Microsecond))
	}
	sum := j.closed
	each(func(fd int) { j.info(fd, &sum) })
	j.store(sum)
}

// moved counts n bytes of a connection that has moved so many before.
func (j *job) moved(before *uint64, n int) {
	if *before == 0 {
		j.count.Moving.Add(1)
	}
	*before += uint64(n)
	j.count.Bytes.Add(uint64(n))
}

// close closes a connection that has moved so many bytes.
func (j *job) close(fd int, bytes uint64) {
	j.info(fd, &j.closed)
	unix.Close(fd)
	j.count.Connections.Add(-1)
	if bytes > 0 {
		j.count.Moving.Add(-1)
	}
	if j.total++; j.total == 1 {
		j.least = bytes
	}
	j.least, j.most = min(j.least, bytes), max(j.most, bytes)
}

// finish stores the sums when all connections are closed. Datagrams are counted as they come and go.
func (j *job) finish() {
	if !j.o.udp {
		j.store(j.closed)
	}
}

// wait gives the sockets that are ready. It polls, as ndpip's threads do, for at most patience.
func (j *job) wait() ([]unix.EpollEvent, error) {
	const patience = 20 // ms
	n, err := unix.EpollWait(j.ep, j.events, patience)
	if err != nil && err != unix.EINTR {
		return nil, fmt.Errorf("epoll_wait: %w", err)
	}
	return j.events[:max(n, 0)], nil
}

func (j *job) watch(op, fd int, events uint32, key int) error {
	if err := unix.EpollCtl(j.ep, op, fd, &unix.EpollEvent{Events: events, Fd: int32(key)}); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// socket makes a non-blocking socket with the options that both ends have.
func (j *job) socket() (int, error) {
	kind := unix.SOCK_STREAM
	if j.o.udp {
		kind = unix.SOCK_DGRAM
	}
	fd, err := unix.Socket(unix.AF_INET, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	set := func(level, name, value int) {
		if err == nil && value > 0 {
			if err = unix.SetsockoptInt(fd, level, name, value); err != nil {
				err = fmt.Errorf("setsockopt %d to %d: %w", name, value, err)
			}
		}
	}
	set(unix.SOL_SOCKET, unix.SO_RCVBUF, j.o.rcvBuf)
	set(unix.SOL_SOCKET, unix.SO_SNDBUF, j.o.sndBuf)
	if err != nil || j.o.udp {
		return fd, err
	}
	// The congestion control is Linux's usual one, whatever the machine's is: one that paces by the clock, such as BBR,
	// is not for a wire without a rate.
	if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, "cubic"); err != nil {
		_ = unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, "reno") // always there
	}
	set(unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	set(unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if j.o.mss >= minMaxseg {
		set(unix.IPPROTO_TCP, unix.TCP_MAXSEG, j.o.mss)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// passing says whether err only means that nothing could be done just now.
func passing(err error) bool { return err == unix.EAGAIN || err == unix.EINTR }

// oneLine keeps messages to a line.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
