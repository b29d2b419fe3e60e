package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// line is what the programs print, of any type.
type line struct {
	Type            string  `json:"type"`
	Seconds         float64 `json:"seconds"`
	PPS             float64 `json:"pps"`
	BPS             float64 `json:"bps"`
	Connections     int     `json:"connections"`
	Bytes           uint64  `json:"bytes"`
	Retransmissions uint64  `json:"retransmissions"`
	Drops           uint64  `json:"drops"`
	Least           uint64  `json:"bytes_least"`
	Most            uint64  `json:"bytes_most"`
}

// process is a program that was started.
type process struct {
	cmd    *exec.Cmd
	begun  time.Time
	done   chan struct{}
	took   time.Duration // after done
	err    error         // after done
	ready  chan struct{} // closed when it says that a peer may come
	mu     sync.Mutex
	lines  []line // intervals
	total  line   // its summary
	stderr []string
}

// start starts a program, in a namespace unless that is "". It gets SIGTERM when ctx ends, and it ends with this one.
func start(ctx context.Context, ns string, argv ...string) (*process, error) {
	if ns != "" {
		argv = append([]string{"ip", "netns", "exec", ns}, argv...)
	}
	p := &process{done: make(chan struct{}), ready: make(chan struct{})}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	p.cmd = cmd
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.begun = time.Now()
	var readers sync.WaitGroup
	readers.Go(func() {
		for in := bufio.NewScanner(stdout); in.Scan(); {
			p.take(in.Bytes())
		}
	})
	readers.Go(func() {
		said := false
		for in := bufio.NewScanner(stderr); in.Scan(); {
			if !said && (strings.HasPrefix(in.Text(), "listening on ") || strings.HasPrefix(in.Text(), "waiting for datagrams on ")) {
				said = true
				close(p.ready)
			}
			p.mu.Lock()
			p.stderr = append(p.stderr, in.Text())
			p.mu.Unlock()
		}
	})
	go func() {
		readers.Wait()
		p.err = cmd.Wait()
		p.took = time.Since(p.begun)
		close(p.done)
	}()
	return p, nil
}

func (p *process) take(b []byte) {
	var l line
	if json.Unmarshal(b, &l) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch l.Type {
	case "interval":
		p.lines = append(p.lines, l)
	case "summary":
		p.total = l
	}
}

// intervals are those of so far.
func (p *process) intervals() []line {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]line(nil), p.lines...)
}

// stop asks the program to end, and makes it.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(8 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// fault is why the program failed, or nil.
func (p *process) fault() error {
	if p.err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w%s", p.name(), p.err, p.last())
}

func (p *process) name() string {
	for _, a := range p.cmd.Args {
		if strings.HasSuffix(a, "-perf") {
			return filepath.Base(a)
		}
	}
	return p.cmd.Args[0]
}

// last is the last that it said on standard error.
func (p *process) last() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.stderr) == 0 {
		return ""
	}
	return ": " + p.stderr[len(p.stderr)-1]
}

// usage is what it took; it has ended.
func (p *process) usage() usage {
	u := usage{Wall: p.took.Seconds(), Bytes: p.total.Bytes, Retransmissions: p.total.Retransmissions, Drops: p.total.Drops}
	s := p.cmd.ProcessState
	u.CPU = (s.UserTime() + s.SystemTime()).Seconds()
	if r, ok := s.SysUsage().(*syscall.Rusage); ok {
		u.RSS = r.Maxrss << 10
	}
	return u
}

// listens waits until a receiver says that its peer may come.
func (p *process) listens(ctx context.Context) error {
	const within = 20 * time.Second
	select {
	case <-p.ready:
		return nil
	case <-p.done:
		return errors.Join(errors.New("the receiver ended at once"), p.fault())
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(within):
		return fmt.Errorf("%s is not ready after %v%s", p.name(), within, p.last())
	}
}
