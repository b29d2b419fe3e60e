package stack

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ndpip/stack/wire"
)

// BenchmarkStageDemultiplex is what it takes to find a segment's connection when each comes from another one than the
// segment before: the headers parsed and checked, the key made, and looked up.
func BenchmarkStageDemultiplex(b *testing.B) {
	const burst = 32
	for _, n := range []int{64, 1024, 4096} {
		b.Run(fmt.Sprintf("connections=%d", n), func(b *testing.B) {
			tab := newTable(newSecret(), n)
			frames := make([][]byte, n)
			order := rand.New(rand.NewPCG(1, 2)).Perm(n)
			for i := range n {
				f := make([]byte, hdrLen)
				k := benchKey(order[i])
				wire.PutEthernet(f, MAC{2, 0, 0, 0, 0, 1}, MAC{2, 0, 0, 0, 0, 2}, wire.TypeIPv4)
				wire.PutIPv4(f[ethLen:], k.raddr, k.laddr, wire.ProtoTCP, ipLen+tcpLen, 0)
				wire.PutTCP(f[ethLen+ipLen:], k.rport, k.lport, wire.TCPFields{Flags: wire.ACK}, 0)
				frames[i] = f
				tab.put(benchKey(i), uint32(i+1))
			}
			for tab.old.slots != nil {
				tab.step()
			}
			took := make([]time.Duration, 0, 10000)
			b.ReportAllocs()
			b.ResetTimer()
			at := 0
			for range b.N {
				start := time.Now()
				for range burst {
					if demultiplex(tab, frames[at]) == 0 {
						b.Fatal("a connection was not found")
					}
					if at++; at == n {
						at = 0
					}
				}
				if d := time.Since(start); len(took) < cap(took) {
					took = append(took, d)
				}
			}
			slices.Sort(took) // the lower quartile: other threads can only make a burst longer
			b.ReportMetric(float64(took[len(took)/4].Nanoseconds())/burst, "ns/segment")
		})
	}
}

func demultiplex(tab *table, b []byte) uint32 {
	if typ, drop := wire.ParseEthernet(b); drop != wire.OK || typ != wire.TypeIPv4 {
		return 0
	}
	h, drop := wire.ParseIPv4(b[ethLen:], true)
	if drop != wire.OK {
		return 0
	}
	t, drop := wire.ParseTCP(b[ethLen+ipLen : ethLen+h.Len()])
	if drop != wire.OK {
		return 0
	}
	return tab.get(key{h.Dst(), h.Src(), t.DstPort(), t.SrcPort()})
}
