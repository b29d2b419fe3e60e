package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/cmd/internal/hosts"
)

// wire joins the two ends of a run. Which one it is follows from the hosts, or on this machine from the stacks: memory
// between two ndpip, a veth pair between two namespaces of the kernel's, a tap device between ndpip and the kernel.
type wire struct {
	name   string
	tx, rx end
	tap    string // the device that ndpip makes, and that the kernel's end is to be set up on
	kernel string // the kernel's address on it
	spaces []string
}

const (
	txAddr = "10.3.0.1"
	rxAddr = "10.3.0.2"
	device = "exp0"
	// headers is what IPv4 and TCP headers without options add to a segment.
	headers = 40
)

// spacePrefix begins the names of the namespaces; the process's number follows, so that those of a killed run are known.
const spacePrefix = "ndpip-exp-"

// newWire says what a run of the cell stands on; up makes it.
func (l *lab) newWire(c cell) *wire {
	p := &l.st.about.Plan
	l.wires++
	w := &wire{}
	if p.Hosts != nil {
		w.name = wireName(p.Hosts, c)
		w.tx = hostEnd(p, c.Tx, c.Rx, &p.Hosts.Sender, &p.Hosts.Receiver)
		w.rx = hostEnd(p, c.Rx, c.Tx, &p.Hosts.Receiver, &p.Hosts.Sender)
		return w
	}
	use := cpus()
	w.tx = end{program: l.program(c.Tx), cpu: use[0], worker: anyWorker, mbufs: p.Mbufs, bidir: p.Bidir, length: "/24", checksum: "auto"}
	w.rx = w.tx
	w.rx.program, w.rx.cpu = l.program(c.Rx), use[min(1, len(use)-1)]
	if c.Tx == "ndpip" && c.Rx == "ndpip" {
		w.name = "memif"
		w.tx.wire = "memif:" + filepath.Join(l.tmp, fmt.Sprintf("%d.sock", l.wires))
		w.tx.checksum = "off" // the wire is memory, and the paper's cards did the checksums
		w.rx.wire, w.rx.checksum = w.tx.wire, w.tx.checksum
		return w
	}
	w.tx.own, w.tx.peer, w.rx.own, w.rx.peer = txAddr, rxAddr, rxAddr, txAddr
	name := fmt.Sprintf("%s%d-%d", spacePrefix, os.Getpid(), l.wires)
	if c.Tx != "ndpip" && c.Rx != "ndpip" {
		w.name = "veth"
		w.spaces = []string{name + "a", name + "b"}
		w.tx.ns, w.rx.ns = w.spaces[0], w.spaces[1]
		return w
	}
	w.name, w.tap = "tap", device
	w.spaces = []string{name}
	w.tx.ns, w.rx.ns = name, name
	w.tx.wire, w.rx.wire = "tap:"+device, "tap:"+device
	w.kernel = txAddr
	if c.Rx != "ndpip" {
		w.kernel = rxAddr
	}
	return w
}

// up makes what is to be there before the programs start.
func (w *wire) up(ctx context.Context, c cell) error {
	switch w.name {
	case "veth":
		return w.veth(ctx, c)
	case "tap":
		return w.space(ctx, w.spaces[0])
	}
	return nil
}

// hostEnd is the end of a host that runs a stack, with the other host and its stack as the peer.
func hostEnd(p *plan, stack, otherStack string, h, other *hosts.Host) end {
	e := end{
		place: place{ssh: p.SSH, host: h.SSH}, wire: h.Port(), checksum: h.Checksum, own: h.LinuxAddress, peer: other.LinuxAddress,
		cpu: h.Lcores[0], worker: noWorker, mbufs: p.Mbufs, bidir: p.Bidir,
	}
	if path := p.Programs[stack]; path != "" {
		e.program = path
	} else {
		e.program = h.Program(filepath.Base(stacks[stack].source()))
	}
	if len(h.Lcores) > 1 {
		e.worker = h.Lcores[1]
	}
	// All but the kernel's stack drive the port.
	if stack != "linux" {
		e.own, e.length, _ = strings.Cut(h.Address, "/")
		e.length = "/" + e.length
	}
	if otherStack != "linux" {
		e.peer, _, _ = strings.Cut(other.Address, "/")
		e.peerMAC = other.MAC
	}
	return e
}

