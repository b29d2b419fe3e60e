package main_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ndpip/cmd/internal/netns"
)

// The addresses of the two ends in these tests: the stack's, and the kernel's.
const (
	stackIP  = "10.78.0.1"
	kernelIP = "10.78.0.2"
	length   = "/24"
)

// kernelWire is a wire whose other end is this machine's kernel.
type kernelWire struct {
	t      *testing.T
	wire   string
	device string       // tap: the interface that the program makes
	prog   *netns.Space // where the program runs
	kernel *netns.Space // where the kernel's end is
}

// kernelWires runs f over a tap device and over a packet socket.
func kernelWires(t *testing.T, f func(t *testing.T, w *kernelWire)) {
	netns.Need(t)
	t.Run("tap", func(t *testing.T) {
		ns := netns.New(t)
		f(t, &kernelWire{t, "tap:ndtap", "ndtap", ns, ns})
	})
	t.Run("af_packet", func(t *testing.T) {
		prog, kernel := netns.New(t), netns.New(t)
		prog.Veth("ndport", kernel, "ndpeer", kernelIP+length)
		f(t, &kernelWire{t, "af_packet:ndport", "", prog, kernel})
	})
}

// start starts a program on the wire, and gives the kernel's end of a tap its address as soon as it is there.
func (w *kernelWire) start(stdin io.Reader, name string, args ...string) *process {
	w.t.Helper()
	p := start(w.t, w.prog, stdin, name, args...)
	if w.device != "" {
		w.kernel.Appears(w.device, startTime)
		w.kernel.Address(w.device, kernelIP+length)
	}
	return p
}

// perf starts ndpip-perf on the wire.
func (w *kernelWire) perf(verb string, args ...string) *process {
	w.t.Helper()
	perf, _ := build(w.t)
	return w.start(nil, perf, append([]string{verb, "--wire", w.wire, "--bind-ip", stackIP + length, "--mbufs", "4096"}, args...)...)
}

// socat starts the kernel's side.
func (w *kernelWire) socat(from, to string) *process {
	w.t.Helper()
	return start(w.t, w.kernel, nil, "socat", "-u", from, to)
}

func TestFileFromKernel(t *testing.T) {
	kernelWires(t, func(t *testing.T, w *kernelWire) {
		file, sum := randomFile(t, fileSize())
		copied := filepath.Join(t.TempDir(), "copy")
		recv := w.perf("recv", "--out", copied, "--sha256")
		recv.listens()
		require.Contains(t, w.kernel.Run("ping", "-c", "3", "-i", "0.05", "-W", "2", stackIP), "3 received")
		sender := w.socat("OPEN:"+file, "TCP:"+stackIP+":5001")
		sender.ends(0, 60*time.Second)
		recv.ends(0, 5*time.Second)
		require.Equal(t, sum, sumOf(t, copied))
		require.Contains(t, recv.out.String(), "sha256="+sum+"; bytes="+fmt.Sprint(fileSize())+"; peer="+kernelIP)
	})
}

func TestFileToKernel(t *testing.T) {
	kernelWires(t, func(t *testing.T, w *kernelWire) {
		file, sum := randomFile(t, fileSize())
		copied := filepath.Join(t.TempDir(), "copy")
		listener := w.socat("TCP-LISTEN:7001,reuseaddr", "CREATE:"+copied)
		send := w.perf("send", "--connect-ip", kernelIP, "--connect-port", "7001", "--file", file, "--sha256")
		send.ends(0, 60*time.Second)
		listener.ends(0, 5*time.Second)
		require.Equal(t, sum, sumOf(t, copied))
		require.Contains(t, send.out.String(), "sha256="+sum)
		require.Contains(t, send.out.String(), "sent: bytes="+fmt.Sprint(fileSize()))
	})
}

// A signal in the middle of a transfer ends the program in order, and it starts again at once.
func TestSignalInTransferWithKernel(t *testing.T) {
	kernelWires(t, func(t *testing.T, w *kernelWire) {
		for range 2 {
			recv := w.perf("recv", "--interval", "0.1")
			recv.listens()
			sender := w.socat("OPEN:/dev/zero", "TCP:"+stackIP+":5001")
			recv.says(&recv.out, "connections=1;", 10*time.Second)
			recv.terminate()
			<-sender.ended // its connection was reset, or it read the end
		}
		listener := w.socat("TCP-LISTEN:7002,reuseaddr,fork", "OPEN:/dev/null")
		for range 2 {
			send := w.perf("send", "--connect-ip", kernelIP, "--connect-port", "7002", "--interval", "0.1", "--connections", "3")
			send.says(&send.out, "connections=3;", startTime)
			send.terminate()
			require.Contains(t, send.out.String(), "sent: bytes=")
		}
		listener.cmd.Process.Kill()
	})
}

