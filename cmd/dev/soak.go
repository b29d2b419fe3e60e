package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// soakOptions are the options of the verb soak.
type soakOptions struct {
	time                     time.Duration
	loss, duplicate, reorder string
	seed, connections, size  int
}

func soakVerb() verb {
	var o soakOptions
	return verb{
		name: "soak", what: "two processes over shared memory, for long, with frames lost, doubled and late: streams, memory and buffers are checked",
		flags: func(fs *flag.FlagSet) {
			fs.DurationVar(&o.time, "time", 30*time.Minute, "`TIME` to begin new connections in, such as 30m")
			fs.StringVar(&o.loss, "loss", "1%", "`SHARE` of the received frames that is dropped, at both ends")
			fs.StringVar(&o.duplicate, "duplicate", "1%", "`SHARE` that comes twice")
			fs.StringVar(&o.reorder, "reorder", "1%", "`SHARE` that comes late")
			fs.IntVar(&o.seed, "seed", 1, "`N`umber that the choice of these frames follows from")
			fs.IntVar(&o.connections, "connections", 32, "`N`umber of connections at once")
			fs.IntVar(&o.size, "size", 1024, "`KIB` that each connection carries")
		},
		run: func(ctx context.Context, d *dev, _ []string) error { return d.soak(ctx, o) },
	}
}

const (
	soakSample = 10 * time.Second
	soakSettle = time.Minute // until then, memory may grow
	soakGrowth = 5           // percent, from then to the end
)

// soak is one run of the verb soak.
type soak struct {
	d          *dev
	o          soakOptions
	begun      time.Time
	sum        string // SHA-256 of what each connection carries
	send, recv soakEnd
}

// soakEnd is one of the two processes.
type soakEnd struct {
	*perf
	name           string
	settled, final int // KiB resident
}

func (d *dev) soak(ctx context.Context, o soakOptions) error {
	if o.time < time.Second || o.connections < 1 || o.connections > 1000 || o.size < 1 || o.size > 1<<20 {
		return usagef("soak: want --time of at least 1s, --connections from 1 to 1000 and --size from 1 to 1048576 (KiB)")
	}
	if err := d.setUp(ctx, needsToBuild()); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ndpip-soak-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "ndpip-perf")
	d.out.Status("building ndpip-perf")
	if err := d.run(ctx, d.goJob(5*time.Minute, "build", "-o", program, "./cmd/ndpip-perf")); err != nil {
		return err
	}
	huge := d.takeHugepages()
	defer huge.giveBack()
	s := &soak{d: d, o: o}
	file := filepath.Join(dir, "file")
	if s.sum, err = writeRandom(file, o.size<<10); err != nil {
		return err
	}
	start := func(e *soakEnd, name string, seed int, args ...string) error {
		args = append([]string{name, "--wire", "memif:" + filepath.Join(dir, "soak.sock"), "--sha256", "--loss", o.loss,
			"--duplicate", o.duplicate, "--reorder", o.reorder, "--fault-seed", strconv.Itoa(seed)}, args...)
		e.name = name
		e.perf, err = d.startPerf(ctx, o.time+5*time.Minute, "", program, args...)
		return err
	}
	// One end with a worker of its own, the other as this machine has it by default.
	if err := start(&s.recv, "recv", o.seed, "--inline=false"); err != nil {
		return err
	}
	defer s.recv.stop()
	if err := start(&s.send, "send", o.seed+1, "--file", file, "--connections", strconv.Itoa(o.connections),
		"--repeat", strconv.FormatFloat(o.time.Seconds(), 'f', -1, 64)); err != nil {
		return err
	}
	defer s.send.stop()
	d.out.Printf("two processes over net_memif for %v, %d connections of %d KiB at once; lost %s, doubled %s, late %s of what each receives; %d CPUs, %s",
		o.time, o.connections, o.size, o.loss, o.duplicate, o.reorder, cores(), huge)
	if err := s.watch(); err != nil {
		return err
	}
	if err := s.recv.stopOrderly(); err != nil {
		return err
	}
	d.out.Printf("\n%s", s.table())
	return s.verdict()
}

