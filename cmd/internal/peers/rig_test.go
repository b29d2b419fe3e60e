package peers

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ndpip/cmd/internal/netns"
)

// The addresses: the stack's, and the kernel's.
const (
	stackIP  = "10.78.0.1"
	kernelIP = "10.78.0.2"
	length   = "/24"
)

// startTime is how long a child may take to open its port.
const startTime = 30 * time.Second

// rig is a child on the stack, and the kernel at the other end of its wire.
type rig struct {
	*process
	t      *testing.T
	wire   string
	port   string       // the interface that the stack is on
	peer   string       // the kernel's interface; a tap is both
	prog   *netns.Space // where the child runs
	kernel *netns.Space // where the kernel's end is
}

// wires are the kinds of wire that the kernel is at the other end of.
var wires = []string{"tap", "af_packet", "af_xdp"}

// overWires runs f over each, all at the same time.
func overWires(t *testing.T, f func(r *rig)) {
	netns.Need(t)
	for _, wire := range wires {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			f(newRig(t, wire, childConfig{}))
		})
	}
}

// newRig starts a child on a wire of its own.
func newRig(t *testing.T, wire string, cfg childConfig) *rig {
	t.Helper()
	r := &rig{t: t, wire: wire, port: "ndport", peer: "ndpeer", prog: netns.New(t)}
	cfg.Wire, cfg.Addr = wire+":"+r.port, stackIP+length
	if wire == "tap" {
		r.peer, r.kernel = r.port, r.prog
		r.process = startChild(t, r.prog, cfg)
		r.kernel.Appears(r.peer, startTime)
		r.kernel.Address(r.peer, kernelIP+length)
	} else {
		r.kernel = netns.New(t)
		r.prog.Veth(r.port, r.kernel, r.peer, kernelIP+length)
		r.process = startChild(t, r.prog, cfg)
	}
	t.Cleanup(func() { // before the child and the namespaces go
		if t.Failed() {
			ss, _ := exec.Command("ip", "netns", "exec", r.kernel.Name, "ss", "-tino").CombinedOutput()
			t.Logf("the kernel's connections:\n%s", ss)
			if ch, err := r.order(order{Do: "stats"}); err == nil {
				select {
				case a := <-ch:
					t.Logf("the stack: %s", a.Text)
				case <-time.After(time.Second):
				}
			}
		}
	})
	r.ready()
	return r
}

// process is a child, or a program that runs. It is killed when the test ends.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	out   bytes.Buffer // of a program; to be read when it has ended
	err   bytes.Buffer
	ended chan struct{}

	in      io.WriteCloser // of a child
	started chan struct{}
	mu      sync.Mutex // guards what follows
	last    int
	waiting map[int]chan answer
}

// startChild starts this binary again.
func startChild(t *testing.T, ns *netns.Space, cfg childConfig) *process {
	t.Helper()
	text, err := json.Marshal(cfg)
	require.NoError(t, err)
	p := newProcess(t, ns, os.Args[0])
	p.cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	p.in, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	p.cmd.Stderr = &p.err
	p.started, p.waiting = make(chan struct{}), map[int]chan answer{}
	require.NoError(t, p.cmd.Start())
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			var a answer
			if json.Unmarshal(s.Bytes(), &a) != nil {
				continue // a library's remark
			}
			if a.ID == 0 {
				close(p.started)
				continue
			}
			p.mu.Lock()
			p.waiting[a.ID] <- a
			p.mu.Unlock()
		}
		p.cmd.Wait()
		close(p.ended)
	}()
	return p
}

// start starts a program in a namespace, with standard input from stdin.
func start(t *testing.T, ns *netns.Space, stdin io.Reader, name string, args ...string) *process {
	t.Helper()
	_, err := exec.LookPath(name)
	require.NoError(t, err, "'go run ./cmd/dev test' installs what is needed")
	p := newProcess(t, ns, name, args...)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, &p.out, &p.err
	require.NoError(t, p.cmd.Start())
	go func() {
		p.cmd.Wait()
		close(p.ended)
	}()
	return p
}

func newProcess(t *testing.T, ns *netns.Space, name string, args ...string) *process {
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{t: t, cmd: ns.Command(ctx, name, args...), ended: make(chan struct{})}
	p.cmd.WaitDelay = time.Second
	// The programs of a script, and the children of a server, go with it.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Cancel = func() error { return syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }
	t.Cleanup(func() {
		if p.in != nil && !t.Failed() {
			p.stop()
		}
		if p.cmd.Process == nil {
			cancel()
			return
		}
		cancel()
		<-p.ended
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // what is left of its group
		if t.Failed() {
			t.Logf("%s: %v\n%s%s", strings.Join(append([]string{filepath.Base(name)}, args...), " "), p.cmd.ProcessState, tail(p.out.String()), tail(p.err.String()))
		}
	})
	return p
}

