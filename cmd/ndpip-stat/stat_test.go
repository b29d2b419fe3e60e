package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var built struct {
	once       sync.Once
	dir        string
	perf, stat string
	err        error
}

func build(t *testing.T) {
	t.Helper()
	b := &built
	b.once.Do(func() {
		if b.dir, b.err = os.MkdirTemp("", "ndpip-stat"); b.err != nil {
			return
		}
		b.perf, b.stat = filepath.Join(b.dir, "ndpip-perf"), filepath.Join(b.dir, "ndpip-stat")
		for out, pkg := range map[string]string{b.perf: "../ndpip-perf", b.stat: "."} {
			if text, err := exec.Command("go", "build", "-o", out, pkg).CombinedOutput(); err != nil {
				b.err = err
				os.Stderr.Write(text)
				return
			}
		}
	})
	require.NoError(t, b.err)
}

func TestMain(m *testing.M) {
	status := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(status)
}

// program is an ndpip-perf that runs, with its socket.
type program struct {
	cmd     *exec.Cmd
	control string
	mu      sync.Mutex
	out     bytes.Buffer
	ended   chan struct{}
}

func (p *program) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *program) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// start runs ndpip-perf, with both outputs in one. It is killed when the test ends.
func start(t *testing.T, args ...string) *program {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &program{cmd: exec.CommandContext(ctx, built.perf, args...), control: filepath.Join(t.TempDir(), "c.sock"), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.Env = append(os.Environ(), "NDPIP_CONTROL="+p.control)
	require.NoError(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-p.ended
		if t.Failed() {
			text := p.text()
			t.Logf("%v\n%s", args, text[max(0, len(text)-1500):])
		}
	})
	return p
}

func (p *program) says(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(p.text(), text) }, 30*time.Second, 5*time.Millisecond, text)
}

func (p *program) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-p.ended:
	case <-time.After(10 * time.Second):
		t.Fatal("it does not end")
	}
}

// bytesAt is what ndpip-perf --format json says to have moved at a moment, between two of its lines.
func (p *program) bytesAt(t *testing.T, at time.Time) float64 {
	t.Helper()
	var before, after struct {
		Type  string
		Time  time.Time
		Bytes float64
	}
	found := false
	require.Eventually(t, func() bool {
		for line := range strings.Lines(p.text()) {
			last := after
			if json.Unmarshal([]byte(line), &last) != nil || last.Type != "interval" {
				continue
			}
			if last.Time.After(at) && !found {
				after, found = last, true
				return true
			}
			before = last
		}
		return false
	}, 5*time.Second, 10*time.Millisecond)
	require.False(t, before.Time.IsZero())
	share := at.Sub(before.Time).Seconds() / after.Time.Sub(before.Time).Seconds()
	return before.Bytes + share*(after.Bytes-before.Bytes)
}

