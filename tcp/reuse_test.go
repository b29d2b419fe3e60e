package tcp

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// TestReuse fills a block with ones: of an archived connection the next one sees its rings, and nothing else.
func TestReuse(t *testing.T) {
	var c Conn
	b := unsafe.Slice((*byte)(unsafe.Pointer(&c)), unsafe.Sizeof(c))
	for i := range b {
		b[i] = 0xff
	}
	c.SetRxRing(64, 128)
	c.SetTxRing(4096, 256)
	c.Reuse(7)
	require.Equal(t, uint32(7), c.ID)
	base, n := c.RxRing()
	require.Equal(t, [2]uint64{64, 128}, [2]uint64{uint64(base), uint64(n)})
	base, n = c.TxRing()
	require.Equal(t, [2]uint64{4096, 256}, [2]uint64{uint64(base), uint64(n)})
	c.ID, c.rxBase, c.rxMask, c.txBase, c.TxWant = 0, 0, 0, 0, 0
	for i, v := range b {
		if v != 0 {
			t.Fatalf("byte %d of the block is %#x", i, v)
		}
	}
}
