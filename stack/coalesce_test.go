package stack_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ndpip/stack"
)

// runsOf sends a connection's segments in one burst and gives what the counters say of runs.
func runsOf(t *testing.T, noCoalesce bool, burst func(f *flow) [][]byte) (runs, coalesced uint64) {
	r := newRig(t, func(u *setup) { u.NoCoalesce = noCoalesce })
	f := r.accepted()
	for _, b := range burst(f) {
		r.peer.Inject(b)
	}
	r.run()
	r.got = nil
	n := r.Counters()
	return n.Runs, n.Coalesced
}

// text is n segments of 64 bytes from relative sequence number at on.
func text(f *flow, at, n int) (out [][]byte) {
	for i := range n {
		out = append(out, f.segmentFrame("PA", at+64*i, 1, stream(64)))
	}
	return out
}

func TestCoalesceRuns(t *testing.T) {
	burst := func(f *flow) [][]byte { return text(f, 1, 32) }
	runs, n := runsOf(t, false, burst)
	require.Equal(t, [2]uint64{1, 31}, [2]uint64{runs, n}, "the first is taken apart")
	runs, n = runsOf(t, true, burst)
	require.Zero(t, runs+n)

	gap := func(f *flow) [][]byte { return append(text(f, 1, 8), text(f, 1+9*64, 8)...) }
	runs, n = runsOf(t, false, gap)
	require.Equal(t, [2]uint64{1, 7}, [2]uint64{runs, n}, "nothing behind the gap")

	two := func(f *flow) (out [][]byte) {
		g := f.client(f.l).handshake(mss(1460))
		a, b := text(f, 1, 8), text(g, 1, 8)
		for i := range a {
			out = append(out, a[i], b[i])
		}
		return out
	}
	runs, n = runsOf(t, false, two)
	require.Zero(t, runs+n, "no two neighbours are of one connection")
}

// peerOf is what the test's peer knows of its connection.
type peerOf struct {
	*flow
	next int // relative sequence number of what comes next
}

// frames makes up a burst: mostly what follows, and now and then something that does not.
func (p *peerOf) frames(d *rand.Rand, other *peerOf) (out [][]byte) {
	for range 1 + d.IntN(24) {
		size := []int{1, 64, 64, 64, 64, 200, 1460}[d.IntN(7)]
		flags := []string{"A", "A", "A", "PA"}[d.IntN(4)]
		at := p.next
		var with []any
		bend := func([]byte) []byte { return nil }
		switch k := d.IntN(60); k {
		case 0:
			size = 0
		case 1:
			at -= d.IntN(300)
		case 2:
			at += d.IntN(300)
		case 3:
			with = append(with, win(d.IntN(65536)))
		case 4:
			with = append(with, opts{1, 1, 1, 1})
		case 5:
			flags = "FA"
		case 6:
			flags = []string{"RA", "SA", ".", "UA", "EA", "CA"}[d.IntN(6)]
		case 7:
			at += 1 << 30
		case 8, 9, 10:
			// A byte of the frame is wrong: the Ethernet type, the addresses, a length, a checksum.
			// Without checksums the IPv4 header's is not looked at in a run, nor what it alone protects.
			at := d.IntN(54)
			if p.unchecked && at >= 16 && at < 26 {
				at = 0
			}
			bit := byte(1) << d.IntN(8)
			bend = func(b []byte) []byte { b[at] ^= bit; return b }
		case 11:
			bend = func(b []byte) []byte { return b[:54+d.IntN(len(b)-53)] } // cut off
		case 12:
			bend = func(b []byte) []byte { return append(b, make([]byte, 1+d.IntN(20))...) } // padding
		case 13:
			p, other = other, p
			continue
		}
		b := p.segmentFrame(flags, at, 1, append(with, stream(size))...)
		if bent := bend(b); bent != nil {
			out = append(out, bent)
			continue
		}
		if at == p.next && flags[len(flags)-1] == 'A' && len(flags) <= 2 && (flags == "A" || flags == "PA") {
			p.next += size
		}
		out = append(out, b)
	}
	return out
}

// TestCoalesceSame gives two stacks the same bursts, of which one takes each frame by itself: they send the same, read the
// same and count the same.
func TestCoalesceSame(t *testing.T) {
	for _, sum := range []stack.Checksum{stack.ChecksumSoftware, stack.ChecksumOff} {
		total, seeds := uint64(0), uint64(40)
		if testing.Short() {
			seeds = 8
		}
		for seed := range seeds {
			total += coalesceSame(t, sum, seed)
			if t.Failed() {
				t.Fatalf("checksum %d, seed %d", sum, seed)
			}
		}
		require.Greater(t, total, 30*seeds, "segments that were taken in runs")
	}
}

func coalesceSame(t *testing.T, sum stack.Checksum, seed uint64) uint64 {
	var rigs [2]*rig
	var peers [2][2]*peerOf
	for i := range rigs {
		r := newRig(t, func(u *setup) {
			u.Checksum, u.NoCoalesce, u.RcvBuf, u.MaxRing = sum, i == 1, 1<<15, 64
			u.RxBuffers = 96 // so that it gets tight
		})
		r.unchecked = sum == stack.ChecksumOff
		rigs[i] = r
		l := r.listen(16)
		for k := range peers[i] {
			peers[i][k] = &peerOf{flow: r.client(l).handshake(mss(1460)), next: 1}
		}
	}
	var bursts [2][2]*rand.Rand
	for i := range bursts {
		bursts[i] = [2]*rand.Rand{rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))}
	}
	d := rand.New(rand.NewPCG(seed, 3))
	for range 40 {
		who, read, send := d.IntN(2), d.IntN(3), d.IntN(8)
		var sent [2][][]byte
		var data [2][]byte
		var counted [2]stack.Counters
		for i, r := range rigs {
			p := peers[i][who]
			for _, b := range p.frames(bursts[i][who], peers[i][1-who]) {
				r.peer.Inject(b)
			}
			r.run()
			if send == 0 {
				r.Send(p.c, []byte("hello"))
				r.run()
			}
			if read > 0 {
				for _, q := range peers[i] {
					var b [1 << 15]byte
					n, e := r.Recv(q.c, b[:])
					data[i] = append(append(data[i], b[:n]...), byte(e))
				}
				r.run()
			}
			r.advance(time.Millisecond)
			for _, s := range r.got {
				sent[i] = append(sent[i], s.frame)
			}
			r.got = nil
			counted[i] = r.Counters()
		}
		require.Equal(t, sent[1], sent[0], "sent")
		require.Equal(t, data[1], data[0], "read")
		runs := counted[0].Coalesced
		counted[0].Runs, counted[0].Coalesced = 0, 0
		require.Equal(t, counted[1], counted[0], "counted")
		counted[0].Coalesced = runs
	}
	return rigs[0].Counters().Coalesced
}
