package peers

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"ndpip/cmd/internal/netns"
)

// much is more than all buffers on the way hold.
const much = 64 << 20

// TestPeersStopped has peers that do nothing for 10 s in the middle of a transfer, and then go on. The window closes, and
// no byte is lost.
func TestPeersStopped(t *testing.T) {
	t.Parallel()
	overWires(t, func(r *rig) {
		sum := noiseSum(much)

		stop := func(p *process, copied string) {
			for end := time.Now().Add(20 * time.Second); sizeOf(copied) < 1<<20; time.Sleep(time.Millisecond) {
				require.True(r.t, time.Now().Before(end), "the transfer does not begin")
			}
			r.signal(p, syscall.SIGSTOP)
		}

		// Who receives is stopped, as client and as server.
		copied := filepath.Join(r.t.TempDir(), "copy")
		curl := start(r.t, r.kernel, nil, "curl", "-sSf", "-o", copied, fmt.Sprintf("http://%s/bytes/%d", stackIP, much))
		stop(curl, copied)
		served := filepath.Join(r.t.TempDir(), "copy")
		socat := start(r.t, r.kernel, nil, "socat", "-u", "TCP-LISTEN:7001,reuseaddr", "CREATE:"+served)
		r.listening(7001)
		r.must(order{Do: "dial", Name: "stopped", To: kernelAt(7001)})
		sent := r.send(order{Do: "send", Name: "stopped", N: much})
		stop(socat, served)
		time.Sleep(200 * time.Millisecond) // what they were at when the signal came is over
		before := sizeOf(copied) + sizeOf(served)
		require.Less(r.t, before, int64(2*much), "it was over too soon")

		// And the stack does not read, while the kernel sends. (Not much: for what may be lost when the window opens see
		// TestPeersLink.)
		const size = 1 << 20
		file := noiseFile(r.t, size)
		nc := start(r.t, r.kernel, nil, "bash", "-c", fmt.Sprintf("nc -N %s %d <%s", stackIP, slowPort, file))

		time.Sleep(slowness)
		require.Equal(r.t, before, sizeOf(copied)+sizeOf(served), "they were not stopped")
		r.signal(curl, syscall.SIGCONT)
		r.signal(socat, syscall.SIGCONT)
		curl.ends(30 * time.Second)
		a := r.await(sent)
		require.Empty(r.t, a.Err)
		require.Equal(r.t, sum, a.Text)
		r.must(order{Do: "close", Name: "stopped"})
		socat.ends(10 * time.Second)
		for _, name := range []string{copied, served} {
			require.Equal(r.t, sum+"  -\n", r.shell(r.t, "sha256sum <%s", name))
		}
		require.Equal(r.t, fmt.Sprintf("%s %d\n", noiseSum(size), size), nc.ends(patience))
		r.quiet()
	})
}

func sizeOf(name string) int64 {
	info, err := os.Stat(name)
	if err != nil {
		return 0
	}
	return info.Size()
}

// signal sends a signal to a program with all that it has started.
func (r *rig) signal(p *process, s syscall.Signal) {
	r.t.Helper()
	require.NoError(r.t, syscall.Kill(-p.cmd.Process.Pid, s))
}

// TestPeersKilled kills programs that are connected: their kernel sends a FIN, or an RST when they have not read all.
func TestPeersKilled(t *testing.T) {
	overWires(t, func(r *rig) {
		silence, talk, err := os.Pipe()
		require.NoError(r.t, err)
		defer silence.Close()
		defer talk.Close()

		// Clients.
		for range 3 {
			p := start(r.t, r.kernel, silence, "socat", "-", "TCP:"+stackAt(echoPort))
			r.open(echoPort, 1)
			r.signal(p, syscall.SIGKILL)
			r.open(echoPort, 0)
		}
		// One in the middle of a download.
		p := start(r.t, r.kernel, nil, "curl", "-sSf", "-o", "/dev/null", "--limit-rate", "1M", fmt.Sprintf("http://%s/bytes/%d", stackIP, much))
		time.Sleep(300 * time.Millisecond)
		r.signal(p, syscall.SIGKILL)

		// Servers: one that has read all, one that has not, and one that somebody is sending to.
		serve := func(port int, name string) *process {
			p := start(r.t, r.kernel, silence, "nc", "-l", fmt.Sprint(port))
			r.listening(port)
			r.must(order{Do: "dial", Name: name, To: kernelAt(port)})
			time.Sleep(200 * time.Millisecond) // for it to accept: what nobody has accepted is reset
			return p
		}
		p = serve(7001, "idle")
		received := r.send(order{Do: "receive", Name: "idle"})
		r.signal(p, syscall.SIGKILL)
		require.Equal(r.t, "", r.await(received).Err, "the end of the stream")

		p = serve(7002, "unread")
		r.signal(p, syscall.SIGSTOP)
		r.must(order{Do: "send", Name: "unread", N: 1000})
		received = r.send(order{Do: "receive", Name: "unread"})
		time.Sleep(100 * time.Millisecond)
		r.signal(p, syscall.SIGKILL)
		require.Contains(r.t, r.await(received).Err, "connection reset by peer")

		p = serve(7003, "sending")
		sent := r.send(order{Do: "send", Name: "sending", N: 1 << 30})
		time.Sleep(100 * time.Millisecond)
		r.signal(p, syscall.SIGKILL)
		a := r.await(sent)
		require.True(r.t, strings.Contains(a.Err, "connection reset by peer") || strings.Contains(a.Err, "broken pipe"), "%+v", a)

		for _, name := range []string{"idle", "unread", "sending"} {
			r.must(order{Do: "close", Name: name})
		}
		r.quiet()
	})
}

