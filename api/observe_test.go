package api

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"ndpip/dpdk"
	"ndpip/stack/link"
)

// busyHosts are two inline hosts with a connection over which a MiB has gone from the first to the second, half a KiB of
// which is not read.
func busyHosts(t *testing.T, cfg Config) (a, b *Host, ca, cb int) {
	cfg.Inline = true
	a, b = linkHosts(t, cfg, link.Config{})
	ca, cb = connected(t, a, b, nil)
	data, buf := make([]byte, 64<<10), make([]byte, 64<<10)
	const all, left = 1 << 20, 512
	for sent, read := 0, 0; read < all-left; {
		n, err := a.Write(ca, data[:min(len(data), all-sent)])
		if err != nil && err != unix.EAGAIN {
			t.Fatal(err)
		}
		sent += max(n, 0)
		if n, err = b.Read(cb, buf[:min(len(buf), all-left-read)]); err != nil && err != unix.EAGAIN {
			t.Fatal(err)
		}
		read += max(n, 0)
	}
	for range 100 {
		a.poll()
		b.poll()
	}
	return a, b, ca, cb
}

// Every number has a name of its own that OpenMetrics and DPDK's telemetry take, and there are not too many.
func TestMetricNames(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range numbers(numbers(nil, "", reflect.ValueOf(Stats{})), "port_", reflect.ValueOf(dpdk.PortStats{})) {
		require.Regexp(t, `^[a-z][a-z0-9_]*$`, m.Flat())
		require.LessOrEqual(t, len(m.Flat()), 50)
		require.False(t, seen[m.Flat()], m.Flat())
		require.Contains(t, []string{"counter", "gauge", "histogram"}, m.Kind)
		seen[m.Flat()] = true
	}
	require.Less(t, len(seen), 230, "DPDK's telemetry answers with 256 values at most")
	for _, name := range []string{"rx_frames", "arp_requests", "dropped_stray", "malformed_ip_checksum", "turn_seconds", "udp_sockets", "faults_lost"} {
		require.True(t, seen[name], name)
	}
}

func TestWriteMetrics(t *testing.T) {
	a, b, _, _ := busyHosts(t, Config{})
	var text bytes.Buffer
	require.NoError(t, WriteMetrics(&text, a, b))
	form := regexp.MustCompile(`^(# (TYPE|HELP) ndpip_\w+ .+|ndpip_\w+\{host="10\.0\.0\.[12]"(,\w+="[\w+.-]+")?\} \d+(\.\d+)?(e[-+]\d+)?|# EOF)$`)
	values := map[string]uint64{}
	for line := range strings.Lines(text.String()) {
		line = strings.TrimSuffix(line, "\n")
		require.Regexp(t, form, line)
		name, v, _ := strings.Cut(line, " ")
		values[name], _ = strconv.ParseUint(v, 10, 64)
	}
	require.True(t, strings.HasSuffix(text.String(), "\n# EOF\n"))
	require.Equal(t, uint64(1<<20), values[`ndpip_tx_payload_total{host="10.0.0.1"}`])
	require.Equal(t, uint64(1<<20-512), values[`ndpip_rx_payload_total{host="10.0.0.2"}`])
	require.Equal(t, uint64(1), values[`ndpip_tx_syns_total{host="10.0.0.1"}`])
	require.Equal(t, uint64(1), values[`ndpip_rx_syns_total{host="10.0.0.2"}`])
	require.Equal(t, uint64(1), values[`ndpip_connections{host="10.0.0.2"}`])
	require.Positive(t, values[`ndpip_rx_held_peak{host="10.0.0.2"}`])
	require.Positive(t, values[`ndpip_rx_acks_total{host="10.0.0.1"}`])
	require.Positive(t, values[`ndpip_busy_turns_total{host="10.0.0.1"}`])
	require.Positive(t, values[`ndpip_neighbours{host="10.0.0.1"}`])
}

func ask(t *testing.T, c net.Conn, request string, last func(line string) bool) (lines []string) {
	t.Helper()
	_, err := c.Write([]byte(request + "\n"))
	require.NoError(t, err)
	in := bufio.NewReader(c)
	for {
		line, err := in.ReadString('\n')
		require.NoError(t, err)
		line = strings.TrimSuffix(line, "\n")
		lines = append(lines, line)
		if last(line) {
			return lines
		}
	}
}

