package api

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ndpip/dpdk"
)

// DPDK can be started once in a process: what has to do with that runs in processes of its own, as parts of this binary.
const partEnv = "NDPIP_API_TEST_PART"

func TestMain(m *testing.M) {
	if name := os.Getenv(partEnv); name != "" {
		if err := parts[name](); err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
		fmt.Println("done")
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var parts = map[string]func() error{
	"own": partOwn, "keep": partKeep, "attach": partAttach, "bad arguments": partBadArguments, "memif": partMemif,
}

// part runs a part. That it ends with "done" shows that nothing has ended the process before.
func part(t *testing.T, name string) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), partEnv+"="+name)
	timer := time.AfterFunc(60*time.Second, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "done") {
		t.Errorf("%v\n%s", err, out)
	}
}

func nullConfig(n int) Config {
	return Config{Wire: "null", Addr: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(n), 1}), 24), WorkerCPU: -1,
		NoHuge: !dpdk.HasHugepages(), Mbufs: 512, Yield: true, EAL: []string{"-m", "128"}}
}

// wantEnv checks that an error is an EnvError and says something.
func wantEnv(err error, text string) error {
	var e *EnvError
	if !errors.As(err, &e) || !strings.Contains(err.Error(), text) {
		return fmt.Errorf("want an EnvError with %q, have %T: %v", text, err, err)
	}
	return nil
}

// partOwn starts DPDK by Open, opens a second host beside the first, and finds DPDK gone with the last of them.
func partOwn() error {
	a, err := Open(nullConfig(1))
	if err != nil {
		return err
	}
	b, err := Open(nullConfig(2))
	if err != nil {
		return err
	}
	if err := a.Stop(); err != nil {
		return err
	}
	if !dpdk.EalInitialized() {
		return errors.New("DPDK has gone with the first host, and the second is open")
	}
	if b.Stats().InUse < 0 || b.Addr().String() != "10.0.2.1" {
		return errors.New("the second host has suffered")
	}
	if a, err = Open(nullConfig(3)); err != nil {
		return err
	}
	if err := errors.Join(a.Stop(), b.Stop(), b.Stop()); err != nil {
		return err
	}
	if dpdk.EalInitialized() {
		return errors.New("DPDK runs on after the last host")
	}
	_, err = Open(nullConfig(4))
	return wantEnv(err, "second time")
}

// partKeep opens, stops and opens again, with DPDK kept.
func partKeep() error {
	for i := range 3 {
		c := nullConfig(i)
		c.KeepEAL = true
		h, err := Open(c)
		if err != nil {
			return err
		}
		if err := h.Stop(); err != nil {
			return err
		}
	}
	return nil
}

// partAttach opens hosts in a program that has started DPDK itself, and leaves that to it.
func partAttach() error {
	if _, err := dpdk.EalInit(dpdk.DefaultArgs(!dpdk.HasHugepages(), 128, "ndpip-api-attach")); err != nil {
		return err
	}
	for range 2 {
		a, b, err := dpdk.RingPair("attach", 256)
		if err != nil {
			return err
		}
		var hosts []*Host
		for i, id := range []uint16{a, b} {
			c := nullConfig(0)
			c.Wire, c.EAL, c.Port = "", nil, int(id)
			c.MAC = net.HardwareAddr{2, 0, 0, 0, 0, byte(i + 1)}
			c.Addr = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 24)
			h, err := Open(c)
			if err != nil {
				return err
			}
			hosts = append(hosts, h)
		}
		if err := talk(hosts[0], hosts[1]); err != nil {
			return err
		}
		c := nullConfig(9) // a wire that DPDK was not started with
		c.EAL = nil
		h, err := Open(c)
		if err != nil {
			return err
		}
		if err := errors.Join(h.Stop(), hosts[0].Stop(), hosts[1].Stop()); err != nil {
			return err
		}
	}
	c := nullConfig(1)
	c.Wire, c.Port = "", 77
	if _, err := Open(c); wantEnv(err, "port") != nil {
		return wantEnv(err, "port")
	}
	if !dpdk.EalInitialized() {
		return errors.New("a host has cleaned up an EAL that is the program's")
	}
	return dpdk.EalCleanup()
}

// talk sends a line from one host to the other and back.
func talk(a, b *Host) error {
	l, err := b.Net().Listen("tcp", b.Addr().String()+":7")
	if err != nil {
		return err
	}
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			p := make([]byte, 5)
			n, _ := c.Read(p)
			_, err = c.Write(p[:n])
			c.Close()
		}
		done <- err
	}()
	c, err := a.Net().DialTimeout("tcp", b.Addr().String()+":7", 20*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write([]byte("hello")); err != nil {
		return err
	}
	p := make([]byte, 5)
	if n, err := c.Read(p); string(p[:n]) != "hello" {
		return fmt.Errorf("read %q, %v", p[:n], err)
	}
	return <-done
}

