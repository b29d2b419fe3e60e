package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

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
	require.Contains(t, out.String(), "Options")
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

type total struct {
	Type            string
	Bytes, Segments uint64
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