func TestControl(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.sock")
	a, b, ca, cb := busyHosts(t, Config{Control: path})
	st, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), st.Mode().Perm())
	c, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer c.Close()
	first := func(string) bool { return true }

	var v ProcessView
	require.NoError(t, json.Unmarshal([]byte(ask(t, c, "look", first)[0]), &v))
	require.Equal(t, os.Getpid(), v.PID)
	require.Len(t, v.Hosts, 2)
	require.Equal(t, "10.0.0.1/24", v.Hosts[0].Addr.String())
	require.Equal(t, uint64(1<<20), v.Hosts[0].Counters["tx_payload"])
	require.Equal(t, uint64(1), v.Hosts[1].Counters["connections"])
	require.Equal(t, "10.0.0.2", v.Hosts[0].Neighbours[0].Addr.String())
	require.Equal(t, "known", v.Hosts[0].Neighbours[0].State)

	sockets := map[string]HostSocket{}
	for _, line := range ask(t, c, "sockets", func(line string) bool { return line == "" }) {
		if line != "" {
			var s HostSocket
			require.NoError(t, json.Unmarshal([]byte(line), &s))
			sockets[s.Host] = s
		}
	}
	from, to := sockets["10.0.0.1"], sockets["10.0.0.2"]
	at, err := a.Getsockname(ca)
	require.NoError(t, err)
	require.Equal(t, at, from.Local)
	require.Equal(t, "ESTABLISHED", from.State)
	require.Equal(t, from.Local, to.Remote)
	require.Equal(t, uint32(1<<20), from.Acked)
	require.Equal(t, uint32(1<<20), to.Received)
	require.Zero(t, from.SendQ)
	require.Equal(t, 512, to.RecvQ)
	require.Positive(t, from.RTT)
	require.GreaterOrEqual(t, from.RTO, from.RTT)

	metrics := ask(t, c, "metrics", func(line string) bool { return line == "# EOF" })
	require.Greater(t, len(metrics), 100)
	require.Contains(t, ask(t, c, "reboot", first)[0], "error: want look")

	require.NoError(t, b.Close(cb))
	require.NoError(t, a.Stop())
	require.NoError(t, b.Stop())
	_, err = os.Stat(path)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestControlOff(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(controlEnv, filepath.Join(dir, "env.sock"))
	busyHosts(t, Config{Control: "off"})
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	busyHosts(t, Config{})
	_, err = os.Stat(filepath.Join(dir, "env.sock"))
	require.NoError(t, err)
	busyHosts(t, Config{Control: filepath.Join(dir, "none", "x.sock")}) // the process has a socket already
}

// A socket that cannot be made is an error only if somebody has asked for it; one that is left over is replaced.
func TestControlPath(t *testing.T) {
	dir := t.TempDir()
	var p processState
	require.ErrorIs(t, p.open(filepath.Join(dir, "none", "x.sock")), os.ErrNotExist)
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorContains(t, p.open(file), "is no socket")
	stale := filepath.Join(dir, "stale.sock")
	l, err := net.Listen("unix", stale)
	require.NoError(t, err)
	require.ErrorContains(t, p.open(stale), "another process listens there")
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	require.NoError(t, p.open(stale))
	require.NoError(t, p.listen.Close())
	shared := filepath.Join(dir, "shared")
	require.NoError(t, os.Mkdir(shared, 0o700))
	require.NoError(t, os.Chmod(shared, 0o777))
	require.ErrorContains(t, ownDir(shared), "others cannot write")
}

// TestTelemetry asks on DPDK's telemetry socket, as dpdk-telemetry.py does.
func TestTelemetry(t *testing.T) {
	ringHosts(t, Config{Inline: true})
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, unix.Connect(fd, &unix.SockaddrUnix{Name: filepath.Join(dpdk.RuntimeDir(), "dpdk_telemetry.v2")}))
	buf := make([]byte, 64<<10)
	_, err = unix.Read(fd, buf) // DPDK's greeting
	require.NoError(t, err)
	say := func(command string) string {
		_, err := unix.Write(fd, []byte(command))
		require.NoError(t, err)
		n, err := unix.Read(fd, buf)
		require.NoError(t, err)
		return string(buf[:n])
	}
	require.JSONEq(t, `{"/ndpip/hosts":{"0":"10.0.0.1","1":"10.0.0.2"}}`, say("/ndpip/hosts"))
	var answer map[string]map[string]any
	require.NoError(t, json.Unmarshal([]byte(say("/ndpip/stats,1")), &answer))
	stats := answer["/ndpip/stats"]
	require.Equal(t, "10.0.0.2", stats["host"])
	require.EqualValues(t, 0, stats["rx_payload"])
	require.EqualValues(t, 8192, stats["pool_buffers_rx"])
	require.Contains(t, stats, "pool_in_use_ctl", "the last of them")
	require.Contains(t, say("/ndpip/stats,7"), "there are 2, numbered from 0")
}
