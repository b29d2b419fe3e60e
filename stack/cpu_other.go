//go:build !amd64

package stack

import "unsafe"

func tsc() uint64 { return 0 }

const hasTSC = false

func prefetch(unsafe.Pointer) {}
