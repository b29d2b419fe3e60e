package main

import (
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// linuxCycle is the same life over sockets of the kernel's, by one thread: the listener is in one namespace, the thread
// in the other. Everything that a frame sets off runs in the sender's system call, so no call waits and no thread is
// changed for another: the best case for the kernel. The calls are made without Go's scheduler (RawSyscall).
type linuxCycle struct {
	addrs     [16]unix.RawSockaddrInet4 // so many listeners that their clients' ports are not used up
	listeners [16]int
	next      int
	x, y      []int
	buf       [cycleBytes]byte
}

func rawCall(call string, trap, a, b, c, d uintptr) (int, error) {
	n, _, e := unix.RawSyscall6(trap, a, b, c, d, 0, 0)
	if e != 0 {
		return 0, fmt.Errorf("linux: %s: %w", call, e)
	}
	return int(n), nil
}

// newLinuxCycle makes the listeners and leaves this thread in the client's namespace; back returns it to its own.
func newLinuxCycle(v *veth, n int) (c *linuxCycle, back func(), err error) {
	home, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	c = &linuxCycle{x: make([]int, n), y: make([]int, n)}
	back = func() {
		for _, fd := range c.listeners {
			if fd != 0 {
				unix.Close(fd)
			}
		}
		_ = unix.Setns(home, unix.CLONE_NEWNET)
		unix.Close(home)
	}
	defer func() {
		if err != nil {
			back()
		}
	}()
	if err = enter(v.to); err != nil {
		return nil, nil, err
	}
	for i := range c.listeners {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, nil, err
		}
		c.listeners[i] = fd
		port := vethPort + i
		if err := unix.Bind(fd, &unix.SockaddrInet4{Port: port}); err != nil {
			return nil, nil, err
		}
		if err := unix.Listen(fd, cycleBacklog); err != nil {
			return nil, nil, err
		}
		c.addrs[i] = unix.RawSockaddrInet4{Family: unix.AF_INET, Port: uint16(port>>8 | port<<8), Addr: [4]byte{10, 3, 0, 2}}
	}
	return c, back, enter(v.from)
}

// enter moves this thread to a namespace.
func enter(ns string) error {
	fd, err := unix.Open("/var/run/netns/"+ns, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("namespace %s: %w", ns, err)
	}
	defer unix.Close(fd)
	return unix.Setns(fd, unix.CLONE_NEWNET)
}

func (c *linuxCycle) move(call string, trap uintptr, fd, want int) error {
	n, err := rawCall(call, trap, uintptr(fd), uintptr(unsafe.Pointer(&c.buf)), cycleBytes, 0)
	if err == nil && n != want {
		err = fmt.Errorf("linux: %s moved %d of %d bytes", call, n, want)
	}
	return err
}

// round is cycle.round.
func (c *linuxCycle) round() (err error) {
	at := c.next
	c.next = (c.next + 1) % len(c.addrs)
	for i := range c.x {
		if c.x[i], err = rawCall("socket", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0, 0); err != nil {
			return err
		}
		if _, err = rawCall("connect", unix.SYS_CONNECT, uintptr(c.x[i]), uintptr(unsafe.Pointer(&c.addrs[at])), unix.SizeofSockaddrInet4, 0); err != nil {
			return err
		}
	}
	for _, fd := range c.x {
		if err = c.move("write", unix.SYS_WRITE, fd, cycleBytes); err != nil {
			return err
		}
	}
	for i := range c.y {
		if c.y[i], err = rawCall("accept", unix.SYS_ACCEPT4, uintptr(c.listeners[at]), 0, 0, unix.SOCK_CLOEXEC); err != nil {
			return err
		}
		if err = c.move("read", unix.SYS_READ, c.y[i], cycleBytes); err != nil {
			return err
		}
		if err = c.move("answer", unix.SYS_WRITE, c.y[i], cycleBytes); err != nil {
			return err
		}
	}
	for _, fd := range c.x {
		if err = c.move("read of the answer", unix.SYS_READ, fd, cycleBytes); err != nil {
			return err
		}
		if _, err = rawCall("close", unix.SYS_CLOSE, uintptr(fd), 0, 0, 0); err != nil {
			return err
		}
	}
	for _, fd := range c.y {
		if err = c.move("read of the end", unix.SYS_READ, fd, 0); err != nil {
			return err
		}
		if _, err = rawCall("close", unix.SYS_CLOSE, uintptr(fd), 0, 0, 0); err != nil {
			return err
		}
	}
	runtime.KeepAlive(c)
	return nil
}

func (c *linuxCycle) sample() (float64, error) {
	start := time.Now()
	for range linuxSample / len(c.x) {
		if err := c.round(); err != nil {
			return 0, err
		}
	}
	return float64(time.Since(start).Nanoseconds()) / linuxSample, nil
}
