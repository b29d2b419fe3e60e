package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// demoOptions are the options of the verb demo.
type demoOptions struct {
	seconds float64
	mss     string
	size    int
}

func demoVerb() verb {
	var o demoOptions
	return verb{
		name: "demo", what: "two processes over shared memory, and as root against the kernel, with a table at the end", limit: 10 * time.Minute,
		flags: func(fs *flag.FlagSet) {
			fs.Float64Var(&o.seconds, "seconds", 3, "`SECONDS` of each endless stream")
			fs.StringVar(&o.mss, "mss", "64,256,512,1460", "`SIZES` of the segments, in bytes")
			fs.IntVar(&o.size, "size", 64, "`MIB` of the file that is sent each time")
		},
		run: func(ctx context.Context, d *dev, _ []string) error { return d.demo(ctx, o) },
	}
}

// demo is one run of the verb demo.
type demo struct {
	ctx  context.Context
	d    *dev
	o    demoOptions
	dir  string // temporary
	perf string // the program
	file string // random bytes
	sum  string // their SHA-256
	rows [][]string
}

func (d *dev) demo(ctx context.Context, o demoOptions) error {
	sizes, err := parseSizes(o.mss)
	if err != nil {
		return err
	}
	if o.seconds <= 0 || o.seconds > 600 || o.size < 1 || o.size > 4096 {
		return usagef("demo: want --seconds from 0 to 600 and --size from 1 to 4096 (MiB)")
	}
	needs := needsToBuild()
	if d.uid == 0 {
		needs = append(needs, needIP, needPing, needSocat)
	}
	if err := d.setUp(ctx, needs); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "ndpip-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := &demo{ctx: ctx, d: d, o: o, dir: dir, perf: filepath.Join(dir, "ndpip-perf"), file: filepath.Join(dir, "file")}
	if err := r.build(); err != nil {
		return err
	}
	huge := d.takeHugepages()
	defer huge.giveBack()
	if r.sum, err = writeRandom(r.file, o.size<<20); err != nil {
		return err
	}
	d.out.Printf("two processes over net_memif, %d CPUs, %s", cores(), huge)
	for _, mss := range sizes {
		if err := r.memif(mss); err != nil {
			return err
		}
	}
	if d.uid == 0 {
		d.out.Printf("the Linux kernel over net_tap, in a network namespace of its own")
		if err := r.kernel(); err != nil {
			return err
		}
	} else {
		d.out.Printf("as root the demo also talks to the Linux kernel, over net_tap")
	}
	heading := []string{"from", "to", "wire", "MSS", "Gb/s", "M segments/s", "resent", fmt.Sprintf("%d MiB file", o.size)}
	d.out.Printf("\n%s", table(append([][]string{heading}, r.rows...)))
	return nil
}

func parseSizes(text string) ([]int, error) {
	var out []int
	for _, f := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil || n < 8 || n > 9000 {
			return nil, usagef("demo: --mss %s: want sizes from 8 to 9000, such as 64,1460", text)
		}
		out = append(out, n)
	}
	return out, nil
}

func (r *demo) build() error {
	begin := time.Now()
	r.d.out.Status("building ndpip-perf")
	if err := r.d.run(r.ctx, r.d.goJob(5*time.Minute, "build", "-o", r.perf, "./cmd/ndpip-perf")); err != nil {
		return err
	}
	r.d.out.Printf("built ndpip-perf (%.0f s)", time.Since(begin).Seconds())
	return nil
}

// memif sends an endless stream, for the rate, and a file, for the content.
func (r *demo) memif(mss int) error {
	stream, err := r.stream(mss)
	if err != nil {
		return err
	}
	file, err := r.transfer(mss)
	if err != nil {
		return err
	}
	stream.Retransmissions += file.Retransmissions
	r.row(fmt.Sprintf("MSS %4d", mss), "ndpip", "ndpip", "memif", mss, stream)
	return nil
}

