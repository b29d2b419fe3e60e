package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// testDev is a dev on this tree that prints nowhere.
func testDev(t *testing.T) *dev {
	t.Helper()
	root, err := findRoot()
	require.NoError(t, err)
	goTool, err := findGo()
	require.NoError(t, err)
	return &dev{root: root, goTool: goTool, uid: os.Getuid(), out: &screen{w: &bytes.Buffer{}, width: 80}}
}

func printed(d *dev) string { return d.out.w.(*bytes.Buffer).String() }

func TestWrongUseIsOneLineAndTwo(t *testing.T) {
	for _, args := range [][]string{
		{}, {"tset"}, {"test", "--bogus"}, {"test", "extra"}, {"test", "--fuzztime", "soon"}, {"lint", "x"},
		{"test", "--only", "nothing"}, {"soak", "--time", "0s"}, {"soak", "--connections", "0"}, {"soak", "--size", "0"},
	} {
		err := realMain(args)
		var usage usageError
		require.True(t, errors.As(err, &usage), "%q: %v", args, err)
		require.NotContains(t, err.Error(), "\n")
		require.Equal(t, 2, report(io.Discard, err))
	}
	require.Equal(t, 1, report(io.Discard, errors.New("no compiler")))
	require.Equal(t, 0, report(io.Discard, nil))
}

func TestSkipsFileIsValid(t *testing.T) {
	_, err := parseSkips(skipsText)
	require.NoError(t, err)
}

func TestSkipRules(t *testing.T) {
	l, err := parseSkips("# comment\n\nunprivileged dpdk.TestTap* needs CAP_NET_ADMIN\nalways api.TestX/long_* too long\n")
	require.NoError(t, err)
	require.True(t, l.allowed("dpdk.TestTapEcho/64", []string{whenNoHuge, whenUnprivileged}))
	require.False(t, l.allowed("dpdk.TestTapEcho", []string{whenNoHuge}))
	require.False(t, l.allowed("other/dpdk.TestTapEcho", []string{whenUnprivileged}))
	require.True(t, l.allowed("api.TestX/long_1", nil))
	require.False(t, l.allowed("api.TestX", nil))

	require.Len(t, l.stale(), 2)
	l.seen("dpdk.TestTapEcho")
	l.seen("api.TestX")
	require.Empty(t, l.stale())

	for _, bad := range []string{"always dpdk.TestX", "sometimes dpdk.TestX for fun"} {
		_, err := parseSkips(bad)
		require.ErrorContains(t, err, "skips.txt:1")
	}
}

// events of a run with a pass, a skip, a failing subtest, and a package that does not build.
const sampleRun = `
{"Action":"start","Package":"ndpip/ring"}
{"Action":"run","Package":"ndpip/ring","Test":"TestA"}
{"Action":"output","Package":"ndpip/ring","Test":"TestA","Output":"    a_test.go:3: counted 1000 simulator seeds\n"}
{"Action":"pass","Package":"ndpip/ring","Test":"TestA","Elapsed":0.1}
{"Action":"run","Package":"ndpip/ring","Test":"TestB"}
{"Action":"output","Package":"ndpip/ring","Test":"TestB","Output":"    b_test.go:3: no tap here\n"}
{"Action":"skip","Package":"ndpip/ring","Test":"TestB","Elapsed":0}
{"Action":"run","Package":"ndpip/ring","Test":"TestC"}
{"Action":"run","Package":"ndpip/ring","Test":"TestC/one"}
{"Action":"pass","Package":"ndpip/ring","Test":"TestC/one","Elapsed":0}
{"Action":"run","Package":"ndpip/ring","Test":"TestC/two"}
{"Action":"output","Package":"ndpip/ring","Test":"TestC/two","Output":"    c_test.go:9: want 1, have 2\n"}
{"Action":"fail","Package":"ndpip/ring","Test":"TestC/two","Elapsed":0}
{"Action":"fail","Package":"ndpip/ring","Test":"TestC","Elapsed":0}
{"Action":"output","Package":"ndpip/ring","Output":"FAIL\n"}
{"Action":"fail","Package":"ndpip/ring","Elapsed":0.4}
{"ImportPath":"ndpip/tcp","Action":"build-output","Output":"tcp/x.go:1: undefined: y\n"}
{"Action":"output","Package":"ndpip/tcp","Output":"FAIL\tndpip/tcp [build failed]\n"}
{"Action":"fail","Package":"ndpip/tcp","Elapsed":0,"FailedBuild":"ndpip/tcp"}
`

