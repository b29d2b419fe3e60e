package peers

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// size is what the smaller transfers move.
const size = 8 << 20

// noiseFile is a file of noise.
func noiseFile(t *testing.T, n int) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "noise")
	f, err := os.Create(name)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.ReadFrom(noise(n))
	require.NoError(t, err)
	return name
}

// TestPeersClients has the programs of the kernel's side as clients.
func TestPeersClients(t *testing.T) {
	overWires(t, func(r *rig) {
		file := noiseFile(t, size)
		sum := noiseSum(size)
		want := fmt.Sprintf("%s %d\n", sum, size)
		for name, f := range map[string]func(t *testing.T){
			"ping": func(t *testing.T) { r.shell(t, "ping -q -c 5 -i 0.05 -W 2 %s", stackIP) },
			"curl": func(t *testing.T) {
				require.Equal(t, sum+"  -\n", r.shell(t, "curl -sSf http://%s/bytes/%d | sha256sum", stackIP, size))
			},
			"curl posts": func(t *testing.T) {
				require.Equal(t, want, r.shell(t, "curl -sSf --data-binary @%s http://%s/sum", file, stackIP))
			},
			"curl waits for 100-continue": func(t *testing.T) {
				require.Equal(t, want, r.shell(t, "curl -sSf -H 'Expect: 100-continue' --data-binary @%s http://%s/sum", file, stackIP))
			},
			"curl, TLS": func(t *testing.T) {
				url := "--tlsv1.3 --connect-to ndpip:443:" + stackIP + ":443 https://ndpip"
				require.Equal(t, sum+"  -\n", r.shell(t, "curl -sSfk %s/bytes/%d | sha256sum", url, size))
				require.Equal(t, want, r.shell(t, "curl -sSfk --data-binary @%s %s/sum", file, url))
			},
			"wget": func(t *testing.T) {
				require.Equal(t, sum+"  -\n", r.shell(t, "wget -q -O - http://%s/bytes/%d | sha256sum", stackIP, size))
			},
			"nc half-closes": func(t *testing.T) {
				require.Equal(t, want, r.shell(t, "nc -N %s %d <%s", stackIP, sumPort, file))
			},
			"nc, both ways": func(t *testing.T) {
				require.Equal(t, sum+"  -\n", r.shell(t, "nc -N %s %d <%s | sha256sum", stackIP, echoPort, file))
			},
			"socat, both ways": func(t *testing.T) {
				require.Equal(t, sum+"  -\n", r.shell(t, "socat -t 60 - TCP:%s:%d <%s | sha256sum", stackIP, echoPort, file))
			},
			"socat, datagrams": func(t *testing.T) {
				require.Equal(t, "hello\n", r.shell(t, "echo hello | socat -t 1 - UDP:%s:%d", stackIP, echoPort))
			},
			"a port that nobody listens on": func(t *testing.T) {
				require.Contains(t, r.shell(t, "nc -v %s 999 2>&1 || true", stackIP), "refused")
			},
		} {
			r.t.Run(name, func(t *testing.T) { f(t) })
		}
		r.quiet()
	})
}

// TestPeersServers has the programs of the kernel's side as servers.
func TestPeersServers(t *testing.T) {
	overWires(t, func(r *rig) {
		file := noiseFile(t, size)
		sum := noiseSum(size)
		// exchange sends while it receives, and half-closes: at once, or after the peer has.
		exchange := func(t *testing.T, port int, first bool) {
			r.listening(port)
			name := t.Name()
			r.must(order{Do: "dial", Name: name, To: kernelAt(port)})
			receive := r.send(order{Do: "receive", Name: name})
			a := r.must(order{Do: "send", Name: name, N: size})
			require.Equal(t, sum, a.Text)
			if first {
				r.must(order{Do: "shut", Name: name})
			}
			a = r.await(receive)
			require.Empty(t, a.Err)
			require.Equal(t, sum, a.Text)
			r.must(order{Do: "close", Name: name})
		}
		r.t.Run("nc", func(t *testing.T) {
			copied := filepath.Join(t.TempDir(), "copy")
			nc := start(t, r.kernel, nil, "bash", "-c", fmt.Sprintf("nc -N -l 7001 <%s >%s", file, copied))
			exchange(t, 7001, false) // nc -l leaves when the peer has ended, whatever it has to send still
			nc.ends(10 * time.Second)
			require.Equal(t, sum+"  -\n", r.shell(t, "sha256sum <%s", copied))
		})
		r.t.Run("socat", func(t *testing.T) {
			copied := filepath.Join(t.TempDir(), "copy")
			socat := start(t, r.kernel, nil, "bash", "-c", fmt.Sprintf("socat -t 60 - TCP-LISTEN:7002,reuseaddr <%s >%s", file, copied))
			exchange(t, 7002, true)
			socat.ends(10 * time.Second)
			require.Equal(t, sum+"  -\n", r.shell(t, "sha256sum <%s", copied))
		})
		r.t.Run("socat echoes", func(t *testing.T) {
			start(t, r.kernel, nil, "socat", "-t", "60", "TCP-LISTEN:7003,reuseaddr,fork", "EXEC:cat")
			exchange(t, 7003, true)
			exchange(t, 7003, true)
		})
		r.t.Run("net/http", func(t *testing.T) {
			k := startChild(t, r.kernel, childConfig{Addr: kernelIP + length})
			k.ready()
			a := r.must(order{Do: "get", To: fmt.Sprintf("http://%s/bytes/%d", kernelIP, size)})
			require.Equal(t, size, a.N)
			require.Equal(t, sum, a.Text)
		})
		r.t.Run("a port that nobody listens on", func(t *testing.T) {
			a := r.ask(order{Do: "dial", Name: "refused", To: kernelAt(999)})
			require.Contains(t, a.Err, "connection refused")
		})
		r.quiet()
	})
}

// TestPeersParallel opens 500 connections at once, either way.
func TestPeersParallel(t *testing.T) {
	const many, each = 500, 16 << 10
	overWires(t, func(r *rig) {
		k := startChild(r.t, r.kernel, childConfig{Addr: kernelIP + length})
		k.ready()
		k.must(order{Do: "echo", To: stackAt(echoPort), N: each, Count: many})
		r.must(order{Do: "echo", To: kernelAt(echoPort), N: each, Count: many})
		r.quiet()
	})
}