// TestPeersLink takes the link away for a while, and gives the kernel's interface another MAC, while both sides send and
// while nobody does. What the kernel sends meanwhile is one segment at a time: without SACK, and to a receiver without a
// reordering buffer, Linux takes many timeouts, each twice as long as the last, to send a whole window again.
func TestPeersLink(t *testing.T) {
	t.Parallel()
	overWires(t, func(r *rig) {
		k := startChild(r.t, r.kernel, childConfig{Addr: kernelIP + length})
		k.ready()
		downUp := func(ns *netns.Space, name string) {
			ns.Run("ip", "link", "set", name, "down")
			time.Sleep(time.Second)
			ns.Run("ip", "link", "set", name, "up")
		}
		for _, c := range []struct {
			name  string
			wires string
			do    func()
		}{
			{"the kernel's end goes down and up", "tap af_packet af_xdp", func() { downUp(r.kernel, r.peer) }},
			{"the own end goes down and up", "af_packet af_xdp", func() { downUp(r.prog, r.port) }},
			{"the kernel's MAC changes", "tap af_packet af_xdp", func() {
				r.kernel.Run("ip", "link", "set", r.peer, "address", "02:00:00:00:77:01")
			}},
			{"the kernel's MAC changes, and it says so", "tap af_packet af_xdp", func() {
				r.kernel.Run("sh", "-c", "echo 1 >/proc/sys/net/ipv4/conf/"+r.peer+"/arp_notify")
				r.kernel.Run("ip", "link", "set", r.peer, "address", "02:00:00:00:77:02")
			}},
		} {
			if !strings.Contains(c.wires, r.wire) {
				continue // a tap has one end
			}
			r.t.Run(c.name, func(t *testing.T) {
				bulk, idle := t.Name()+" bulk", t.Name()+" idle"
				r.must(order{Do: "dial", Name: bulk, To: kernelAt(sumPort)})
				r.must(order{Do: "dial", Name: idle, To: kernelAt(echoPort)})
				const ms = 2500
				sent := r.send(order{Do: "send", Name: bulk, N: much})
				waiting := []<-chan answer{sent,
					r.send(order{Do: "turns", To: kernelAt(echoPort), N: 1000, Count: ms}),
					k.send(order{Do: "turns", To: stackAt(echoPort), N: 1000, Count: ms})}
				time.Sleep(50 * time.Millisecond)
				c.do()
				begin := time.Now()
				for i, ch := range waiting {
					a := r.await(ch)
					require.Empty(t, a.Err, i)
				}
				r.must(order{Do: "shut", Name: bulk})
				require.Equal(t, fmt.Sprintf("%s %d\n", noiseSum(much), much), r.must(order{Do: "line", Name: bulk}).Text)
				t.Logf("%v after that it was over", time.Since(begin).Round(time.Millisecond))

				// Now nobody sends, and then nobody has a reason to send but us.
				c.do()
				begin = time.Now()
				r.must(order{Do: "send", Name: idle, N: 1000})
				require.Equal(t, noiseSum(1000), r.must(order{Do: "receive", Name: idle, N: 1000}).Text)
				t.Logf("%v until an idle connection had its answer", time.Since(begin).Round(time.Millisecond))
				require.Less(t, time.Since(begin), 10*time.Second)
				require.Equal(t, noiseSum(size)+"  -\n", r.shell(t, "curl -sSf http://%s/bytes/%d | sha256sum", stackIP, size))
				r.must(order{Do: "close", Name: bulk})
				r.must(order{Do: "close", Name: idle})
			})
		}
		r.quiet()
	})
}

// TestPeersGone takes the link away for good. Connections end when their options say, and the program goes on.
func TestPeersGone(t *testing.T) {
	t.Parallel()
	overWires(t, func(r *rig) {
		startChild(r.t, r.kernel, childConfig{Addr: kernelIP + length}).ready()
		r.must(order{Do: "dial", Name: "sending", To: kernelAt(echoPort), Options: []option{{unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 2000}}})
		r.must(order{Do: "dial", Name: "idle", To: kernelAt(echoPort), Options: []option{
			{unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1}, {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 1},
			{unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 1}, {unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 2}}})
		idle := r.send(order{Do: "receive", Name: "idle"})
		received := r.send(order{Do: "receive", Name: "sending"})
		sent := r.send(order{Do: "send", Name: "sending", N: 1 << 30})
		time.Sleep(100 * time.Millisecond)

		r.kernel.Run("ip", "link", "delete", r.peer)
		for name, chs := range map[string][]<-chan answer{"idle": {idle}, "sending": {sent, received}} {
			var said []string // the reason is told to one of them, reader or writer
			for _, ch := range chs {
				a := r.await(ch)
				said = append(said, a.Err)
				require.Greater(r.t, a.Seconds, 1.5, name)
				require.Less(r.t, a.Seconds, 8.0, name)
			}
			require.Regexp(r.t, "timed out|no route to host", strings.Join(said, "; "), name)
			r.t.Logf("%s: %q", name, said)
		}
		r.must(order{Do: "close", Name: "sending"})
		r.must(order{Do: "close", Name: "idle"})
	})
}
