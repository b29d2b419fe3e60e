// Command embed is a DPDK program with a receive loop of its own that also has a TCP stack: what comes in for the stack's
// address is handed to it, and all else is the program's, which here counts it. What the stack sends goes out of the same
// port. As root:
//
//	go run ./docs/examples/embed --no-pci --vdev=net_tap0,iface=tap0 --in-memory &
//	ip addr add 10.1.0.2/24 dev tap0 && ip link set tap0 up && curl http://10.1.0.1/
package main

import (
	"bytes"
	"fmt"
	"log"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/api"
	"ndpip/dpdk"
)

func main() {
	log.Fatal(run(os.Args[1:]))
}

// run ends with an error alone.
func run(eal []string) error {
	if _, err := dpdk.EalInit(eal); err != nil {
		return err
	}
	pool, err := dpdk.NewMempool("embed", 8191, dpdk.DataRoom, dpdk.PrivSize, -1)
	if err != nil {
		return err
	}
	port, err := dpdk.ConfigurePort(0, dpdk.PortConf{RxPool: pool})
	if err != nil {
		return err
	}
	lane, err := port.NewLane(0, 0, nil) // to receive: it says where each frame lies
	if err != nil {
		return err
	}
	if err := port.Start(); err != nil {
		return err
	}
	host, feed, err := api.OpenFeed(api.Config{
		Addr: netip.MustParsePrefix("10.1.0.1/24"), MAC: []byte{2, 0, 0, 0, 0, 1}, Yield: true, WorkerCPU: -1,
	})
	if err != nil {
		return err
	}
	listener, err := host.Net().Listen("tcp", ":80")
	if err != nil {
		return err
	}
	passed := uint64(0)
	go func() {
		log.Fatal(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // an example
			fmt.Fprintf(w, "hello %s\n", r.RemoteAddr)
		})))
	}()
	runtime.LockOSThread()
	if _, err := dpdk.RegisterLcore(-1); err != nil {
		return err
	}
	for tick := time.Now(); ; {
		n := turn(port, lane, feed, host.MAC(), &passed)
		if n == 0 {
			_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		}
		if time.Since(tick) > time.Second {
			log.Printf("%d frames were not for the stack", passed)
			tick = time.Now()
		}
	}
}

// turn moves one burst each way, and says how many frames that were.
func turn(port *dpdk.Port, lane *dpdk.Lane, feed *api.Feed, mac []byte, passed *uint64) int {
	var own, out [32]dpdk.Handle
	k := 0
	lane.Exchange(dpdk.OpFree | dpdk.OpRx)
	for _, f := range lane.Rx[:lane.NRx] {
		if to := f.Bytes(); bytes.Equal(to[:6], mac) || to[0]&1 != 0 { // to the stack, or to all (ARP)
			own[k] = f.Handle
			k++
		} else {
			lane.Release(f.Handle)
			*passed++
		}
	}
	taken := feed.Input(own[:k])
	dpdk.FreeBufs(own[taken:k]) // no room: lost, as on a wire
	n := feed.Output(out[:])
	for sent := 0; sent < n; {
		sent += port.TxBurst(0, out[sent:n])
	}
	return int(lane.NRx) + n
}