func TestTestLogCounts(t *testing.T) {
	for _, c := range []struct {
		skips string
		want  tally
	}{
		{"always ring.TestB there is no tap", tally{passed: 2, failed: 2, skipped: 1}},
		{"nohuge ring.TestB there is no tap", tally{passed: 2, failed: 3}},
	} {
		d, total := testDev(t), &tally{}
		skips, err := parseSkips(c.skips)
		require.NoError(t, err)
		log := newTestLog(d, total, skips, nil)
		for line := range strings.Lines(sampleRun) {
			log.line(strings.TrimSpace(line))
		}
		require.Equal(t, c.want, tally{passed: total.passed, failed: total.failed, skipped: total.skipped})
		require.Equal(t, []string{"1000 simulator seeds"}, total.extra.lines())
		require.Contains(t, printed(d), "want 1, have 2")
		require.Contains(t, printed(d), "undefined: y")
		require.Empty(t, skips.stale())

		require.Error(t, total.close(d.out))
		lines := strings.Split(strings.TrimSpace(printed(d)), "\n")
		require.Regexp(t, `^\d+ passed, \d+ failed, \d+ skipped$`, lines[len(lines)-1])
	}
}

func TestTable(t *testing.T) {
	require.Equal(t, ""+
		"  wire    MSS  Gb/s  content\n"+
		"  ─────  ────  ────  ───────\n"+
		"  memif    64   2.1  equal\n"+
		"  tap    1460  18.0  equal\n",
		table([][]string{{"wire", "MSS", "Gb/s", "content"}, {"memif", "64", "2.1", "equal"}, {"tap", "1460", "18.0", "equal"}}))
}

func TestJobEndsWithItsWholeGroup(t *testing.T) {
	d := testDev(t)
	begin := time.Now()
	// The shell's child ignores SIGTERM and holds the output open.
	err := d.run(t.Context(), job{
		argv:  []string{"sh", "-c", "echo first; (trap '' TERM; sleep 60) & echo $!; wait"},
		limit: 300 * time.Millisecond, grace: 300 * time.Millisecond,
	})
	require.Less(t, time.Since(begin), 5*time.Second)
	require.ErrorContains(t, err, "did not end within 300ms")
	require.ErrorContains(t, err, "first")
}

func TestJobSaysWhatFailed(t *testing.T) {
	d := testDev(t)
	err := d.run(t.Context(), job{argv: []string{"sh", "-c", "echo no such port; exit 3"}})
	require.ErrorContains(t, err, "exit status 3")
	require.ErrorContains(t, err, "no such port")

	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	require.ErrorContains(t, d.run(ctx, job{argv: []string{"sleep", "5"}}), "interrupted")
}

func TestProcessStop(t *testing.T) {
	d := testDev(t)
	p, err := d.start(t.Context(), job{argv: []string{"sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.05; done"}})
	require.NoError(t, err)
	time.Sleep(100 * time.Millisecond)
	took, status := p.stop()
	require.Less(t, took, time.Second)
	require.Zero(t, status)
}

// TestOrphanedDevStops kills the process that started dev, as happens to "go run" when it gets SIGTERM.
func TestOrphanedDevStops(t *testing.T) {
	if os.Getenv("NDPIP_DEV_ORPHAN") == "1" {
		ctx, stop := untilStopped()
		defer stop()
		os.Stdout.WriteString("ready\n")
		select {
		case <-ctx.Done():
			os.Stdout.WriteString("stopped\n")
		case <-time.After(20 * time.Second):
			os.Stdout.WriteString("left behind\n")
		}
		os.Exit(0)
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command("sh", "-c", exe+" -test.run=^TestOrphanedDevStops$ & wait")
	cmd.Env = append(os.Environ(), "NDPIP_DEV_ORPHAN=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	buf := make([]byte, 64)
	n, err := out.Read(buf)
	require.NoError(t, err)
	require.Equal(t, "ready\n", string(buf[:n]))
	require.NoError(t, cmd.Process.Kill())
	n, err = out.Read(buf)
	require.NoError(t, err)
	require.Equal(t, "stopped\n", string(buf[:n]))
	_ = cmd.Wait()
}
