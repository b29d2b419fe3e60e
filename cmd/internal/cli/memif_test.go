package cli

import (
	"net"
	"os"
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
	require.NoError(t, awaitServer(api.Config{Wire: "tap:x"}, stop, 0), "no memif")
	require.NoError(t, awaitServer(api.Config{Wire: cfg.Wire, Server: true}, stop, 0), "the server's side")
	nobody := "nobody has opened the other side of memif:" + path +
		" for 0.05s; start the listening program first, or give a longer --connect-timeout"
	require.EqualError(t, awaitServer(cfg, stop, 50*time.Millisecond), nobody)

	closed := make(chan struct{})
	go func() {
		time.Sleep(50 * time.Millisecond)
		l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
		if err == nil {
			<-closed
			l.SetUnlinkOnClose(false)
			l.Close()
		}
		closed <- struct{}{}
	}()
	require.NoError(t, awaitServer(cfg, stop, 5*time.Second))
	closed <- struct{}{}
	<-closed

	require.FileExists(t, path, "left over, with nobody behind it")
	require.EqualError(t, awaitServer(cfg, stop, 50*time.Millisecond), nobody)
	stop.Ask()
	require.NoError(t, awaitServer(cfg, stop, time.Hour))

	stop = NewStop()
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.ErrorContains(t, awaitServer(cfg, stop, time.Hour), "no socket")
	require.ErrorContains(t, awaitServer(api.Config{Wire: "memif:" + path + "/x"}, stop, time.Hour), "not a directory")
}
