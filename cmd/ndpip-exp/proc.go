package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
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
	Moving          *int    `json:"moving"` // of these, those that have moved data; nil where the program does not say
	Bytes           uint64  `json:"bytes"`
	Retransmissions uint64  `json:"retransmissions"`
	Drops           uint64  `json:"drops"`
	Least           uint64  `json:"bytes_least"`
	Most            uint64  `json:"bytes_most"`
	BackBPS         float64 `json:"back_bps"`
	CPU             float64 `json:"cpu_seconds"`
	RSS             int64   `json:"rss_bytes"`
}

// whole says whether all of so many connections are up, and have moved data as far as is known.
func (l *line) whole(connections int) bool {
	return l.Connections == connections && (l.Moving == nil || *l.Moving == connections)
}

// process is a program that was started.
type process struct {
	cmd    *exec.Cmd
	name   string
	stdin  io.Closer // of a remote program, which ends with it
	begun  time.Time
	done   chan struct{}
	took   time.Duration // after done
	err    error         // after done
	asked  atomic.Bool   // stop was called
	ready  chan struct{} // closed when it says that a peer may come
	mu     sync.Mutex
	lines  []line // intervals
	total  line   // its summary
	stderr []string
	once   sync.Once // of ready
	text   uint64    // bytes, of lines that are text
}

// start starts a program at a place. It gets SIGTERM when ctx ends, and it ends with this one.
func start(ctx context.Context, at place, argv []string) (*process, error) {
	p := &process{name: filepath.Base(argv[0]), done: make(chan struct{}), ready: make(chan struct{})}
	if at.remote() {
		p.name += " on " + at.host
	}
	argv = at.command(argv)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	p.cmd = cmd
	if at.remote() {
		var err error
		if p.stdin, err = cmd.StdinPipe(); err != nil {
			return nil, err
		}
	}
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
		for in := bufio.NewScanner(stderr); in.Scan(); {
			if strings.HasPrefix(in.Text(), "listening on ") || strings.HasPrefix(in.Text(), "waiting for datagrams on ") {
				p.say()
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

// say notes that a peer may come.
func (p *process) say() { p.once.Do(func() { close(p.ready) }) }

// take reads a line: JSON, or "pps=N; bps=N; connections=N;" for a second.
func (p *process) take(b []byte) {
	var l line
	if json.Unmarshal(b, &l) != nil {
		l = line{Type: "interval", Seconds: 1}
		if n, _ := fmt.Sscanf(string(b), "pps=%f; bps=%f; connections=%d;", &l.PPS, &l.BPS, &l.Connections); n < 3 {
			return
		}
		p.text += uint64(l.BPS / 8)
		l.Bytes = p.text
	}
	p.say()
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
	p.asked.Store(true)
	if p.stdin != nil {
		_ = p.stdin.Close()
	} else {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
	}
	select {
	case <-p.done:
	case <-time.After(8 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// fault is why the program failed, or nil. That it died of the SIGTERM that stop sends is no failure.
func (p *process) fault() error {
	if p.err == nil {
		return nil
	}
	if s := p.cmd.ProcessState; p.asked.Load() && s != nil {
		w, _ := s.Sys().(syscall.WaitStatus)
		if w.Signaled() && w.Signal() == syscall.SIGTERM || s.ExitCode() == 128+int(syscall.SIGTERM) {
			return nil
		}
	}
	return fmt.Errorf("%s: %w%s", p.name, p.err, p.last())
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
	if p.stdin != nil { // what is known here is that of ssh
		u.CPU, u.RSS = p.total.CPU, p.total.RSS
		return u
	}
	s := p.cmd.ProcessState
	u.CPU = (s.UserTime() + s.SystemTime()).Seconds()
	if r, ok := s.SysUsage().(*syscall.Rusage); ok {
		u.RSS = r.Maxrss << 10
	}
	return u
}

// listens waits until a receiver says that its peer may come. One that does not say such things is given a while.
func (p *process) listens(ctx context.Context, says bool) error {
	within := 20 * time.Second
	if !says {
		within = 2 * time.Second
	}
	select {
	case <-p.ready:
		return nil
	case <-p.done:
		return errors.Join(errors.New("the receiver ended at once"), p.fault())
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(within):
		if !says {
			return nil
		}
		return fmt.Errorf("%s is not ready after %v%s", p.name, within, p.last())
	}
}
