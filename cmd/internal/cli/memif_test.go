package cli

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ndpip/api"
)

func TestAwaitServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	cfg := api.Config{Wire: "memif:" + path}
	stop := NewStop()
	require.NoError(t, AwaitServer(api.Config{Wire: "tap:x"}, stop, 0), "no memif")
	require.NoError(t, AwaitServer(api.Config{Wire: cfg.Wire, Server: true}, stop, 0), "the server's side")
	require.EqualError(t, AwaitServer(cfg, stop, 50*time.Millisecond), "nobody has opened the other side of memif:"+path+
		" for 0.05s; start the listening program first, or give a longer --connect-timeout")

	go func() {
		time.Sleep(50 * time.Millisecond)
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
		if err != nil {
			return
		}
		l.SetUnlinkOnClose(false)
		if c, err := l.Accept(); err == nil {
			c.Close()
		}
		l.Close()
	}()
	require.NoError(t, AwaitServer(cfg, stop, 5*time.Second))

	time.Sleep(50 * time.Millisecond) // the file is left over, and nobody behind it
	require.FileExists(t, path)
	require.Error(t, AwaitServer(cfg, stop, 50*time.Millisecond))
	stop.Ask()
	require.NoError(t, AwaitServer(cfg, stop, time.Hour))

	dir := filepath.Join(path, "x") // path is no directory
	require.ErrorContains(t, AwaitServer(api.Config{Wire: "memif:" + dir}, NewStop(), time.Hour), "not a directory")
}
