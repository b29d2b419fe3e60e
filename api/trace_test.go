package api

import (
	"bufio"
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"ndpip/stack/link"
)

// safe collects lines from another goroutine.
type safe struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *safe) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(b)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

func TestTrace(t *testing.T) {
	a, b := linkHosts(t, Config{Inline: true}, link.Config{})
	var of, other safe
	stop, err := a.Trace("host 10.0.0.2", func(c StateChange) { fmt.Fprintf(&of, "%s>%s %v;", c.From, c.To, c.Why) })
	require.NoError(t, err)
	_, err = a.Trace("", func(StateChange) {})
	require.ErrorIs(t, err, unix.EBUSY)
	none, err := b.Trace("port 1", func(c StateChange) { fmt.Fprintln(&other, c) })
	require.NoError(t, err)
	ca, cb := connected(t, a, b, nil)
	at, err := a.Getsockname(ca)
	require.NoError(t, err)
	require.NoError(t, b.Shutdown(cb, unix.SHUT_WR))
	eventually(t, func() bool { a.poll(); b.poll(); return strings.Contains(of.String(), "CLOSE-WAIT") })
	require.NoError(t, a.Close(ca))
	eventually(t, func() bool { a.poll(); b.poll(); return strings.Contains(of.String(), ">CLOSED") })
	require.Zero(t, stop())
	require.Equal(t, "CLOSED>SYN-SENT <nil>;SYN-SENT>ESTABLISHED <nil>;ESTABLISHED>CLOSE-WAIT <nil>;CLOSE-WAIT>LAST-ACK <nil>;LAST-ACK>CLOSED <nil>;",
		of.String())
	require.Zero(t, none())
	require.Empty(t, other.String())

	// Another one may follow, and tells why a connection ends.
	of = safe{}
	stop, err = a.Trace("all", func(c StateChange) { fmt.Fprintln(&of, c) })
	require.NoError(t, err)
	ca, cb = connected(t, a, b, nil)
	at, err = a.Getsockname(ca)
	require.NoError(t, err)
	require.NoError(t, b.SetLinger(cb, true, 0))
	require.NoError(t, b.Close(cb))
	eventually(t, func() bool {
		a.poll()
		return strings.Contains(of.String(), fmt.Sprintf("%s 10.0.0.2:", at)) && strings.Contains(of.String(), "ESTABLISHED -> CLOSED: connection reset by peer")
	})
	stop()
	_, err = a.Trace("host x", func(StateChange) {})
	require.ErrorContains(t, err, "want words such as")
}

func TestControlTrace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.sock")
	a, b := linkHosts(t, Config{Inline: true, Control: path}, link.Config{})
	c, err := net.Dial("unix", path)
	require.NoError(t, err)
	defer c.Close()
	_, err = c.Write([]byte("trace host 10.0.0.1\n"))
	require.NoError(t, err)
	eventually(t, func() bool { return a.tracing.Load() && b.tracing.Load() })
	connected(t, a, b, nil)
	in := bufio.NewReader(c)
	var seen string
	for range 4 { // of each end: it begins, and comes up
		line, err := in.ReadString('\n')
		require.NoError(t, err)
		seen += line
	}
	for _, text := range []string{"CLOSED -> SYN-SENT", "SYN-SENT -> ESTABLISHED", "CLOSED -> SYN-RECEIVED", "SYN-RECEIVED -> ESTABLISHED"} {
		require.Contains(t, seen, text)
	}
	require.NoError(t, c.Close())
	eventually(t, func() bool { return !a.tracing.Load() && !b.tracing.Load() })
}

func TestLog(t *testing.T) {
	var text safe
	a, _ := linkHosts(t, Config{Inline: true, Log: slog.New(slog.NewTextHandler(&text, nil))}, link.Config{})
	require.NoError(t, a.Stop())
	require.Regexp(t, `level=INFO msg=opened host=10\.0\.0\.1 wire="" mac=02:00:00:00:00:\w\w worker=false`, text.String())
	require.Regexp(t, `msg=stopped host=10\.0\.0\.1 rx_payload=0`, text.String())
}

// Trouble gives a line at once, and fewer and fewer while it goes on.
func TestLogRate(t *testing.T) {
	var text safe
	d := &diary{log: slog.New(slog.NewTextHandler(&text, nil)), was: map[string]uint64{"dropped_no_buffer": 1}, link: true, pause: logPace}
	lines := func() int { return strings.Count(text.String(), "msg=trouble") }
	n := uint64(1)
	d.note(map[string]uint64{"dropped_no_buffer": n}, true)
	require.Zero(t, lines())
	for range 600 {
		n++
		d.note(map[string]uint64{"dropped_no_buffer": n}, true)
	}
	require.Equal(t, 14, lines(), "the pauses are 2, 4, 8, 16, 32 s, and then a minute")
	require.Contains(t, text.String(), "dropped_no_buffer=60")
	for range int(2 * logRest / time.Second) {
		d.note(map[string]uint64{"dropped_no_buffer": n}, true)
	}
	before := lines()
	n++
	d.note(map[string]uint64{"dropped_no_buffer": n}, true)
	require.Equal(t, before+1, lines(), "at once again after a minute of peace")
	d.note(map[string]uint64{}, false)
	d.note(map[string]uint64{}, true)
	require.Contains(t, text.String(), `level=WARN msg="link down"`)
	require.Contains(t, text.String(), `level=INFO msg="link up"`)
}
