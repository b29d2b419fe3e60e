package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pair is two ndpip-perf processes over shared memory.
type pair struct{ recv, send *process }

// startPair starts both with the options that they have in common and their own. The first word of send may be another verb.
func startPair(t *testing.T, common, recv, send string) pair {
	verb := "send"
	if first, rest, _ := strings.Cut(send, " "); first == "ping" || first == "conn" {
		verb, send = first, rest
	}
	t.Helper()
	perf, _ := build(t)
	socket := filepath.Join(t.TempDir(), "s")
	args := func(verb, own string) []string {
		return append(append([]string{verb, "--wire", "memif:" + socket, "--mbufs", "4096"}, strings.Fields(common)...), strings.Fields(own)...)
	}
	p := pair{recv: start(t, nil, nil, perf, args("recv", recv)...)}
	p.recv.says(&p.recv.err, " on 10.0.0.1:5001", startTime)
	p.send = start(t, nil, nil, perf, args(verb, send)...)
	return p
}

// fields reads "name=value; …" after a prefix of the last line that begins with it.
func fields(t *testing.T, text, prefix string) map[string]uint64 {
	t.Helper()
	m := make(map[string]uint64)
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			for _, f := range strings.Split(strings.Trim(rest, " ;\n"), "; ") {
				name, value, _ := strings.Cut(f, "=")
				m[name], _ = strconv.ParseUint(value, 10, 64)
			}
		}
	}
	require.NotEmpty(t, m, "no line %q", prefix)
	return m
}

func TestMemifFile(t *testing.T) {
	for name, options := range map[string]string{
		"copy": "", "zero-copy": "--zero-copy", "inline": "--inline", "worker": "--inline=false", "no hugepages": "--no-huge", "small segments": "--mss 200 --burst 7 --profile lossy",
		"software checksum": "--checksum software",
	} {
		t.Run(name, func(t *testing.T) {
			file, sum := randomFile(t, fileSize()/4)
			copied := filepath.Join(t.TempDir(), "copy")
			p := startPair(t, "--sha256 "+options, "--out "+copied, "--file "+file)
			p.send.ends(0, 60*time.Second)
			p.recv.ends(0, 5*time.Second)
			require.Equal(t, sum, sumOf(t, copied))
			require.Contains(t, p.send.out.String(), "sha256="+sum)
			require.Contains(t, p.recv.out.String(), "sha256="+sum)
		})
	}
}

// The endless stream on many connections, each byte compared; the hashes of both ends agree for each connection.
func TestMemifConnections(t *testing.T) {
	p := startPair(t, "--sha256 --interval 0.2 --mss 512", "--verify", "--connections 50 --timeout 1")
	p.send.ends(0, 20*time.Second)
	p.recv.says(&p.recv.out, "connections=0;", 5*time.Second)
	p.recv.terminate()
	sent, received := fields(t, p.send.out.String(), "sent: "), fields(t, p.recv.out.String(), "received: ")
	require.Equal(t, sent["bytes"], received["bytes"])
	require.Equal(t, uint64(50), received["connections"])
	require.ElementsMatch(t, sums(p.send.out.String()), sums(p.recv.out.String()))
	require.Regexp(t, `(?m)^pps=\d+; bps=[1-9]\d+; connections=50;$`, p.recv.out.String())
}

// sums are the hashes that a program printed.
func sums(text string) (s []string) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, "sha256="); ok {
			s = append(s, rest[:64])
		}
	}
	return s
}

func TestMemifUDP(t *testing.T) {
	for _, options := range []string{"", "--zero-copy"} {
		p := startPair(t, "--udp --mss 1000 "+options, "--verify", "--timeout 1")
		p.send.ends(0, 20*time.Second)
		p.recv.terminate()
		sent, received := fields(t, p.send.out.String(), "sent: "), fields(t, p.recv.out.String(), "received: ")
		require.Positive(t, received["bytes"])
		require.Zero(t, received["bytes"]%1000)
		require.GreaterOrEqual(t, sent["bytes"], received["bytes"])
	}
}

func TestMemifJSON(t *testing.T) {
	p := startPair(t, "--format json --interval 0.2 --sha256", "", "--timeout 1")
	p.send.ends(0, 20*time.Second)
	p.recv.says(&p.recv.out, `"stream"`, 5*time.Second)
	p.recv.terminate()
	for _, text := range []string{p.send.out.String(), p.recv.out.String()} {
		types := make(map[string]int)
		for line := range strings.Lines(text) {
			var v struct {
				Type  string
				Bytes uint64
			}
			require.NoError(t, json.Unmarshal([]byte(line), &v), line)
			types[v.Type]++
		}
		require.GreaterOrEqual(t, types["interval"], 3)
		require.Equal(t, 1, types["stream"])
		require.Equal(t, 1, types["summary"])
	}
}

// Each side is stopped in the middle of a transfer and starts again at once.
func TestMemifSignal(t *testing.T) {
	p := startPair(t, "--interval 0.1", "", "")
	p.send.says(&p.send.out, "connections=1;", startTime)
	p.send.terminate()
	p.recv.says(&p.recv.out, "connections=0;", 5*time.Second)

	again := start(t, nil, nil, p.send.cmd.Path, p.send.cmd.Args[1:]...)
	again.says(&again.out, "connections=1;", startTime)
	p.recv.terminate()
	again.ends(1, 10*time.Second)
	require.Contains(t, again.err.String(), "connection to 10.0.0.1:5001: ")

	recv := start(t, nil, nil, p.recv.cmd.Path, p.recv.cmd.Args[1:]...)
	recv.listens()
	recv.terminate()
}