// wireName is the kind of the wire, at both ends if they differ.
func wireName(p *hosts.Pair, c cell) string {
	kind := func(stack string, h *hosts.Host) string {
		if stack == "linux" {
			return "kernel"
		}
		k, _, _ := strings.Cut(h.Port(), ":")
		return k
	}
	tx, rx := kind(c.Tx, &p.Sender), kind(c.Rx, &p.Receiver)
	if tx != rx {
		return tx + ", " + rx
	}
	return tx
}

// space makes a namespace. Timestamps are off, whose 12 bytes would come off each segment, as ndpip does without them.
func (w *wire) space(ctx context.Context, name string) error {
	return steps(ctx,
		[]string{"ip", "netns", "add", name},
		[]string{"ip", "-n", name, "link", "set", "lo", "up"},
		[]string{"ip", "netns", "exec", name, "sh", "-c",
			"echo 0 >/proc/sys/net/ipv4/tcp_timestamps; echo 16384 >/proc/sys/net/core/somaxconn; " +
				"echo 16384 >/proc/sys/net/ipv4/tcp_max_syn_backlog; echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6 || true"})
}

// veth joins two namespaces. The MTU is what makes a segment of the MSS the largest.
func (w *wire) veth(ctx context.Context, c cell) error {
	for _, ns := range w.spaces {
		if err := w.space(ctx, ns); err != nil {
			return err
		}
	}
	if err := steps(ctx, []string{"ip", "link", "add", device, "netns", w.tx.ns, "type", "veth", "peer", "name", device, "netns", w.rx.ns}); err != nil {
		return err
	}
	for ns, addr := range map[string]string{w.tx.ns: txAddr, w.rx.ns: rxAddr} {
		if err := plain(ctx, ns, addr, c.MSS+headers); err != nil {
			return err
		}
	}
	return nil
}

// plain sets the kernel's end of a device up so that it sends one segment per buffer, without offloads, as ndpip does.
func plain(ctx context.Context, ns, addr string, mtu int) error {
	return steps(ctx,
		[]string{"ip", "netns", "exec", ns, "ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off"},
		[]string{"ip", "-n", ns, "link", "set", device, "mtu", strconv.Itoa(mtu), "gso_max_segs", "1"},
		[]string{"ip", "-n", ns, "addr", "replace", addr + "/24", "dev", device},
		[]string{"ip", "-n", ns, "link", "set", device, "up"})
}

// started sets up the kernel's end of the tap device that ndpip makes when it starts. For its segments the MSS that ndpip
// announces counts, so that the MTU is left alone.
func (w *wire) started(ctx context.Context, p *process) error {
	if w.tap == "" {
		return nil
	}
	const within, mtu = 20 * time.Second, 1500
	for deadline := time.Now().Add(within); ; {
		if exec.CommandContext(ctx, "ip", "-n", w.spaces[0], "link", "show", w.tap).Run() == nil {
			// A window's worth of segments has room in the device's queue: what overflows there is lost, and neither end is
			// made for losses.
			if err := steps(ctx, []string{"ip", "-n", w.spaces[0], "link", "set", w.tap, "txqueuelen", "20000"}); err != nil {
				return err
			}
			return plain(ctx, w.spaces[0], w.kernel, mtu)
		}
		select {
		case <-p.done:
			return errors.Join(errors.New("it ended before its tap device was there"), p.fault())
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("no tap device %s after %v%s", w.tap, within, p.last())
		}
	}
}

func (w *wire) remove() {
	for _, ns := range w.spaces {
		_ = exec.Command("ip", "netns", "delete", ns).Run()
	}
}

// removeStale takes down the namespaces of runs that were killed.
func removeStale() {
	all, _ := filepath.Glob("/var/run/netns/" + spacePrefix + "*")
	for _, path := range all {
		name := filepath.Base(path)
		digits, _, _ := strings.Cut(strings.TrimPrefix(name, spacePrefix), "-")
		if pid, err := strconv.Atoi(digits); err == nil && pid != os.Getpid() && unix.Kill(pid, 0) == unix.ESRCH {
			_ = exec.Command("ip", "netns", "delete", name).Run()
		}
	}
}

// steps runs commands one after the other.
func steps(ctx context.Context, all ...[]string) error {
	for _, argv := range all {
		out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s: %w: %s", strings.Join(argv, " "), err, strings.Join(strings.Fields(string(out)), " "))
		}
	}
	return nil
}
