package main

import (
	"bufio"
	"encoding/json"
	"net"
	"path/filepath"
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
	server := start(t, echo, []string{atServer}, "serve", "1")
	var c net.Conn
	require.Eventually(t, func() (up bool) {
		var err error
		c, err = net.Dial("unix", path)
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)
	defer c.Close()
	_, err := c.Write([]byte("look\n"))
	require.NoError(t, err)
	line, err := bufio.NewReader(c).ReadString('\n')
	require.NoError(t, err)
	var v struct {
		PID     int
		Program string
		Hosts   []struct {
			Addr  string
			Port  struct{ Driver string }
			Pools []struct{ Name string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(line), &v))
	require.Equal(t, server.cmd.Process.Pid, v.PID)
	require.Equal(t, filepath.Base(echo), v.Program)
	require.Len(t, v.Hosts, 1)
	require.Equal(t, "10.9.0.2/0", v.Hosts[0].Addr)
	require.Equal(t, "net_memif", v.Hosts[0].Port.Driver)
	t.Setenv("NDPIP_CONTROL", "off")
	start(t, echo, []string{atClient}, "call", "1", "1").wait(t)
	server.wait(t)
}
