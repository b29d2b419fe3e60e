//go:build ndpipbench

package main

// #include <stdint.h>
// #include <stddef.h>
import "C"

import "unsafe"

// ndpip_go_write_many is for testdata/cost.c, which compares a call through the library with one from Go: it writes times
// times, as ndpip_write would be called so often.
//
//export ndpip_go_write_many
func ndpip_go_write_many(fd C.int, p unsafe.Pointer, n C.size_t, times C.int) C.int64_t {
	h, d := find(fd)
	b := memory(p, n)
	sum := C.int64_t(0)
	for range times {
		k, err := h.Write(d, b)
		if err != nil {
			return code(err)
		}
		sum += C.int64_t(k)
	}
	return sum
}
