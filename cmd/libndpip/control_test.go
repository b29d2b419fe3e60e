package main

import (
	"bufio"
	"encoding/json"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestControl looks at a C program through its control socket, as ndpip-stat does.
func TestControl(t *testing.T) {
	atServer, atClient := memif(t)
	echo := compile(t, "echo", linkages[0], c11...)
	path := filepath.Join(t.TempDir(), "c.sock")
	t.Setenv("NDPIP_CONTROL", path)
	server := start(t, echo, []string{atServer}, "serve", "2")
	var c net.Conn
	require.Eventually(t, func() (up bool) {
		var err error
		c, err = net.Dial("unix", path)
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)
	defer c.Close()
	answers := bufio.NewScanner(c)
	ask := func(what string) string {
		_, err := c.Write([]byte(what + "\n"))
		require.NoError(t, err)
		require.True(t, answers.Scan(), answers.Err())
		return answers.Text()
	}
	var v struct {
		PID     int
		Program string
		Hosts   []struct {
			Addr     string
			Port     struct{ Driver string }
			Pools    []struct{ Name string }
			Counters map[string]int
		}
	}
	require.NoError(t, json.Unmarshal([]byte(ask("look")), &v))
	require.Equal(t, server.cmd.Process.Pid, v.PID)
	require.Equal(t, filepath.Base(echo), v.Program)
	require.Len(t, v.Hosts, 1)
	require.Equal(t, "10.9.0.2/0", v.Hosts[0].Addr)
	require.Equal(t, "net_memif", v.Hosts[0].Port.Driver)
	t.Setenv("NDPIP_CONTROL", "off")

	// A connection while it is used, and what it has carried.
	const messages = 300
	client := start(t, echo, []string{atClient}, "call", "1", strconv.Itoa(messages))
	var states []string
	for end := time.Now().Add(20 * time.Second); !slices.Contains(states, "ESTABLISHED") && time.Now().Before(end); {
		for line := ask("sockets"); line != ""; {
			var s struct{ State, Remote string }
			require.NoError(t, json.Unmarshal([]byte(line), &s), line)
			if strings.HasPrefix(s.Remote, "10.9.0.1:") {
				states = append(states, s.State)
			}
			require.True(t, answers.Scan(), answers.Err())
			line = answers.Text()
		}
	}
	require.Contains(t, states, "ESTABLISHED")
	client.wait(t)
	sum := 0
	for m := range messages {
		sum += 1 + m*13%3000 // as echo.c has it
	}
	require.NoError(t, json.Unmarshal([]byte(ask("look")), &v))
	require.Equal(t, sum, v.Hosts[0].Counters["rx_payload"])
	require.Equal(t, sum, v.Hosts[0].Counters["tx_payload"])

	start(t, echo, []string{atClient}, "call", "1", "1").wait(t)
	server.wait(t)
}
