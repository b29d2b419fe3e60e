package main

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// datagrams sends bursts of datagrams of --mss bytes on all sockets in turn, until the program is to end.
func (j *job) datagrams(bytes map[int]*uint64) (time.Duration, error) {
	begun := time.Now()
	buf := make([]byte, j.o.mss)
	for fd := range bytes {
		if err := j.watch(unix.EPOLL_CTL_ADD, fd, unix.EPOLLOUT, fd); err != nil {
			return 0, err
		}
	}
	var failing time.Time // when the present row of failures began
	for !j.asked.Load() && (j.o.timeout == 0 || time.Since(begun) < j.o.timeout) {
		ready, err := j.wait()
		if err != nil {
			return 0, err
		}
		for i := range ready {
			fd := int(ready[i].Fd)
			for range j.o.burst {
				n, err := unix.Write(fd, buf)
				if err == nil {
					j.moved(bytes[fd], n)
					j.segments.Add(1)
					failing = time.Time{}
					continue
				}
				switch {
				case passing(err):
				case err != unix.ECONNREFUSED && err != unix.EHOSTUNREACH && err != unix.ENOBUFS:
					return 0, fmt.Errorf("send to %s:%d: %w", j.o.peer, j.o.port, err)
				case failing.IsZero():
					failing = time.Now()
				case time.Since(failing) > j.o.connectIn:
					return 0, fmt.Errorf("send to %s:%d: %w for %gs; start 'linux-perf recv --udp' there", j.o.peer, j.o.port, err, j.o.connectIn.Seconds())
				}
				break
			}
		}
	}
	for fd, n := range bytes {
		j.close(fd, *n)
	}
	return time.Since(begun), nil
}

// take reads datagrams on one socket until the program is to end, and with --echo sends them back.
func (j *job) take(fd int) (span time.Duration, err error) {
	var first, last time.Time
	var total uint64
	begun := time.Now()
	buf := make([]byte, 64<<10)
	j.count.Connections.Add(1)
	for !j.asked.Load() && (j.o.timeout == 0 || time.Since(begun) < j.o.timeout) {
		ready, err := j.wait()
		if err != nil {
			return 0, err
		}
		for more := len(ready) > 0; more; {
			n, from, err := unix.Recvfrom(fd, buf, 0)
			if more = err == nil; !more {
				break
			}
			if last = time.Now(); first.IsZero() {
				first = last
			}
			j.moved(&total, n)
			j.segments.Add(1)
			if j.o.echo && unix.Sendto(fd, buf[:n], 0, from) == nil {
				j.count.Back.Add(uint64(n))
				j.backSegments.Add(1)
			}
		}
	}
	j.close(fd, total)
	return last.Sub(first), nil
}
