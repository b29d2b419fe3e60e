// Command http is net/http over the stack: a server, and with a second argument a client. As root:
//
//	go run ./docs/examples/http memif:/tmp/ndpip.sock &
//	go run ./docs/examples/http memif:/tmp/ndpip.sock http://10.1.0.1/
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/netip"
	"os"
	"time"

	"ndpip/api"
	"ndpip/dpdk"
)

func main() {
	if len(os.Args) < 2 || len(os.Args) > 3 {
		log.Fatal("usage: http WIRE [URL]")
	}
	server := len(os.Args) == 2
	addr := "10.1.0.2/24"
	if server {
		addr = "10.1.0.1/24"
	}
	host, err := api.Open(api.Config{
		Wire: os.Args[1], Server: server, Addr: netip.MustParsePrefix(addr),
		NoHuge: !dpdk.HasHugepages(), Yield: true, WorkerCPU: -1,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer host.Stop()
	if server {
		err = serve(host)
	} else {
		err = fetch(host, os.Args[2])
	}
	if err != nil {
		log.Print(err)
	}
}

func serve(host *api.Host) error {
	listener, err := host.Net().Listen("tcp", ":80")
	if err != nil {
		return err
	}
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "hello %s, this came over no kernel\n", r.RemoteAddr)
	})
	return (&http.Server{Handler: hello, ReadHeaderTimeout: 10 * time.Second}).Serve(listener)
}

func fetch(host *api.Host, url string) error {
	client := http.Client{Transport: &http.Transport{DialContext: host.Net().DialContext}}
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(os.Stdout, answer.Body)
	return err
}
