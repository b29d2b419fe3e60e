package stack

import "unsafe"

// tsc is the processor's clock, which Block.TSC holds as of the last exchange of a lane over DPDK.
func tsc() uint64

const hasTSC = true

// prefetch asks for a cache line that will be read soon: what lies at p is neither read nor written.
//
//go:noescape
func prefetch(p unsafe.Pointer)