// stat runs ndpip-stat.
func stat(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(built.stat, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

type socket struct {
	State         string
	Local, Remote netip.AddrPort
	SndWnd        int     `json:"snd_wnd"`
	RTT           float64 `json:"rtt_us"`
	RTO           float64 `json:"rto_us"`
	In            float64 `json:"in_bps"`
	Out           float64 `json:"out_bps"`
}

func socketsOf(t *testing.T, p *program, interval string) (all []socket) {
	t.Helper()
	for line := range strings.Lines(stat(t, p.control, "sockets", "--interval", interval, "--format", "json")) {
		var s socket
		require.NoError(t, json.Unmarshal([]byte(line), &s), line)
		all = append(all, s)
	}
	return all
}

// TestBesideTransfer looks at both ends of a transfer that runs: the goodput is that which the receiver has counted, to 2 %.
func TestBesideTransfer(t *testing.T) {
	build(t)
	wire := "memif:" + filepath.Join(t.TempDir(), "s")
	recv := start(t, "recv", "--wire", wire, "--mbufs", "4096", "--format", "json", "--interval", "0.02")
	recv.says(t, " on 10.0.0.1:5001")
	send := start(t, "send", "--wire", wire, "--mbufs", "4096", "--format", "json")
	recv.says(t, `"connections":1`)

	var v struct {
		PID     int
		Program string
		Hosts   []struct {
			At      time.Time
			Seconds float64
			In      float64 `json:"in_bps"`
			Rates   map[string]float64
			Pools   []struct{ Name string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(stat(t, recv.control, "--format", "json", "--interval", "1.5")), &v))
	require.Equal(t, recv.cmd.Process.Pid, v.PID)
	require.Equal(t, "ndpip-perf", v.Program)
	h := v.Hosts[0]
	require.InDelta(t, 1.5, h.Seconds, 0.5)
	begin := h.At.Add(-time.Duration(h.Seconds * 1e9))
	want := 8 * (recv.bytesAt(t, h.At) - recv.bytesAt(t, begin)) / h.Seconds
	t.Logf("ndpip-stat: %.3f Gb/s; ndpip-perf: %.3f Gb/s", h.In/1e9, want/1e9)
	require.InEpsilon(t, want, h.In, 0.02)
	require.Len(t, h.Pools, 3)

	to, from := socketsOf(t, recv, "0.3"), socketsOf(t, send, "0.3")
	require.Len(t, to, 2, "the listener and the connection")
	require.Len(t, from, 1)
	c := from[0]
	require.Equal(t, "ESTABLISHED", c.State)
	require.Equal(t, "10.0.0.1:5001", c.Remote.String())
	require.Positive(t, c.Out)
	require.Positive(t, c.RTT)
	require.GreaterOrEqual(t, c.RTO, c.RTT)
	for _, s := range to {
		if s.State != "LISTEN" {
			require.Equal(t, "ESTABLISHED", s.State)
			require.Equal(t, c.Local, s.Remote)
			require.Positive(t, s.In)
		}
	}

	text := stat(t, recv.control, "sockets", "--interval", "0.05")
	require.Regexp(t, `(?m)^tcp +ESTABLISHED +\d+ +\d+ +10\.0\.0\.1:5001 +10\.0\.0\.2:\d+ .* [GMk]?b/s `, text)
	require.Regexp(t, `goodput +in [\d.]+ [GM]b/s`, stat(t, recv.control, "--interval", "0.1"))
	require.Regexp(t, `10\.0\.0\.1 +net_memif0 +net_memif .* up `, stat(t, recv.control, "ports"))
	require.Regexp(t, `(?m)^10\.0\.0\.1 +rx +4096 `, stat(t, recv.control, "pools"))
	require.Regexp(t, `10\.0\.0\.2 +[0-9a-f:]{17} +known`, stat(t, recv.control, "neighbours"))
	require.Regexp(t, `rx_payload +[1-9]`, stat(t, recv.control, "counters"))
	require.Contains(t, stat(t, recv.control, "metrics"), "ndpip_rx_payload_total{host=\"10.0.0.1\"} ")
	require.Equal(t, 3, strings.Count(stat(t, recv.control, "counters", "--count", "3", "--interval", "0.01"), " rx_payload "))

	send.stop(t)
	for end := time.Now().Add(30 * time.Second); slices.ContainsFunc(socketsOf(t, recv, "0.01"), func(s socket) bool { return s.State == "ESTABLISHED" }); {
		require.True(t, time.Now().Before(end), "the connection is there although its peer has gone")
	}
	out, err := exec.Command(built.stat, send.control).CombinedOutput()
	require.Error(t, err, "%s", out)
	recv.stop(t)
	_, err = os.Stat(recv.control)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Without NDPIP_CONTROL a process is found by its number.
func TestByNumber(t *testing.T) {
	build(t)
	cmd := exec.Command(built.perf, "recv", "--wire", "memif:"+filepath.Join(t.TempDir(), "s"), "--mbufs", "512")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	defer func() {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait())
	}()
	pid := strconv.Itoa(cmd.Process.Pid)
	require.Eventually(t, func() bool { return exec.Command(built.stat, pid, "counters").Run() == nil }, 30*time.Second, 50*time.Millisecond)
	require.Regexp(t, `(?m)^ndpip-perf \(`+pid+`\): 10\.0\.0\.1/24 at .* link down`, stat(t, pid, "--interval", "0.01"))
	require.Regexp(t, `(?m)^`+pid+` +ndpip-perf +10\.0\.0\.1/24 +memif:`, stat(t, "list"))
}

func TestWrongUse(t *testing.T) {
	build(t)
	for _, c := range []struct {
		args   string
		status int
		text   string
	}{
		{"bla", 2, "bla is neither the number of a process, nor the path of a socket, nor a view: want one of summary"},
		{"--format xml", 2, "--format xml: want one of table, json"},
		{"2147483647", 1, "process 2147483647 has no socket in "},
		{"/nowhere/x.sock", 1, "no such file"},
		{"--help", 0, "ndpip-stat looks at a process"},
	} {
		cmd := exec.Command(built.stat, strings.Fields(c.args)...)
		out, _ := cmd.CombinedOutput()
		require.Equal(t, c.status, cmd.ProcessState.ExitCode(), c.args)
		require.Contains(t, string(out), c.text)
	}
}
