package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

func TestWrongOptions(t *testing.T) {
	for line, want := range map[string]string{
		"":                                    "give a verb",
		"serve":                               "no verb",
		"send":                                "--connect-ip is missing",
		"send --connect-ip x":                 "IPv4 address",
		"recv --mss 0":                        "from 24 to 9176",
		"recv --timeout -1":                   "seconds",
		"recv --format xml":                   "text or json",
		"recv --connections 3":                "connections",
		"recv --udp --bidir":                  "--bidir needs --tcp",
		"recv --echo --bidir":                 "exclude each other",
		"ping --connect-ip 1.2.3.4 --size 0":  "at least 1 byte",
		"conn --connect-ip 1.2.3.4 --udp":     "udp",
		"ping --connect-ip 1.2.3.4 --hdr=":    "--hdr needs",
		"recv more":                           "belongs to no option",
		"send --connect-ip 1.2.3.4 --burst 0": "from 1 to 256",
	} {
		var out, err bytes.Buffer
		require.Equal(t, 2, run(t.Context(), strings.Fields(line), &out, &err), line)
		require.Contains(t, err.String(), want, line)
		require.Equal(t, 1, strings.Count(err.String(), "\n"), line)
	}
	var out, err bytes.Buffer
	require.Equal(t, 0, run(t.Context(), []string{"recv", "--help"}, &out, &err))
	for _, verb := range []string{"recv", "send", "ping", "conn"} {
		newFlags(&options{verb: verb}).VisitAll(func(f *pflag.Flag) { require.Contains(t, out.String(), "--"+f.Name) })
	}
}

// Both ends in one process, over the loopback: what is received is what was sent, and each connection has its part.
func TestLoopback(t *testing.T) {
	const port = "35001"
	var received bytes.Buffer
	status := make(chan int)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	go func() {
		var e bytes.Buffer
		status <- run(ctx, strings.Fields("recv --bind-ip 127.0.0.1 --format json --interval 0.1 --bind-port "+port), &received, &e)
	}()
	var sent, fault bytes.Buffer
	args := "send --connect-ip 127.0.0.1 --connections 3 --timeout 0.5 --connect-timeout 20 --format json --interval 0.1 --connect-port " + port
	require.Equal(t, 0, run(t.Context(), strings.Fields(args), &sent, &fault), fault.String())
	end()
	require.Equal(t, 0, <-status)
	a, b := summary(t, sent.String()), summary(t, received.String())
	require.NotZero(t, a.Bytes)
	require.Equal(t, a.Bytes, b.Bytes)
	require.Equal(t, 3, b.Connections)
	require.NotZero(t, b.Least)
	require.LessOrEqual(t, b.Least, b.Most)
	require.NotZero(t, b.Segments)
}

// start runs a receiver on a port until end, which gives what it printed.
func start(t *testing.T, args string) (end func() string) {
	var out, fault bytes.Buffer
	status := make(chan int)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		status <- run(ctx, strings.Fields("recv --bind-ip 127.0.0.1 --format json --interval 0.1 "+args), &out, &fault)
	}()
	return func() string {
		cancel()
		require.Equal(t, 0, <-status, fault.String())
		return out.String()
	}
}

// client runs the other verbs to their end.
func client(t *testing.T, args string) string {
	var out, fault bytes.Buffer
	require.Equal(t, 0, run(t.Context(), strings.Fields(args+" --connect-ip 127.0.0.1 --format json"), &out, &fault), fault.String())
	return out.String()
}

func TestBothWays(t *testing.T) {
	end := start(t, "--bidir --bind-port 35002")
	sent := summary(t, client(t, "send --bidir --connections 2 --timeout 0.5 --connect-timeout 20 --interval 0.1 --connect-port 35002"))
	received := summary(t, end())
	require.Equal(t, sent.Bytes, received.Bytes)
	require.NotZero(t, sent.Back)
	require.GreaterOrEqual(t, received.Back, sent.Back) // what comes after the sender's end it does not count
}

func TestDatagrams(t *testing.T) {
	end := start(t, "--udp --bind-port 35003")
	sent := summary(t, client(t, "send --udp --timeout 0.3 --mss 1000 --connect-port 35003"))
	received := summary(t, end())
	require.NotZero(t, received.Bytes)
	require.LessOrEqual(t, received.Bytes, sent.Bytes)
	require.Equal(t, received.Bytes, 1000*received.Segments)
}

func TestPing(t *testing.T) {
	for port, option := range map[string]string{"35004": "", "35005": "--udp"} {
		end := start(t, option+" --echo --bind-port "+port)
		hdr := t.TempDir() + "/log"
		s := summary(t, client(t, "ping --count 500 --size 3000 --hdr "+hdr+" --connect-timeout 20 --timeout 20 --connect-port "+port+" "+option))
		r := summary(t, end())
		require.Equal(t, uint64(500), s.Count+s.Failed) // datagrams may go before the receiver is there
		require.NotZero(t, s.Count)
		require.Equal(t, r.Bytes, r.Back)
		require.GreaterOrEqual(t, r.Bytes, s.Count*3000)
		log, err := os.ReadFile(hdr)
		require.NoError(t, err)
		require.Contains(t, string(log), "#[Histogram log format version 1.3]")
	}
}

func TestConn(t *testing.T) {
	end := start(t, "--echo --bind-port 35006")
	s := summary(t, client(t, "conn --count 300 --parallel 7 --size 5000 --reset --connect-timeout 20 --connect-port 35006"))
	require.Equal(t, uint64(300), s.Count)
	s = summary(t, client(t, "conn --count 100 --size 0 --reset --connect-port 35006"))
	require.Equal(t, uint64(100), s.Count)
	r := summary(t, end())
	require.Equal(t, uint64(300*5000), r.Bytes)
	require.Equal(t, uint64(300*5000), r.Back)
}

type total struct {
	Type            string
	Bytes, Segments uint64
	Back            uint64 `json:"back_bytes"`
	Count, Failed   uint64
	Connections     int
	Least           uint64 `json:"bytes_least"`
	Most            uint64 `json:"bytes_most"`
}

func summary(t *testing.T, text string) total {
	var s total
	last := text[strings.LastIndex(strings.TrimSpace(text), "\n")+1:]
	require.NoError(t, json.Unmarshal([]byte(last), &s), text)
	require.Equal(t, "summary", s.Type)
	return s
}