// A sender whose receiver does not listen, or is no host at all, tries again and then says so.
func TestNoReceiverOnKernel(t *testing.T) {
	kernelWires(t, func(t *testing.T, w *kernelWire) {
		begun := time.Now()
		send := w.perf("send", "--connect-ip", kernelIP, "--connect-port", "9", "--connect-timeout", "4")
		send.ends(1, startTime)
		require.Greater(t, time.Since(begun), 4*time.Second)
		require.Regexp(t, `^ndpip-perf send: 0 of 1 connections to 10\.78\.0\.2:9 are up after 4s, the others: connection refused; .*\n$`, notes(send))
	})
}

// A receiver that comes later is found.
func TestLateReceiverOnKernel(t *testing.T) {
	kernelWires(t, func(t *testing.T, w *kernelWire) {
		file, sum := randomFile(t, 1<<20)
		copied := filepath.Join(t.TempDir(), "copy")
		send := w.perf("send", "--connect-ip", kernelIP, "--connect-port", "7001", "--file", file)
		time.Sleep(1500 * time.Millisecond)
		listener := w.socat("TCP-LISTEN:7001,reuseaddr", "CREATE:"+copied)
		send.ends(0, 20*time.Second)
		listener.ends(0, 5*time.Second)
		require.Equal(t, sum, sumOf(t, copied))
	})
}

// ndpip-cat and the kernel exchange files both ways at the same time, in both roles.
func TestCatAndKernel(t *testing.T) {
	_, cat := build(t)
	kernelWires(t, func(t *testing.T, w *kernelWire) {
		ours, ourSum := randomFile(t, fileSize()/8)
		theirs, theirSum := randomFile(t, fileSize()/8+1)
		exchange := func(args []string, socatAddr string, listens bool) {
			in, err := os.Open(ours)
			require.NoError(t, err)
			defer in.Close()
			copied := filepath.Join(t.TempDir(), "copy")
			peerScript := "socat -t 10 - " + socatAddr + " <" + theirs + " >" + copied
			var peer *process
			if !listens {
				peer = start(t, w.kernel, nil, "sh", "-c", peerScript)
			}
			p := w.start(in, cat, append([]string{"--wire", w.wire, "--bind-ip", stackIP + length}, args...)...)
			if listens {
				peer = start(t, w.kernel, nil, "sh", "-c", peerScript)
			}
			p.ends(0, 40*time.Second)
			peer.ends(0, 10*time.Second)
			require.Equal(t, ourSum, sumOf(t, copied))
			require.Equal(t, theirSum, sumText(p.out.String()))
		}
		exchange([]string{"listen", "7003"}, "TCP:"+stackIP+":7003,retry=100,interval=0.1", true)
		exchange([]string{"connect", kernelIP + ":7004"}, "TCP-LISTEN:7004,reuseaddr", false)
	})
}

// ndpip-cat -k takes one connection after the other until a signal.
func TestCatKeepsListeningToKernel(t *testing.T) {
	_, cat := build(t)
	kernelWires(t, func(t *testing.T, w *kernelWire) {
		p := w.start(strings.NewReader(""), cat, "--wire", w.wire, "-k", "listen", stackIP+":7005")
		for _, word := range []string{"one", "two", "three"} {
			w.kernel.Run("sh", "-c", "echo "+word+" | socat -u - TCP:"+stackIP+":7005,retry=100,interval=0.1")
			p.says(&p.out, word+"\n", 5*time.Second)
		}
		p.terminate()
		require.Equal(t, "one\ntwo\nthree\n", p.out.String())
	})
}

// The machine's faults are one line and status 1.
func TestEnvironmentFaults(t *testing.T) {
	perf, cat := build(t)
	for name, args := range map[string][]string{
		"no interface": {"recv", "--wire", "af_packet:ndnone", "--bind-ip", "10.0.0.1"},
		"no port":      {"recv", "--no-huge", "-m", "64", "--no-pci", "--vdev=net_null0", "--file-prefix=ndnoport", "--", "--bind-ip", "10.0.0.1", "--iface", "7"},
		"no directory": {"recv", "--wire", "memif:/no/such/directory/x.sock"},
		"no device":    {"recv", "--wire", "pci:0000:ff:1f.7", "--bind-ip", "10.0.0.1"},
		"wrong EAL":    {"recv", "--no-such-eal-option", "--", "--bind-ip", "10.0.0.1"},
		"no such CPU":  {"recv", "--wire", "null", "--bind-ip", "10.0.0.1", "--cpu", "4000"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, nil, nil, perf, args...)
			p.ends(1, startTime)
			require.Regexp(t, `^ndpip-perf recv: .{20,}\n$`, notes(p))
		})
	}
	p := start(t, nil, nil, cat, "--wire", "af_packet:ndnone", "listen", "10.0.0.1:80")
	p.ends(1, startTime)
	require.Regexp(t, `^ndpip-cat: .{20,}\n$`, notes(p))
}

// notes is a program's standard error without its remarks on the machine.
func notes(p *process) string {
	var kept []string
	for _, line := range strings.SplitAfter(p.err.String(), "\n") {
		if !strings.HasPrefix(line, "note: ") && !strings.HasPrefix(line, "checksums: ") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}
