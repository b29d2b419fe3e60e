// Command example has go-dpdk (github.com/yerden/go-dpdk) start DPDK, make the pool and set up the port, and then puts ndpip's
// stack on a queue of it. What passes between the two is plain: the port's number, and the pool's address.
//
// It is a module of its own, so that ndpip does not depend on go-dpdk. Here, with the version of go-dpdk that fits your DPDK:
//
//	go get github.com/yerden/go-dpdk@VERSION && go mod tidy && go run . --no-pci --vdev=net_tap0,iface=tap0
package main

import (
	"io"
	"log"
	"net/netip"
	"os"
	"unsafe"

	"github.com/yerden/go-dpdk/eal"
	"github.com/yerden/go-dpdk/ethdev"
	"github.com/yerden/go-dpdk/mempool"

	"ndpip/api"
	"ndpip/dpdk"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	if _, err := eal.Init(os.Args); err != nil {
		return err
	}
	pool, err := mempool.CreateMbufPool("pool", 8191, dpdk.DataRoom)
	if err != nil {
		return err
	}
	theirs, err := ethdev.GetPortByName("net_tap0")
	if err != nil {
		return err
	}
	if err := theirs.DevConfigure(1, 1); err != nil {
		return err
	}
	if err := theirs.RxqSetup(0, 512, pool); err != nil {
		return err
	}
	if err := theirs.TxqSetup(0, 512); err != nil {
		return err
	}
	if err := theirs.Start(); err != nil {
		return err
	}

	ours, err := dpdk.AttachPort(uint16(theirs))
	if err != nil {
		return err
	}
	host, err := api.OpenLink(
		api.Config{Addr: netip.MustParsePrefix("10.1.0.1/24"), MAC: []byte{2, 0, 0, 0, 0, 1}, Yield: true, WorkerCPU: -1},
		api.Link{Port: ours, Pool: dpdk.AttachMempool(unsafe.Pointer(pool))},
	)
	if err != nil {
		return err
	}
	defer host.Stop()
	listener, err := host.Net().Listen("tcp", ":7")
	if err != nil {
		return err
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer conn.Close()
			_, _ = io.Copy(conn, conn)
		}()
	}
}
