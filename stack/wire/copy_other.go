//go:build !amd64

package wire

// CopyAhead copies src to dst, of the same length. The next copy is going to be to nextDst and from nextSrc.
func CopyAhead(dst, src []byte, nextDst, nextSrc uintptr) { copy(dst, src) }
