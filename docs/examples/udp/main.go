// Command udp answers each datagram with its length, over net.PacketConn. As root:
//
//	go run ./docs/examples/udp tap:tap0 &
//	ip addr add 10.1.0.2/24 dev tap0 && ip link set tap0 up && echo hello | nc -u -w1 10.1.0.1 9000
package main

import (
	"fmt"
	"log"
	"net/netip"
	"os"

	"ndpip/api"
	"ndpip/dpdk"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: udp WIRE")
	}
	host, err := api.Open(api.Config{
		Wire: os.Args[1], Server: true, Addr: netip.MustParsePrefix("10.1.0.1/24"),
		NoHuge: !dpdk.HasHugepages(), Yield: true, WorkerCPU: -1,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer host.Stop()
	conn, err := host.Net().ListenPacket("udp", ":9000")
	if err != nil {
		log.Fatal(err)
	}
	buf := make([]byte, 2048)
	for {
		n, from, err := conn.ReadFrom(buf)
		if err != nil {
			log.Fatal(err)
		}
		if _, err := conn.WriteTo(fmt.Appendf(nil, "%d bytes\n", n), from); err != nil {
			log.Print(from, ": ", err)
		}
	}
}
