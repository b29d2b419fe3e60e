package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

func newDev(anywhere bool) (*dev, error) {
	if anywhere {
		dir, err := os.Getwd()
		return &dev{root: dir, uid: os.Getuid(), out: newScreen(os.Stdout)}, err
	}
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	goTool, err := findGo()
	if err != nil {
		return nil, err
	}
	allowCgoFlags()
	return &dev{root: root, goTool: goTool, uid: os.Getuid(), out: newScreen(os.Stdout)}, nil
}

// cgoAllow are the compiler flags that newer DPDK's pkg-config gives (seen with 24.11) and that the go command takes
// from no package unless the environment allows them.
const cgoAllow = "-mrtm"

// allowCgoFlags allows them to every go command that dev starts, besides what the user allows.
func allowCgoFlags() {
	allow := cgoAllow
	if own := os.Getenv("CGO_CFLAGS_ALLOW"); own != "" {
		allow = own + "|" + cgoAllow
	}
	os.Setenv("CGO_CFLAGS_ALLOW", allow)
}

// findRoot goes up from the working directory to the folder with ndpip's go.mod.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		text, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module ndpip\n") {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", usagef("%s is not inside ndpip's source tree: change to the folder with its go.mod", dir)
		}
	}
}

// findGo prefers the go command of PATH ("go run" puts its own there first).
func findGo() (string, error) {
	if path, err := exec.LookPath("go"); err == nil {
		return path, nil
	}
	if path := "/usr/local/go/bin/go"; isFile(path) {
		return path, nil
	}
	return "", errors.New("the go command is not in PATH: add the bin folder of your Go installation to it")
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// job is a command to run. It gets no standard input, a process group of its own, and an end: SIGTERM when the
// context ends or the limit is over, and SIGKILL to the whole group grace later.
type job struct {
	argv  []string
	dir   string
	env   []string // added to the environment
	limit time.Duration
	grace time.Duration // default 3 s
	line  func(string)  // called with each line of standard output and standard error
	user  *syscall.Credential
}

// jobError is a command that failed, with the end of what it printed.
type jobError struct {
	argv []string
	why  string
	tail string
}

func (e *jobError) Error() string {
	msg := fmt.Sprintf("%s: %s", strings.Join(e.argv, " "), e.why)
	if e.tail != "" {
		msg += "\n" + indent(e.tail)
	}
	return msg
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ")
}

// tailLines is how much of a failed command's output its error shows.
const tailLines = 40

// process is a job that was started.
type process struct {
	job    job
	cmd    *exec.Cmd
	cancel context.CancelFunc
	done   chan struct{}
	err    error // after done

	mu    sync.Mutex
	lines []string // the last tailLines
}

// start starts a job; the caller waits for it with wait.
func (d *dev) start(ctx context.Context, j job) (*process, error) {
	if j.limit == 0 {
		j.limit = 2 * time.Minute
	}
	if j.grace == 0 {
		j.grace = 3 * time.Second
	}
	if j.dir == "" {
		j.dir = d.root
	}
	limited, cancel := context.WithTimeout(ctx, j.limit)
	p := &process{job: j, cancel: cancel, done: make(chan struct{})}
	cmd := exec.CommandContext(limited, j.argv[0], j.argv[1:]...)
	cmd.Dir = j.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "PWD="+j.dir)
	cmd.Env = append(cmd.Env, j.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: j.user}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = j.grace
	pr, pw := io.Pipe()
	cmd.Stdout, cmd.Stderr = pw, pw
	p.cmd = cmd
	if err := cmd.Start(); err != nil {
		cancel()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, &jobError{argv: j.argv, why: err.Error()}
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.readLines(pr)
	}()
	go func() {
		err := cmd.Wait()
		// Whatever of the group is left had its time; the group is ours, so nothing else can be hit.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		pw.Close()
		<-read
		p.err = p.explain(ctx, limited, err)
		cancel()
		close(p.done)
	}()
	return p, nil
}

func (p *process) readLines(r io.Reader) {
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := in.ReadString('\n')
		if line = strings.TrimRight(line, "\r\n"); line != "" || err == nil {
			p.mu.Lock()
			if len(p.lines) == tailLines {
				p.lines = p.lines[1:]
			}
			p.lines = append(p.lines, line)
			p.mu.Unlock()
			if p.job.line != nil {
				p.job.line(line)
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *process) explain(outer, limited context.Context, err error) error {
	if err == nil {
		return nil
	}
	why := err.Error()
	switch {
	case outer.Err() != nil:
		return context.Cause(outer)
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		why = fmt.Sprintf("did not end within %s and was stopped", p.job.limit)
	}
	return &jobError{argv: p.job.argv, why: why, tail: p.tail()}
}

func (p *process) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// wait waits for the end of the job.
func (p *process) wait() error {
	<-p.done
	return p.err
}

// ended says whether the job is over already.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// stop ends the job with SIGTERM to its group, and SIGKILL if that does not help; it returns the time that it took
// and the exit status.
func (p *process) stop() (time.Duration, int) {
	begin := time.Now()
	if !p.ended() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(p.job.grace):
			_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
			<-p.done
		}
	}
	p.cancel()
	return time.Since(begin), p.cmd.ProcessState.ExitCode()
}

// run runs a job to its end.
func (d *dev) run(ctx context.Context, j job) error {
	p, err := d.start(ctx, j)
	if err != nil {
		return err
	}
	return p.wait()
}

// output runs a job and gives what it printed.
func (d *dev) output(ctx context.Context, j job) (string, error) {
	var b strings.Builder
	j.line = func(s string) { b.WriteString(s + "\n") }
	err := d.run(ctx, j)
	return b.String(), err
}

// goJob is a job for the go command. -buildvcs=false: a tree that belongs to another user than the one who builds is
// no fault, and nothing here reads the stamp.
func (d *dev) goJob(limit time.Duration, args ...string) job {
	flags := strings.TrimSpace(os.Getenv("GOFLAGS") + " -buildvcs=false")
	return job{argv: append([]string{d.goTool}, args...), limit: limit, env: []string{"GOFLAGS=" + flags}}
}

// cores is how many CPUs this process may use.
func cores() int { return runtime.NumCPU() }

// attach runs a command on this process's own terminal, without a limit; when the context ends it gets SIGTERM.
func (d *dev) attach(ctx context.Context, dir string, argv []string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PWD="+dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return exitError(exit.ExitCode())
	}
	return err
}

// exitError is the status of a command that has said on the terminal what went wrong.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }
