package stack_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"ndpip/dpdk"
	"ndpip/stack"
)

// TestNoAllocation moves bursts from one stack to another: once a connection has its rings, nothing is allocated, at
// either end.
func TestNoAllocation(t *testing.T) {
	for _, sum := range []stack.Checksum{stack.ChecksumOff, stack.ChecksumSoftware} {
		for _, mss := range []int{64, 1460} {
			t.Run(fmt.Sprintf("checksum=%d/mss=%d", sum, mss), func(t *testing.T) {
				e := newMemEnds(t, mss, sum)
				out, in := make([]byte, burstLen*mss), make([]byte, burstLen*mss)
				copied := func() {
					e.write(t, out)
					e.b.Turn()
					e.read(t, in)
					e.a.Turn()
				}
				copied()
				require.Zero(t, testing.AllocsPerRun(200, copied), "copying calls")
				var f [burstLen]dpdk.Frame
				lent := func() {
					if n := e.a.AllocBufs(f[:]); n != burstLen {
						t.Fatalf("alloc gave %d of %d buffers", n, burstLen)
					}
					for i := range f {
						f[i].Len = uint32(mss)
					}
					if n, errno := e.a.SendBufs(e.x, f[:]); n != burstLen {
						t.Fatalf("send took %d of %d buffers (%v)", n, burstLen, errno)
					}
					e.b.Turn()
					if n, errno := e.b.RecvBufs(e.y, f[:]); n != burstLen {
						t.Fatalf("recv gave %d of %d buffers (%v)", n, burstLen, errno)
					}
					e.b.FreeBufs(f[:], true)
					e.a.Turn()
				}
				require.Zero(t, testing.AllocsPerRun(200, lent), "zero-copy calls")
			})
		}
	}
}
