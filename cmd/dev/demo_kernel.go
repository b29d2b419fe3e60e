package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The namespace's link: the tap is the kernel's end, and the other end is ours.
const (
	tapName   = "ndpip0"
	tapOurs   = "10.89.0.1"
	tapKernel = "10.89.0.2"
	tapMSS    = 1460 // of an MTU of 1500
)

// kernel moves the file from the kernel to ndpip and back.
func (r *demo) kernel() error {
	ns, remove, err := r.d.makeNamespace(r.ctx, fmt.Sprintf("ndpip-demo-%d", os.Getpid()))
	if err != nil {
		return err
	}
	defer remove()
	if err := r.fromKernel(ns); err != nil {
		return err
	}
	return r.toKernel(ns)
}

// fromKernel is ping, and then the file with socat.
func (r *demo) fromKernel(ns string) error {
	out := filepath.Join(r.dir, "from-kernel")
	defer os.Remove(out)
	recv, err := r.d.startPerf(r.ctx, time.Minute, ns, r.perf, "recv", "--wire", "tap:"+tapName, "--bind-ip", tapOurs+"/24", "--out", out, "--sha256")
	if err != nil {
		return err
	}
	defer recv.stop()
	if err := r.d.tapUp(r.ctx, ns, recv.process); err != nil {
		return err
	}
	r.d.out.Status("ping")
	answer, err := r.d.output(r.ctx, inNamespace(ns, 20*time.Second, commandPath("ping"), "-c", "5", "-i", "0.2", "-W", "2", tapOurs))
	if err != nil {
		return err
	}
	for line := range strings.Lines(answer) {
		if strings.Contains(line, "packet loss") {
			r.d.out.Printf("  ping: %s", strings.TrimSpace(line))
		}
	}
	socat, err := r.d.start(r.ctx, inNamespace(ns, time.Minute, "socat", "-u", "OPEN:"+r.file, "TCP:"+tapOurs+":5001"))
	if err != nil {
		return err
	}
	defer socat.stop()
	if err := r.d.watch("from the kernel, file", recv, recv.process); err != nil {
		return err
	}
	if err := socat.wait(); err != nil {
		return err
	}
	if err := r.compare(out, recv.sums); err != nil {
		return err
	}
	r.row("to ndpip", "kernel", "ndpip", "tap", tapMSS, recv.summary)
	return nil
}

// toKernel sends the file to a socat that listens.
func (r *demo) toKernel(ns string) error {
	out := filepath.Join(r.dir, "to-kernel")
	defer os.Remove(out)
	socat, err := r.d.start(r.ctx, inNamespace(ns, time.Minute, "socat", "-u", "TCP-LISTEN:5001,reuseaddr", "CREATE:"+out))
	if err != nil {
		return err
	}
	defer socat.stop()
	send, err := r.d.startPerf(r.ctx, time.Minute, ns, r.perf, "send", "--wire", "tap:"+tapName, "--bind-ip", tapOurs+"/24", "--connect-ip", tapKernel, "--file", r.file, "--sha256")
	if err != nil {
		return err
	}
	defer send.stop()
	if err := r.d.tapUp(r.ctx, ns, send.process); err != nil {
		return err
	}
	if err := r.d.watch("to the kernel, file", send, send.process); err != nil {
		return err
	}
	if err := socat.wait(); err != nil {
		return err
	}
	if err := r.compare(out, send.sums); err != nil {
		return err
	}
	r.row("to kernel", "ndpip", "kernel", "tap", tapMSS, send.summary)
	return nil
}

// watch shows a program's rate until p has ended.
func (d *dev) watch(what string, of *perf, p *process) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.done:
			return p.wait()
		case <-tick.C:
			d.out.Status("%s: %s", what, of.now().rate())
		}
	}
}

// makeNamespace makes a network namespace; remove takes it away, also after the context has ended.
func (d *dev) makeNamespace(ctx context.Context, name string) (ns string, remove func(), err error) {
	ip := commandPath("ip")
	if err := d.run(ctx, job{argv: []string{ip, "netns", "add", name}}); err != nil {
		return "", nil, fmt.Errorf("%w\n    mend: network namespaces need root with CAP_SYS_ADMIN (in a container: --privileged)", err)
	}
	remove = func() {
		_ = d.run(context.WithoutCancel(ctx), job{argv: []string{ip, "netns", "delete", name}, limit: 10 * time.Second})
	}
	if err := d.run(ctx, job{argv: []string{ip, "-n", name, "link", "set", "lo", "up"}}); err != nil {
		remove()
		return "", nil, err
	}
	return name, remove, nil
}

// inNamespace is a command that runs in a network namespace.
func inNamespace(ns string, limit time.Duration, argv ...string) job {
	return job{argv: append([]string{commandPath("ip"), "netns", "exec", ns}, argv...), limit: limit}
}

// tapUp gives the kernel's end its address, as soon as the program that makes the tap has made it.
func (d *dev) tapUp(ctx context.Context, ns string, maker *process) error {
	ip := commandPath("ip")
	begin := time.Now()
	for d.run(ctx, job{argv: []string{ip, "-n", ns, "link", "show", "dev", tapName}}) != nil {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case maker.ended():
			if err := maker.wait(); err != nil {
				return err
			}
			return &jobError{argv: maker.job.argv, why: "ended before it made its tap", tail: maker.tail()}
		case time.Since(begin) > 15*time.Second:
			return &jobError{argv: maker.job.argv, why: "made no interface " + tapName + " within 15 s", tail: maker.tail()}
		}
		time.Sleep(50 * time.Millisecond)
	}
	for _, args := range [][]string{
		{"addr", "add", tapKernel + "/24", "dev", tapName},
		{"link", "set", "dev", tapName, "up"},
	} {
		if err := d.run(ctx, job{argv: append([]string{ip, "-n", ns}, args...)}); err != nil {
			return err
		}
	}
	return nil
}