// partBadArguments has DPDK refuse to start.
func partBadArguments() error {
	c := nullConfig(1)
	c.EAL = []string{"--no-such-option"}
	if _, err := Open(c); wantEnv(err, "starting DPDK") != nil {
		return wantEnv(err, "starting DPDK")
	}
	_, err := Open(nullConfig(1)) // and it cannot be tried again
	var e *EnvError
	if err != nil && !errors.As(err, &e) {
		return err
	}
	return nil
}

// partMemif has both ends of a memif in one process: the second is added to a DPDK that runs.
func partMemif() error {
	dir, err := os.MkdirTemp("", "ndpip-api")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := "memif:" + filepath.Join(dir, "s")
	var hosts []*Host
	for i := range 2 {
		c := nullConfig(0)
		c.Wire, c.Server = path, i == 0
		c.Addr = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i + 1)}), 24)
		c.MAC = net.HardwareAddr{2, 0, 0, 0, 0, byte(i + 1)}
		h, err := Open(c)
		if err != nil {
			return err
		}
		hosts = append(hosts, h)
	}
	for end := time.Now().Add(20 * time.Second); !hosts[0].LinkUp() || !hosts[1].LinkUp(); {
		if time.Now().After(end) {
			return errors.New("the link does not come up")
		}
		time.Sleep(time.Millisecond)
	}
	if err := talk(hosts[0], hosts[1]); err != nil {
		return err
	}
	return errors.Join(hosts[1].Stop(), hosts[0].Stop())
}

// TestOpen is A5: DPDK started by Open, kept, attached to, and not started.
func TestOpen(t *testing.T) {
	for name := range parts {
		t.Run(name, func(t *testing.T) { part(t, name) })
	}
}

// TestConfigErrors has a wrong Config named.
func TestConfigErrors(t *testing.T) {
	good := Config{Wire: "null", Addr: netip.MustParsePrefix("10.0.0.1/24")}
	for _, c := range []struct {
		field string
		spoil func(c *Config)
	}{
		{"Addr", func(c *Config) { c.Addr = netip.Prefix{} }},
		{"Addr", func(c *Config) { c.Addr = netip.MustParsePrefix("fe80::1/64") }},
		{"Gateway", func(c *Config) { c.Gateway = netip.IPv6Unspecified() }},
		{"MAC", func(c *Config) { c.MAC = net.HardwareAddr{1, 2, 3} }},
		{"MAC", func(c *Config) { c.MAC = net.HardwareAddr{1, 0, 0, 0, 0, 0} }},
		{"Burst", func(c *Config) { c.Burst = 1000 }},
		{"Mbufs", func(c *Config) { c.Mbufs = 10 }},
		{"MTU", func(c *Config) { c.MTU = 100 }},
		{"MSS", func(c *Config) { c.MSS = 10 }},
		{"WinScale", func(c *Config) { c.WinScale = 15 }},
		{"RcvBuf, SndBuf", func(c *Config) { c.RcvBuf = -1 }},
		{"Port", func(c *Config) { c.Port = 1 << 16 }},
		{"WorkerCPU", func(c *Config) { c.WorkerCPU = 100000 }},
		{"IdleSleep", func(c *Config) { c.IdleSleep = -1 }},
		{"WorkerSends", func(c *Config) { c.WorkerSends, c.Inline = true, true }},
		{"Faults", func(c *Config) { c.Faults.Loss = 1.5 }},
		{"Faults", func(c *Config) { c.Faults.Reorder = math.NaN() }},
		{"Neighbours", func(c *Config) { c.Neighbours = map[netip.Addr]net.HardwareAddr{good.Addr.Addr(): nil} }},
		{"Wire", func(c *Config) { c.Wire = "carrier pigeon" }},
	} {
		cfg := good
		c.spoil(&cfg)
		_, err := Open(cfg)
		var e *ConfigError
		if !errors.As(err, &e) || e.Field != c.field {
			t.Errorf("want a ConfigError of %s, have %v", c.field, err)
		}
	}
}

// TestRingPair has two hosts with workers on a net_ring pair: the receiver gets the sender's very buffers.
func TestRingPair(t *testing.T) {
	a, b := ringHosts(t, Config{Yield: true})
	if err := talk(a, b); err != nil {
		t.Fatal(err)
	}
	ca, cb := dial(t, a, b, 0)
	want := random(2, 1<<20)
	go func() {
		_, _ = a.Write(ca, want)
		_ = a.Shutdown(ca, unix.SHUT_WR)
	}()
	var got []byte
	for p := make([]byte, 20000); ; {
		n, err := b.Read(cb, p)
		ok(t, err)
		if n == 0 {
			break
		}
		got = append(got, p[:n]...)
	}
	if string(got) != string(want) {
		t.Errorf("%d bytes of %d arrived, or others", len(got), len(want))
	}
}
