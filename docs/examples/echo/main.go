// Command echo sends back what it gets, over package net's interfaces. As root:
//
//	go run ./docs/examples/echo tap:tap0 &
//	ip addr add 10.1.0.2/24 dev tap0 && ip link set tap0 up && nc 10.1.0.1 7
package main

import (
	"io"
	"log"
	"net/netip"
	"os"

	"ndpip/api"
	"ndpip/dpdk"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: echo WIRE")
	}
	host, err := api.Open(api.Config{
		Wire: os.Args[1], Server: true, Addr: netip.MustParsePrefix("10.1.0.1/24"),
		NoHuge: !dpdk.HasHugepages(), Yield: true, WorkerCPU: -1,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer host.Stop()
	listener, err := host.Net().Listen("tcp", ":7")
	if err != nil {
		log.Fatal(err)
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go func() {
			defer conn.Close()
			n, err := io.Copy(conn, conn)
			log.Printf("%v: %d bytes, %v", conn.RemoteAddr(), n, err)
		}()
	}
}
