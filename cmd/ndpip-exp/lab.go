package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ndpip/cmd/internal/hosts"
)

// lab does the runs of a plan.
type lab struct {
	root   string
	st     *store
	stderr io.Writer

	make  func(ctx context.Context, stacks []string) error // puts the programs into tmp
	tmp   string                                           // sockets, and the programs
	wires int
}

// perform does the runs that are left. Its error is one that stops all of them; that of a run is stored with it. When
// ctx ends, it returns nil early.
func (l *lab) perform(ctx context.Context) (err error) {
	left := l.st.left()
	if len(left) == 0 {
		return nil
	}
	if l.tmp, err = os.MkdirTemp("", "ndpip-exp-"); err != nil {
		return err
	}
	defer os.RemoveAll(l.tmp)
	removeStale()
	p := &l.st.about.Plan
	if slices.Contains(p.Stacks, "linux") && p.Hosts == nil {
		for _, tool := range []string{"ip", "ethtool"} {
			if _, err := exec.LookPath(tool); err != nil {
				return fmt.Errorf("the stack linux needs the program %s: install iproute2 and ethtool", tool)
			}
		}
	}
	if p.Hosts == nil {
		if err := l.make(ctx, p.Stacks); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
	total := p.Runs * len(p.cells())
	each := time.Duration((p.Seconds + p.Warmup + 1.5) * float64(time.Second))
	fmt.Fprintf(l.stderr, "%s of %d, seed %d; about %s\n", count(len(left), "run"), total, p.Seed, round(each*time.Duration(len(left))))
	begun := time.Now()
	for i, j := range left {
		r := l.run(ctx, j)
		if ctx.Err() != nil {
			return nil // a run that was cut short is none
		}
		if err := l.st.add(r); err != nil {
			return err
		}
		each = time.Since(begun) / time.Duration(i+1)
		fate := fmt.Sprintf("%.3g Gb/s", r.BPS/1e9)
		if p.Bidir {
			fate += fmt.Sprintf(" and %.3g back", r.BackBPS/1e9)
		}
		if r.Error != "" {
			fate = "failed: " + r.Error
		}
		fmt.Fprintf(l.stderr, "[%*d/%d] %s, run %d: %s; %s left\n", len(fmt.Sprint(total)), total-len(left)+i+1, total, j.cell, j.run, fate,
			round(each*time.Duration(len(left)-i-1)))
	}
	return nil
}

func round(d time.Duration) time.Duration { return d.Round(time.Second) }

// build builds the programs of the stacks.
func (l *lab) build(ctx context.Context, names []string) error {
	fmt.Fprintln(l.stderr, "building the programs")
	argv := []string{"build", "-buildvcs=false", "-o", l.tmp + "/"}
	for _, name := range names {
		argv = append(argv, stacks[name].source())
	}
	return goCommand(ctx, l.root, nil, argv...)
}

// goCommand runs the go command in a folder.
func goCommand(ctx context.Context, dir string, stdin io.Reader, args ...string) error {
	tool, err := exec.LookPath("go")
	if err != nil {
		tool = "/usr/local/go/bin/go"
	}
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Dir, cmd.Stdin = dir, stdin
	// Newer DPDK's pkg-config gives this flag, which the go command takes from no package unless it is allowed.
	allow := "-mrtm"
	if own := os.Getenv("CGO_CFLAGS_ALLOW"); own != "" {
		allow = own + "|" + allow
	}
	cmd.Env = append(os.Environ(), "CGO_CFLAGS_ALLOW="+allow, "PWD="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// run does one run.
func (l *lab) run(ctx context.Context, j job) result {
	r := result{Type: "run", Time: time.Now(), Cell: j.cell, Run: j.run}
	if err := l.measure(ctx, j.cell, &r); err != nil {
		r.Error = strings.Join(strings.Fields(err.Error()), " ")
	}
	return r
}

// program is where build puts a stack's program.
func (l *lab) program(name string) string {
	return filepath.Join(l.tmp, filepath.Base(stacks[name].source()))
}

// receiver and sender are the commands of the two programs.
func (w *wire) receiver(c cell) []string {
	return append([]string{w.rx.program}, stacks[c.Rx].receiver(w.rx, c)...)
}

func (w *wire) sender(c cell) []string {
	return append([]string{w.tx.program}, stacks[c.Tx].sender(w.tx, c)...)
}

// dryRun prints what would be done.
func (l *lab) dryRun(out io.Writer) {
	p := &l.st.about.Plan
	if p.Hosts != nil {
		for _, h := range []*hosts.Host{&p.Hosts.Sender, &p.Hosts.Receiver} {
			fmt.Fprintf(out, "look at %s: programs", h.SSH)
			if h.Driver != "" {
				fmt.Fprintf(out, "; whether %s is bound to %s", h.PCI, h.Driver)
			}
			fmt.Fprintln(out)
		}
	}
	for _, c := range p.cells() {
		w := l.newWire(c)
		fmt.Fprintf(out, "%s (%s), %s of %g s\n", c, w.name, count(p.Runs, "run"), p.Seconds)
		fmt.Fprintf(out, "  receiver, %s: %s\n", w.rx.place, quoteAll(w.receiver(c)))
		fmt.Fprintf(out, "  sender, %s: %s\n", w.tx.place, quoteAll(w.sender(c)))
	}
}

// measure starts the receiver and then the sender, lets them run, and reads the receiver's lines.
func (l *lab) measure(ctx context.Context, c cell, r *result) error {
	p := &l.st.about.Plan
	// Nothing may take longer than this; many connections take a while to open.
	ctx, cancel := context.WithTimeout(ctx, time.Duration((p.Seconds+p.Warmup+60)*float64(time.Second)))
	defer cancel()
	w := l.newWire(c)
	defer w.remove()
	if err := w.up(ctx, c); err != nil {
		return err
	}
	r.Wire = w.name
	recv, err := start(ctx, w.rx.place, w.receiver(c))
	if err != nil {
		return fmt.Errorf("receiver: %w", err)
	}
	defer recv.stop()
	if err := recv.listens(ctx, stacks[c.Rx].source() != ""); err != nil {
		return err
	}
	if c.Rx == "ndpip" {
		if err := w.started(ctx, recv); err != nil {
			return err
		}
	}
	send, err := start(ctx, w.tx.place, w.sender(c))
	if err != nil {
		return fmt.Errorf("sender: %w", err)
	}
	defer send.stop()
	if c.Tx == "ndpip" && c.Rx != "ndpip" {
		if err := w.started(ctx, send); err != nil {
			return err
		}
	}
	measured, err := watch(ctx, p, c, recv, send)
	if err != nil {
		return err
	}
	back := send.intervals() // the other direction is what the sender receives, in its last lines
	back = back[max(0, len(back)-len(measured)):]
	// The sender first, so that the receiver sees the end of each stream.
	send.stop()
	recv.stop()
	if err := errors.Join(send.fault(), recv.fault()); err != nil {
		r.Note = strings.Join(strings.Fields(err.Error()), " ") // what was measured before stands
	}
	for _, m := range measured {
		r.Seconds += m.Seconds
		r.BPS += m.BPS * m.Seconds
		r.PPS += m.PPS * m.Seconds
	}
	r.BPS /= r.Seconds
	r.PPS /= r.Seconds
	if p.Bidir {
		var seconds float64
		for _, m := range back {
			seconds += m.Seconds
			r.BackBPS += m.BackBPS * m.Seconds
		}
		r.BackBPS /= max(seconds, interval)
	}
	r.Least, r.Most = recv.total.Least, recv.total.Most
	r.Sender, r.Recv = send.usage(), recv.usage()
	switch {
	case r.BPS == 0:
		return errors.New("nothing arrived in the measured time")
	case p.Bidir && r.BackBPS == 0:
		return errors.New("nothing came back in the measured time")
	case c.Protocol == "tcp" && r.Note == "" && recv.total.Type != "" && recv.total.Connections != c.Connections:
		return fmt.Errorf("the receiver had %s, not %d", count(recv.total.Connections, "connection"), c.Connections)
	}
	return nil
}

// watch waits until the receiver has printed lines for the measured time, with data moving on all connections and
// after the warm-up, and gives these.
func watch(ctx context.Context, p *plan, c cell, recv, send *process) ([]line, error) {
	for {
		var seconds float64
		var measured []line
		all := recv.intervals()
		for _, l := range all {
			if c.Protocol == "tcp" && !l.whole(c.Connections) || l.Bytes == 0 {
				seconds, measured = 0, nil // a connection that ended and came back starts the run again
				continue
			}
			if seconds += l.Seconds; seconds > p.Warmup+interval/2 {
				measured = append(measured, l)
			}
		}
		if seconds >= p.Warmup+p.Seconds && len(measured) > 0 {
			return measured, nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-send.done:
			return nil, errors.Join(errors.New("the sender ended before the time was up"), send.fault(), errors.New(send.last()))
		case <-recv.done:
			return nil, errors.Join(errors.New("the receiver ended before the time was up"), recv.fault(), errors.New(recv.last()))
		case <-ctx.Done():
			open, moving := 0, 0
			if len(all) > 0 {
				last := &all[len(all)-1]
				open, moving = last.Connections, last.Connections
				if last.Moving != nil {
					moving = *last.Moving
				}
			}
			return nil, fmt.Errorf("too late: %d of %s were up, %d had moved data, and %.1f s were measured%s", open, count(c.Connections, "connection"),
				moving, seconds, send.last())
		}
	}
}
