// Command sink receives from any number of connections without copying a byte, and prints how fast. One thread does it all:
// it waits with epoll, and takes and frees the port's own buffers. As root:
//
//	go run ./docs/examples/sink memif:/tmp/ndpip.sock &
//	ndpip-perf send --wire memif:/tmp/ndpip.sock
package main

import (
	"log"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/api"
	"ndpip/dpdk"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: sink WIRE")
	}
	host, err := api.Open(api.Config{
		Wire: os.Args[1], Server: true, Addr: netip.MustParsePrefix("10.0.0.1/24"),
		NoHuge: !dpdk.HasHugepages(), Yield: true, WorkerCPU: -1,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer host.Stop()
	release, err := api.PinThread(-1) // a cache of its own in every pool
	if err != nil {
		log.Print(err)
		return
	}
	defer release()
	log.Print(sink(host))
}

// sink ends with an error alone.
func sink(host *api.Host) error {
	listener, err := host.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	if err := host.Bind(listener, netip.AddrPortFrom(host.Addr(), 5001)); err != nil {
		return err
	}
	if err := host.Listen(listener, 64); err != nil {
		return err
	}
	ep, err := host.EpollCreate()
	if err != nil {
		return err
	}
	watch := func(fd int) error {
		return host.EpollCtl(ep, unix.EPOLL_CTL_ADD, fd, &api.EpollEvent{Events: unix.EPOLLIN, Data: uint64(fd)})
	}
	if err := watch(listener); err != nil {
		return err
	}
	var events [64]api.EpollEvent
	total, since := 0, time.Now()
	for {
		n, err := host.EpollWait(ep, events[:], 1000)
		if err != nil {
			return err
		}
		for _, e := range events[:n] {
			fd := int(e.Data)
			if fd != listener {
				total += drain(host, fd)
			} else if c, peer, err := host.Accept(listener); err == nil { // it is non-blocking as the listener is
				log.Print("connection from ", peer)
				if err := watch(c); err != nil {
					return err
				}
			}
		}
		if t := time.Since(since); t > time.Second {
			log.Printf("%.2f Gb/s", float64(total)*8/float64(t.Nanoseconds()))
			total, since = 0, time.Now()
		}
	}
}

// drain takes what has come, and closes the connection at its end.
func drain(host *api.Host, fd int) (total int) {
	var bufs [64]api.Buf
	n, err := host.Recv(fd, bufs[:])
	for i := range bufs[:n] {
		total += bufs[i].Len() // bufs[i].Bytes() is the payload, where the port has put it
	}
	_ = host.Free(fd, bufs[:n]) // they are ours: nothing to fail
	if n == 0 && err != unix.EAGAIN {
		_ = host.Close(fd)
	}
	return total
}
