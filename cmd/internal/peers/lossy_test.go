package peers

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ndpip/cmd/internal/netns"
)

var lossyMiB = flag.Int("lossymib", 32, "MiB that TestPeersLossy sends, each time")

// leastLossy is what part of the kernel's goodput the stack's has to be where frames are lost.
const leastLossy = 0.5

// TestPeersLossy loses one frame in a thousand, both ways, and sends from the stack to the kernel and back, in the lossy
// profile. The measure is the kernel with itself, with as much loss: segment by segment over a veth pair.
func TestPeersLossy(t *testing.T) {
	netns.Need(t)
	const loss = 1e-3
	pair := func() float64 {
		a, b := netns.New(t), netns.New(t)
		a.Veth("ndport", b, "ndpeer", kernelIP+length)
		a.Address("ndport", stackIP+length)
		a.Run("ip", "link", "set", "ndport", "gso_max_segs", "1")
		b.Run("ip", "link", "set", "ndpeer", "gso_max_segs", "1")
		from, to := startChild(t, a, childConfig{Addr: stackIP + length, Loss: loss}), startChild(t, b, childConfig{Addr: kernelIP + length, Loss: loss})
		from.ready()
		to.ready()
		rate := stream(from, kernelAt(sumPort))
		from.stop()
		to.stop()
		return rate
	}
	stack := func() (there, back float64) {
		r := newRig(t, "tap", childConfig{Busy: true, Congestion: "cubic", Loss: loss})
		peer := startChild(t, r.kernel, childConfig{Addr: kernelIP + length})
		peer.ready()
		there = stream(r.process, kernelAt(sumPort))
		back = stream(peer, stackAt(sumPort))
		peer.stop()
		r.quiet()
		r.stop()
		return there, back
	}
	var there, back float64
	for range 3 { // other programs on the machine may have the CPU in one half of a try
		kernel := pair()
		a, b := stack()
		t.Logf("with 0.1 %% loss: kernel to kernel %.0f Mb/s, stack to kernel %.0f Mb/s (%.2f), kernel to stack %.0f Mb/s (%.2f)",
			kernel, a, a/kernel, b, b/kernel)
		there, back = max(there, a/kernel), max(back, b/kernel)
		if min(there, back) > leastLossy {
			return
		}
	}
	require.Greater(t, min(there, back), leastLossy)
}

// stream sends from a child to the service that sums, and gives the goodput in Mb/s.
func stream(p *process, to string) float64 {
	p.t.Helper()
	n := *lossyMiB << 20
	p.must(order{Do: "dial", Name: to, To: to})
	begin := time.Now()
	sent := p.must(order{Do: "send", Name: to, N: n})
	p.must(order{Do: "shut", Name: to})
	sum := p.must(order{Do: "line", Name: to})
	took := time.Since(begin)
	require.Equal(p.t, fmt.Sprintf("%s %d\n", sent.Text, n), sum.Text)
	p.must(order{Do: "close", Name: to})
	return float64(n) * 8 / took.Seconds() / 1e6
}
