package main

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/api"
	"ndpip/cmd/internal/cli"
	"ndpip/cmd/internal/meter"
)

const (
	// patience is how long a wait for events lasts before the loop looks whether it is to end.
	patience = 20 // ms
	// eventRoom is how many ready sockets one wait reports.
	eventRoom = 256
)

// job is what all verbs have in common: the host, the counters, the meter that prints them, and the event queue.
type job struct {
	o     *options
	stop  *cli.Stop
	count meter.Counters
	meter meter.Meter
	files []io.Closer

	h      *api.Host
	ep     int
	events []api.EpollEvent
	base   api.Stats // the host's counters at the start
	after  int       // buffers in use when the connections were closed
}

// worker is one verb's job.
type worker interface {
	on(h *api.Host) error // does the work
	closed()              // says what is to say when the host is closed
	closeFiles()
}

// prepare opens the files, so that a wrong name is reported before the port is touched.
func prepare(o *options, stop *cli.Stop) (worker, error) {
	switch o.verb {
	case "send":
		return prepareSend(o, stop)
	case "ping":
		return preparePing(o, stop)
	case "conn":
		return prepareConn(o, stop)
	}
	return prepareRecv(o, stop)
}

// init sets what does not depend on the verb or the host.
func (j *job) init(o *options, stop *cli.Stop) {
	j.o, j.stop = o, stop
	j.events = make([]api.EpollEvent, eventRoom)
	j.meter.W = os.Stdout
	j.meter.JSON = o.format == "json"
	j.meter.Both = o.bidir || o.echo
	j.meter.Fail = stop.Ask
	j.meter.Read = j.reading
}

func (j *job) closeFiles() {
	for _, f := range j.files {
		f.Close()
	}
}

// stragglers is how long a program waits for its last buffers before it counts them.
const stragglers = 200 * time.Millisecond

// open makes the calling thread an lcore and makes the event queue. end takes both back.
func (j *job) open(h *api.Host) (end func(), err error) {
	release, err := j.o.PinThread()
	if err != nil {
		return nil, err
	}
	j.h, j.base = h, h.Stats()
	if j.ep, err = h.EpollCreate(); err != nil {
		release()
		return nil, err
	}
	return func() {
		// A frame may still be on its way, or held back by the faults: what is left after that is a leak.
		for end := time.Now().Add(stragglers); h.Stats().InUse > j.base.InUse && time.Now().Before(end); {
			if _, err := h.EpollWait(j.ep, j.events, 1); err != nil {
				break
			}
		}
		h.Close(j.ep)
		j.after = h.Stats().InUse
		release()
	}, nil
}

// start is open, and starts the meter.
func (j *job) start(h *api.Host) (end func(), err error) {
	shut, err := j.open(h)
	if err != nil {
		return nil, err
	}
	done, printed := make(chan struct{}), make(chan struct{})
	go func() {
		j.meter.Run(j.o.interval, done)
		close(printed)
	}()
	return func() {
		close(done)
		<-printed
		shut()
	}, nil
}

// closed prints what became of the port, once it is closed.
func (j *job) closed() {
	if j.h == nil {
		return
	}
	s := j.h.Stats()
	j.meter.Closed(meter.Port{
		Before: j.base.InUse, After: j.after, Left: s.InUse,
		Lost: s.Faults.Lost, Duplicated: s.Faults.Duplicated, Reordered: s.Faults.Reordered,
	})
}

// wait gives the sockets that are ready, after at most patience.
func (j *job) wait() ([]api.EpollEvent, error) {
	n, err := j.h.EpollWait(j.ep, j.events, patience)
	if err != nil && !errors.Is(err, unix.EINTR) {
		return nil, err
	}
	return j.events[:n], nil
}

// watch tells the event queue to report fd with key for any of events; op is EPOLL_CTL_ADD or EPOLL_CTL_MOD.
func (j *job) watch(op, fd int, events uint32, key int) error {
	return j.h.EpollCtl(j.ep, op, fd, &api.EpollEvent{Events: events, Data: uint64(key)})
}

// pause waits d, or until the program is to end.
func (j *job) pause(d time.Duration) {
	select {
	case <-j.stop.Done():
	case <-time.After(d):
	}
}

// again says whether err only means that nothing could be done just now.
func again(err error) bool {
	return err == unix.EAGAIN || err == unix.EINTR || err == unix.ENOBUFS || err == unix.ENOMEM
}

// segment is the largest segment of a connection (or datagram of a socket) in bytes: what was asked for with --mss, or
// else what the socket says.
func (j *job) segment(fd int) int {
	if j.o.MSS > 0 {
		return j.o.MSS
	}
	if n, err := j.h.GetSockOptInt(fd, unix.SOL_SOCKET, api.SO_NDPIP_MAX_TX_SEG); err == nil && n > 0 {
		return n
	}
	return cli.DefaultMSS
}