// tail is the end of a text.
func tail(s string) string {
	if len(s) > 4000 {
		s = "… " + s[len(s)-4000:]
	}
	return s
}

// ready waits until a child serves.
func (p *process) ready() {
	p.t.Helper()
	select {
	case <-p.started:
	case <-p.ended:
		require.Fail(p.t, "the child ended", "%s", p.err.String())
	case <-time.After(startTime):
		require.Fail(p.t, "the child does not get ready")
	}
}

// stop ends a child in order: it must take no more than two seconds.
func (p *process) stop() {
	p.in.Close()
	select {
	case <-p.ended:
		if !p.cmd.ProcessState.Success() {
			p.t.Errorf("the child ends with %v: %s", p.cmd.ProcessState, tail(p.err.String()))
		}
	case <-time.After(10 * time.Second):
		p.t.Errorf("the child does not end: %s", tail(p.err.String()))
	}
}

// ends waits for a program's success and gives its output.
func (p *process) ends(within time.Duration) string {
	p.t.Helper()
	select {
	case <-p.ended:
		require.True(p.t, p.cmd.ProcessState.Success(), "%s ends with %v: %s", p.cmd, p.cmd.ProcessState, p.err.String())
	case <-time.After(within):
		require.Fail(p.t, "it runs on", "%s after %v", p.cmd, within)
	}
	return p.out.String()
}

// send gives a child an order; the answer comes on the channel.
func (p *process) send(o order) <-chan answer {
	p.t.Helper()
	ch, err := p.order(o)
	require.NoError(p.t, err, "%s", p.err.String())
	return ch
}

func (p *process) order(o order) (<-chan answer, error) {
	ch := make(chan answer, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	o.ID = p.last
	p.waiting[o.ID] = ch
	text, err := json.Marshal(o)
	if err == nil {
		_, err = p.in.Write(append(text, '\n'))
	}
	return ch, err
}

// patience is how long a child may take over an order, on a machine that is busy with other tests.
const patience = 60 * time.Second

// await is the answer to an order.
func (p *process) await(ch <-chan answer) answer {
	p.t.Helper()
	select {
	case a := <-ch:
		return a
	case <-p.ended:
		require.Fail(p.t, "the child ended", "%s", p.err.String())
	case <-time.After(patience):
		require.Fail(p.t, "no answer", "after %v", patience)
	}
	return answer{}
}

// ask is an order that may fail.
func (p *process) ask(o order) answer {
	p.t.Helper()
	return p.await(p.send(o))
}

// must is an order that must not.
func (p *process) must(o order) answer {
	p.t.Helper()
	a := p.ask(o)
	require.Empty(p.t, a.Err, "%+v", o)
	return a
}

// shell runs a script on the kernel's side and gives what it prints.
func (r *rig) shell(t *testing.T, format string, args ...any) string {
	t.Helper()
	return start(t, r.kernel, nil, "bash", "-euo", "pipefail", "-c", fmt.Sprintf(format, args...)).ends(patience)
}

// eventually waits for cond.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !cond(); time.Sleep(20 * time.Millisecond) {
		require.True(t, time.Now().Before(end), "not within 20 s: %s", what)
	}
}

// listening waits until somebody on the kernel's side listens on a port.
func (r *rig) listening(port int) {
	r.t.Helper()
	eventually(r.t, "somebody listens", func() bool {
		return strings.Contains(r.kernel.Run("ss", "-Hltn", fmt.Sprintf("sport = :%d", port)), "LISTEN")
	})
}

// open waits until a service has n connections.
func (r *rig) open(port, n int) {
	r.t.Helper()
	eventually(r.t, fmt.Sprintf("%d connections", n), func() bool { return r.must(order{Do: "open", N: port}).N == n })
}

func kernelAt(port int) string { return fmt.Sprintf("%s:%d", kernelIP, port) }
func stackAt(port int) string  { return fmt.Sprintf("%s:%d", stackIP, port) }

// quiet checks at the end that all buffers have come back.
func (r *rig) quiet() {
	r.t.Helper()
	most := 0
	if r.wire == "af_xdp" {
		most = 64 // the driver keeps what it has sent until it sends again
	}
	var a answer
	eventually(r.t, "buffers come back", func() bool {
		a = r.must(order{Do: "stats"})
		return a.N <= most
	})
	r.t.Log(a.Text)
}
