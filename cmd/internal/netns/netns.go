// Package netns gives a test network namespaces of its own, so that it can talk to this machine's kernel without
// touching the machine's network. Names are unique, and everything is taken down when the test ends.
package netns

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Space is one network namespace.
type Space struct {
	Name string
	t    testing.TB
}

var made atomic.Uint32

// Need skips the test where namespaces cannot be made: only root may.
func Need(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("network namespaces need the program ip (package iproute2)")
	}
}

// New makes a namespace with its loopback up and without IPv6, whose own traffic would only disturb. The test is
// skipped where that cannot be.
func New(t testing.TB) *Space {
	t.Helper()
	Need(t)
	s := &Space{fmt.Sprintf("ndpip-%d-%d", os.Getpid(), made.Add(1)), t}
	run(t, "ip", "netns", "add", s.Name)
	t.Cleanup(func() {
		if out, err := exec.Command("ip", "netns", "delete", s.Name).CombinedOutput(); err != nil {
			t.Errorf("ip netns delete %s: %v: %s", s.Name, err, out)
		}
	})
	s.Run("sh", "-c", "echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6 && echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6 || true")
	s.Run("ip", "link", "set", "lo", "up")
	return s
}

// Veth joins two namespaces by a pair of interfaces. The end called port in s is for a program and has no address; the
// end called peer in to is the kernel's and has addr (with prefix length). Both are up.
//
// The kernel is told to make no use of offloads on its end: a packet socket at the other end would see frames without
// checksums, and larger than the MTU. And frames for the port all go through one CPU's backlog (RPS): otherwise those
// of one connection overtake each other, since the sending program and the arrival of an acknowledgement send them
// from different CPUs. Links that this stack is made for do not reorder.
func (s *Space) Veth(port string, to *Space, peer, addr string) {
	s.t.Helper()
	run(s.t, "ip", "link", "add", port, "netns", s.Name, "type", "veth", "peer", "name", peer, "netns", to.Name)
	to.Run("ethtool", "-K", peer, "tx", "off", "tso", "off", "gso", "off", "gro", "off")
	s.Run("sh", "-c", "echo 1 >/sys/class/net/"+port+"/queues/rx-0/rps_cpus")
	s.Run("ip", "link", "set", port, "up")
	to.Address(peer, addr)
}

// Address gives the kernel's interface an address and brings it up.
func (s *Space) Address(name, addr string) {
	s.t.Helper()
	s.Run("ip", "addr", "add", addr, "dev", name)
	s.Run("ip", "link", "set", name, "up")
}

// Appears waits until an interface called name is there, as after a program has been told to make it.
func (s *Space) Appears(name string, within time.Duration) {
	s.t.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(10 * time.Millisecond) {
		err := exec.Command("ip", "-n", s.Name, "link", "show", name).Run()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("no interface %s in %s after %v", name, s.Name, within)
		}
	}
}

// Command is a program that runs in the namespace. It is killed when ctx ends.
func (s *Space) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", s.Name, name}, args...)...)
}

// Run runs a program in the namespace and returns what it prints; the test fails when the program does.
func (s *Space) Run(name string, args ...string) string {
	s.t.Helper()
	return run(s.t, "ip", append([]string{"netns", "exec", s.Name, name}, args...)...)
}

// patience is how long one command may take.
const patience = 30 * time.Second

func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second // its children may hold the pipe
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