func TestMemifNobody(t *testing.T) {
	perf, _ := build(t)
	socket := filepath.Join(t.TempDir(), "s")
	p := start(t, nil, nil, perf, "send", "--wire", "memif:"+socket, "--connect-timeout", "1")
	p.ends(1, startTime)
	require.Regexp(t, `^ndpip-perf send: .*\n$`, notes(p))
}

// ndpip-cat with itself: both ways at once.
func TestMemifCat(t *testing.T) {
	_, cat := build(t)
	socket := filepath.Join(t.TempDir(), "s")
	one, two := strings.Repeat("from the listener\n", 200_000), strings.Repeat("from the one who connects\n", 150_000)
	l := start(t, nil, strings.NewReader(one), cat, "--wire", "memif:"+socket, "listen", "5001")
	time.Sleep(500 * time.Millisecond)
	c := start(t, nil, strings.NewReader(two), cat, "--wire", "memif:"+socket, "connect", "10.0.0.1:5001")
	c.ends(0, 30*time.Second)
	l.ends(0, 10*time.Second)
	require.True(t, one == c.out.String(), fmt.Sprintf("%d bytes of %d", len(c.out.String()), len(one)))
	require.True(t, two == l.out.String(), fmt.Sprintf("%d bytes of %d", len(l.out.String()), len(two)))
}

// A receiver that was killed leaves its socket behind; the sender waits for the next one all the same.
func TestMemifKilled(t *testing.T) {
	perf, _ := build(t)
	file, sum := randomFile(t, 1<<20)
	copied := filepath.Join(t.TempDir(), "copy")
	socket := filepath.Join(t.TempDir(), "s")
	recv := func() *process {
		return start(t, nil, nil, perf, "recv", "--wire", "memif:"+socket, "--mbufs", "4096", "--out", copied)
	}
	first := recv()
	first.listens()
	require.NoError(t, first.cmd.Process.Kill())
	<-first.ended
	require.FileExists(t, socket)

	send := start(t, nil, nil, perf, "send", "--wire", "memif:"+socket, "--mbufs", "4096", "--file", file)
	time.Sleep(3 * time.Second) // it has looked for the other side, and tried
	second := recv()
	send.ends(0, 20*time.Second)
	second.ends(0, 5*time.Second)
	require.Equal(t, sum, sumOf(t, copied))
}

// Both sides send on every connection, and each counts what the other sent.
func TestMemifBothWays(t *testing.T) {
	p := startPair(t, "--bidir --interval 0.2 --mss 512", "--verify", "--connections 20 --timeout 1")
	p.send.ends(0, 20*time.Second)
	p.recv.says(&p.recv.out, "connections=0;", 5*time.Second)
	p.recv.terminate()
	sent, received := fields(t, p.send.out.String(), "sent: "), fields(t, p.recv.out.String(), "received: ")
	require.Equal(t, sent["bytes"], received["bytes"])
	require.NotZero(t, sent["back_bytes"])
	require.GreaterOrEqual(t, received["back_bytes"], sent["back_bytes"]) // what comes after the sender's end it does not count
	require.Regexp(t, `(?m)^pps=\d+; bps=[1-9]\d+; connections=20; back_pps=\d+; back_bps=[1-9]\d+;$`, p.recv.out.String())
}

// asked is the last line of ping and conn in JSON.
type asked struct {
	Type          string
	Count, Failed uint64
	Percentiles   map[string]uint64 `json:"percentiles_ns"`
}

func (p pair) asked(t *testing.T) (a asked) {
	t.Helper()
	p.send.ends(0, 40*time.Second)
	p.recv.terminate()
	for line := range strings.Lines(p.send.out.String()) {
		var v asked
		require.NoError(t, json.Unmarshal([]byte(line), &v), line)
		if v.Type == "summary" {
			a = v
		}
	}
	require.Equal(t, "summary", a.Type)
	require.Positive(t, a.Percentiles["0"])
	require.LessOrEqual(t, a.Percentiles["50"], a.Percentiles["100"])
	return a
}

func TestMemifPing(t *testing.T) {
	for options, own := range map[string]string{"": "--size 64", "--udp": "--size 1000", "--inline=false": "--size 100000"} {
		log := filepath.Join(t.TempDir(), "log")
		p := startPair(t, "--format json --interval 0.1 "+options, "--echo", "ping --count 1000 --hdr "+log+" "+own)
		a := p.asked(t)
		require.Equal(t, uint64(1000), a.Count+a.Failed)
		require.LessOrEqual(t, a.Failed, uint64(10)) // datagrams alone may be lost
		text, err := os.ReadFile(log)
		require.NoError(t, err)
		require.Contains(t, string(text), "HISTFAAAA") // how the histograms begin, in base 64
	}
}

// More connections than there are ports, so that those in TIME-WAIT are used again; then with resets; and without data.
func TestMemifConn(t *testing.T) {
	count := 40000
	if testing.Short() {
		count = 2000
	}
	for own, size := range map[string]int{"--size 100": 100, "--reset --parallel 3 --size 20000": 20000, "--size 0": 0} {
		n := count
		if size > 100 {
			n = 200
		}
		p := startPair(t, "--format json --interval 0.1", "--echo", fmt.Sprint("conn --count ", n, " ", own))
		a := p.asked(t)
		require.Equal(t, asked{"summary", uint64(n), 0, a.Percentiles}, a)
		var r struct {
			Bytes uint64
			Back  uint64 `json:"back_bytes"`
		}
		for line := range strings.Lines(p.recv.out.String()) {
			if strings.Contains(line, `"summary"`) {
				require.NoError(t, json.Unmarshal([]byte(line), &r))
			}
		}
		require.Equal(t, uint64(n*size), r.Bytes)
		require.Equal(t, r.Bytes, r.Back)
	}
}
