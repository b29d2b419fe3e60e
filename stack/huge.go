package stack

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the size of a large page, on the machines that have it.
const hugePage = 2 << 20

// huge asks the kernel for large pages under a large array: with a million connections nearly each look-up is of a page
// that the processor has to walk to, and in a virtual machine that takes longer than the memory itself. It is a hint.
func huge[T any](a []T) []T {
	var t T
	p := uintptr(unsafe.Pointer(unsafe.SliceData(a)))
	from, to := (p+hugePage-1)&^(hugePage-1), (p+uintptr(len(a))*unsafe.Sizeof(t))&^(hugePage-1)
	if from < to {
		skip := (from - p) / unsafe.Sizeof(t)
		_ = unix.Madvise(unsafe.Slice((*byte)(unsafe.Pointer(&a[skip])), to-from), unix.MADV_HUGEPAGE)
	}
	return a
}
