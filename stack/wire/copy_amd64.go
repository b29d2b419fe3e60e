package wire

//go:noescape
func copyAhead(dst, src *byte, n int, nextDst, nextSrc uintptr)

// CopyAhead copies src to dst, of the same length, at least AheadMin, and has the processor fetch what the next copy is
// going to touch, at nextDst and at nextSrc: segments do not lie one behind the other, so it cannot know by itself. These two
// are hints; nothing there is read or written.
func CopyAhead(dst, src []byte, nextDst, nextSrc uintptr) {
	if !vector {
		copy(dst, src)
		return
	}
	n := len(src)
	copyAhead(&dst[:n][0], &src[0], n, nextDst, nextSrc)
}