// row notes and shows what a run gave, after its file was found equal.
func (r *demo) row(what, from, to, wire string, mss int, s perfLine) {
	pps := float64(s.Segments) / max(s.Seconds, 1e-3)
	r.d.out.Printf("  %s: %6.2f Gb/s, %5.2f M segments/s, %d retransmissions; %d MiB file: equal SHA-256",
		what, float64(s.BPS)/1e9, pps/1e6, s.Retransmissions, r.o.size)
	r.rows = append(r.rows, []string{from, to, wire, strconv.Itoa(mss), fmt.Sprintf("%.2f", float64(s.BPS)/1e9),
		fmt.Sprintf("%.2f", pps/1e6), strconv.FormatUint(s.Retransmissions, 10), "equal SHA-256"})
}

// stream gives the receiver's summary, with the sender's retransmissions.
func (r *demo) stream(mss int) (perfLine, error) {
	wire := "memif:" + filepath.Join(r.dir, "stream.sock")
	limit := time.Duration(r.o.seconds*float64(time.Second)) + time.Minute
	recv, err := r.d.startPerf(r.ctx, limit, "", r.perf, "recv", "--wire", wire, "--mss", strconv.Itoa(mss))
	if err != nil {
		return perfLine{}, err
	}
	defer recv.stop()
	send, err := r.d.startPerf(r.ctx, limit, "", r.perf, "send", "--wire", wire, "--mss", strconv.Itoa(mss),
		"--timeout", strconv.FormatFloat(r.o.seconds, 'f', -1, 64))
	if err != nil {
		return perfLine{}, err
	}
	defer send.stop()
	if err := r.d.follow(fmt.Sprintf("MSS %d", mss), send, recv); err != nil {
		return perfLine{}, err
	}
	if err := recv.stopOrderly(); err != nil {
		return perfLine{}, err
	}
	if recv.summary.Bytes == 0 {
		return perfLine{}, &jobError{argv: recv.job.argv, why: "received nothing", tail: recv.tail()}
	}
	recv.summary.Retransmissions += send.summary.Retransmissions
	return recv.summary, nil
}

// transfer sends the file and compares what arrived.
func (r *demo) transfer(mss int) (perfLine, error) {
	wire := "memif:" + filepath.Join(r.dir, "file.sock")
	out := filepath.Join(r.dir, "received")
	defer os.Remove(out)
	recv, err := r.d.startPerf(r.ctx, time.Minute, "", r.perf, "recv", "--wire", wire, "--mss", strconv.Itoa(mss), "--out", out, "--sha256")
	if err != nil {
		return perfLine{}, err
	}
	defer recv.stop()
	send, err := r.d.startPerf(r.ctx, time.Minute, "", r.perf, "send", "--wire", wire, "--mss", strconv.Itoa(mss), "--file", r.file, "--sha256")
	if err != nil {
		return perfLine{}, err
	}
	defer send.stop()
	if err := r.d.follow(fmt.Sprintf("MSS %d, file", mss), send, recv); err != nil {
		return perfLine{}, err
	}
	if err := recv.wait(); err != nil {
		return perfLine{}, err
	}
	return send.summary, r.compare(out, send.sums, recv.sums)
}

// compare looks whether what arrived is the file, and whether the programs' own sums say the same.
func (r *demo) compare(out string, said ...[]string) error {
	sum, err := fileSum(out)
	if err != nil {
		return err
	}
	if sum != r.sum {
		return fmt.Errorf("the file arrived with SHA-256 %s and was sent with %s", sum, r.sum)
	}
	for _, sums := range said {
		if len(sums) != 1 || sums[0] != sum {
			return fmt.Errorf("the file's SHA-256 is %s, and ndpip-perf --sha256 says %q", sum, sums)
		}
	}
	return nil
}

// writeRandom writes n bytes that no program can guess or compress, and gives their SHA-256.
func writeRandom(path string, n int) (string, error) {
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(rand.Uint32())
	}
	sum := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(f, sum), rand.NewChaCha8(seed), int64(n)); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), f.Close()
}

func fileSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
