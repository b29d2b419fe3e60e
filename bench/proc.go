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
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a program that was started: it ends when the context ends, when its time is over, or with this program.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error // after done
	kill func()

	mu   sync.Mutex
	tail []string // its last lines
}

const tailLines = 20

// startProcess starts a program with a process group of its own. line is called with each line that it prints.
func startProcess(ctx context.Context, limit time.Duration, line func(string), dir string, argv ...string) (*process, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	p := &process{done: make(chan struct{})}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	// The signal comes when the thread that started the process ends: the main thread, which the main goroutine keeps.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 2 * time.Second
	pr, pw := io.Pipe()
	cmd.Stdout, cmd.Stderr = pw, pw
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, err
	}
	p.cmd = cmd
	// The group is ours, so nothing else can be hit.
	p.kill = atEnd.add(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	read := make(chan struct{})
	go func() {
		defer close(read)
		in := bufio.NewScanner(pr)
		for in.Scan() {
			p.keep(in.Text())
			if line != nil {
				line(in.Text())
			}
		}
		_, _ = io.Copy(io.Discard, pr)
	}()
	go func() {
		err := cmd.Wait()
		p.kill()
		pw.Close()
		<-read
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("did not end within %s", limit)
		}
		p.err = err
		cancel()
		close(p.done)
	}()
	return p, nil
}

func (p *process) keep(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.tail) == tailLines {
		p.tail = p.tail[1:]
	}
	p.tail = append(p.tail, line)
}

// fail is an error about the process, with the end of what it printed.
func (p *process) fail(why error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Errorf("%s: %w\n    %s", strings.Join(p.cmd.Args, " "), why, strings.Join(p.tail, "\n    "))
}

// wait waits for the end.
func (p *process) wait() error {
	<-p.done
	if p.err != nil {
		return p.fail(p.err)
	}
	return nil
}

// stop asks the process to end and makes it end.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(3 * time.Second):
		p.kill()
		<-p.done
	}
	if p.err != nil {
		return p.fail(p.err)
	}
	return nil
}

// run runs a program to its end.
func (e *env) command(limit time.Duration, dir string, argv ...string) error {
	p, err := startProcess(e.ctx, limit, nil, dir, argv...)
	if err != nil {
		return err
	}
	return p.wait()
}

// goTool is the go command: in PATH, or where it usually is.
func goTool() (string, error) {
	if path, err := exec.LookPath("go"); err == nil {
		return path, nil
	}
	const usual = "/usr/local/go/bin/go"
	if _, err := os.Stat(usual); err == nil {
		return usual, nil
	}
	return "", errSkip{"the go command is not in PATH, and it builds what this row needs"}
}

// projectRoot goes up from the working directory to the folder with ndpip's go.mod.
func projectRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		text, e := os.ReadFile(filepath.Join(dir, "go.mod"))
		if e == nil && strings.HasPrefix(string(text), "module ndpip\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return "", errSkip{"it needs the source tree: start it with go run ./cmd/dev bench"}
}