// watch follows the processes until the sender has ended.
func (s *soak) watch() error {
	s.begun = time.Now()
	tick := time.NewTicker(min(soakSample, s.o.time/10))
	defer tick.Stop()
	for {
		select {
		case <-s.send.done:
			s.recv.sample(0)
			return s.send.wait()
		case <-s.recv.done:
			s.send.stop()
			return errors.Join(errors.New("soak: the receiver has ended before the sender"), s.recv.wait())
		case <-tick.C:
		}
		at := time.Since(s.begun)
		settle := min(soakSettle, s.o.time/2)
		s.send.sample(at - settle)
		s.recv.sample(at - settle)
		now := s.recv.now()
		s.d.out.Status("%v: %d streams equal, %d MiB, %.0f Mb/s; resident %d KiB send, %d KiB recv", at.Round(time.Second), len(s.recv.hashes()),
			now.Bytes>>20, float64(now.BPS)/1e6, s.send.final, s.recv.final)
		for _, e := range []*soakEnd{&s.send, &s.recv} {
			if err := s.equal(e); err != nil {
				return err
			}
		}
	}
}

// sample notes the resident memory; since is the time since it must not grow any more.
func (e *soakEnd) sample(since time.Duration) {
	for line := range strings.Lines(readText(fmt.Sprintf("/proc/%d/status", e.cmd.Process.Pid))) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "VmRSS:" {
			if kib, _ := strconv.Atoi(f[1]); kib > 0 {
				e.final = kib
			}
		}
	}
	if e.settled == 0 && since >= 0 {
		e.settled = e.final
	}
}

// growth is by how many percent memory has grown since it should not.
func (e *soakEnd) growth() float64 {
	return 100 * float64(e.final-e.settled) / float64(max(e.settled, 1))
}

// equal says whether each stream that has ended is what was sent.
func (s *soak) equal(e *soakEnd) error {
	for i, sum := range e.hashes() {
		if sum != s.sum {
			return fmt.Errorf("soak: %s: stream %d has SHA-256 %s; what is sent has %s", e.name, i+1, sum, s.sum)
		}
	}
	return nil
}

// verdict is what was wrong, if anything.
func (s *soak) verdict() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf("soak: "+format, a...)) }
	sent, received := len(s.send.hashes()), len(s.recv.hashes())
	if sent == 0 || sent != received {
		bad("%d streams were sent and %d received", sent, received)
	}
	for _, e := range []*soakEnd{&s.send, &s.recv} {
		if err := s.equal(e); err != nil {
			errs = append(errs, err)
		}
		p := e.port
		switch {
		case e.settled == 0 || e.final == 0:
			bad("%s: its memory could not be read", e.name)
		case e.growth() > soakGrowth:
			bad("%s: resident memory has grown from %d to %d KiB, more than %d %%", e.name, e.settled, e.final, soakGrowth)
		}
		switch {
		case p.Type == "":
			bad("%s: did not say what became of its buffers", e.name)
		case p.BuffersAfter != p.BuffersBefore || p.BuffersLeft != 0:
			bad("%s: %d buffers in use at the start, %d after the connections were closed, %d after the port was; want as many as at the start, and 0",
				e.name, p.BuffersBefore, p.BuffersAfter, p.BuffersLeft)
		}
	}
	return errors.Join(errs...)
}

func (s *soak) table() string {
	rows := [][]string{{"", "send", "recv"}}
	row := func(name string, cell func(*soakEnd) string) {
		rows = append(rows, []string{name, cell(&s.send), cell(&s.recv)})
	}
	number := func(name string, n func(*soakEnd) uint64) {
		row(name, func(e *soakEnd) string { return strconv.FormatUint(n(e), 10) })
	}
	number("streams, all equal", func(e *soakEnd) uint64 { return uint64(len(e.hashes())) })
	number("MiB", func(e *soakEnd) uint64 { return e.summary.Bytes >> 20 })
	number("seconds", func(e *soakEnd) uint64 { return uint64(e.summary.Seconds) })
	number("segments resent", func(e *soakEnd) uint64 { return e.summary.Retransmissions })
	number("received frames lost", func(e *soakEnd) uint64 { return e.port.Lost })
	number("received twice", func(e *soakEnd) uint64 { return e.port.Duplicated })
	number("received late", func(e *soakEnd) uint64 { return e.port.Reordered })
	number("resident KiB after the first minute", func(e *soakEnd) uint64 { return uint64(e.settled) })
	number("resident KiB at the end", func(e *soakEnd) uint64 { return uint64(e.final) })
	row("growth, %", func(e *soakEnd) string { return fmt.Sprintf("%.1f", e.growth()) })
	number("buffers in use at the start", func(e *soakEnd) uint64 { return uint64(e.port.BuffersBefore) })
	number("after the connections", func(e *soakEnd) uint64 { return uint64(e.port.BuffersAfter) })
	number("after the port", func(e *soakEnd) uint64 { return uint64(e.port.BuffersLeft) })
	return table(rows)
}
