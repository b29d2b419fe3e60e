package main_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"ndpip/cmd/internal/netns"
)

// startTime is how long a program may take to open its port: EAL starts in less than a second on an idle machine.
const startTime = 20 * time.Second

var programs struct {
	once      sync.Once
	perf, cat string
	err       error
}

// build builds the two programs once for all tests.
func build(t *testing.T) (perf, cat string) {
	t.Helper()
	p := &programs
	p.once.Do(func() {
		var dir string
		if dir, p.err = os.MkdirTemp("", "ndpip-programs"); p.err != nil {
			return
		}
		p.perf, p.cat = filepath.Join(dir, "ndpip-perf"), filepath.Join(dir, "ndpip-cat")
		for out, pkg := range map[string]string{p.perf: ".", p.cat: "../ndpip-cat"} {
			if text, err := exec.Command("go", "build", "-o", out, pkg).CombinedOutput(); err != nil {
				p.err = &buildError{pkg, string(text)}
				return
			}
		}
	})
	require.NoError(t, p.err)
	return p.perf, p.cat
}

type buildError struct{ pkg, text string }

func (e *buildError) Error() string { return "go build " + e.pkg + ": " + e.text }

func TestMain(m *testing.M) {
	status := m.Run()
	if programs.perf != "" {
		os.RemoveAll(filepath.Dir(programs.perf))
	}
	os.Exit(status)
}

// lines collects what a program prints.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// process is a program that runs.
type process struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err lines
	ended    chan struct{}
	status   int
}

// start runs a program, in a namespace unless ns is nil, with stdin as its input. It is killed when the test ends.
func start(t *testing.T, ns *netns.Space, stdin io.Reader, name string, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{t: t, ended: make(chan struct{})}
	if ns != nil {
		p.cmd = ns.Command(ctx, name, args...)
	} else {
		p.cmd = exec.CommandContext(ctx, name, args...)
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, &p.out, &p.err
	require.NoError(t, p.cmd.Start())
	go func() {
		p.cmd.Wait()
		p.status = p.cmd.ProcessState.ExitCode()
		close(p.ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-p.ended
		if t.Failed() {
			t.Logf("%s %s: status %d\nstdout: %s\nstderr: %s", filepath.Base(name), strings.Join(args, " "), p.status,
				tail(p.out.String()), tail(p.err.String()))
		}
	})
	return p
}

// tail is the end of a long text, or the length of what is no text.
func tail(s string) string {
	const most = 2000
	if !utf8.ValidString(s) {
		return strconv.Itoa(len(s)) + " bytes"
	}
	if len(s) > most {
		return "… " + s[len(s)-most:]
	}
	return s
}

// listens waits until the program says that a peer may come.
func (p *process) listens() {
	p.t.Helper()
	p.says(&p.err, "listening on", startTime)
}

// says waits until l, the program's standard output or error, contains text.
func (p *process) says(l *lines, text string, within time.Duration) {
	p.t.Helper()
	for deadline := time.Now().Add(within); !strings.Contains(l.String(), text); time.Sleep(5 * time.Millisecond) {
		select {
		case <-p.ended:
			require.Contains(p.t, l.String(), text, "the program ended")
			return
		default:
		}
		require.True(p.t, time.Now().Before(deadline), "no %q after %v", text, within)
	}
}

// ends waits for the program's end and checks its exit status.
func (p *process) ends(status int, within time.Duration) {
	p.t.Helper()
	select {
	case <-p.ended:
		require.Equal(p.t, status, p.status, "exit status; stderr: %s", p.err.String())
	case <-time.After(within):
		require.Fail(p.t, "the program runs on", "after %v; stderr: %s", within, p.err.String())
	}
}

// terminate sends SIGTERM; the program must end within a second with status 0.
func (p *process) terminate() {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGTERM))
	p.ends(0, time.Second)
}

// fileSize is the size of the files that are sent.
func fileSize() int {
	if testing.Short() {
		return 4 << 20
	}
	return 64 << 20
}

// randomFile makes a file of random bytes and gives its SHA-256.
func randomFile(t *testing.T, size int) (name, sum string) {
	t.Helper()
	b := make([]byte, size)
	rand.Read(b)
	name = filepath.Join(t.TempDir(), "random")
	require.NoError(t, os.WriteFile(name, b, 0o600))
	h := sha256.Sum256(b)
	return name, hex.EncodeToString(h[:])
}

// sumOf is the SHA-256 of a file.
func sumOf(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	return sumText(string(b))
}

// sumText is the SHA-256 of a text.
func sumText(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}
