package wire

import "unsafe"

// AheadMin is the length from which on CopyAhead is faster than copy.
const AheadMin = 1024

// At is the address of a slice's first byte, for CopyAhead.
func At(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
