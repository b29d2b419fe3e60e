package wire

import "golang.org/x/sys/cpu"

// vector says whether the processor has what sumBlocks and copySumBlocks use.
var vector = cpu.X86.HasAVX2

// sumBlocks is the running sum of n bytes at p; n is a multiple of 64 and not 0.
//
//go:noescape
func sumBlocks(p *byte, n int) uint64

// copySumBlocks copies n bytes from src to dst and sums them in the same pass; n as for sumBlocks.
//
//go:noescape
func copySumBlocks(dst, src *byte, n int) uint64

func sum(b []byte, s uint64) uint64 {
	if n := len(b) &^ 63; vector && n > 0 {
		s = add(s, sumBlocks(&b[0], n))
		b = b[n:]
	}
	return sumGo(b, s)
}

func copySum(dst, src []byte) uint64 {
	n := len(src) &^ 63
	if !vector || n == 0 {
		return copySumGo(dst, src)
	}
	s := copySumBlocks(&dst[0], &src[0], n)
	return add(s, copySumGo(dst[n:], src[n:]))
}
