//go:build !amd64

package wire

func sum(b []byte, s uint64) uint64 { return sumGo(b, s) }

func copySum(dst, src []byte) uint64 { return copySumGo(dst, src) }
