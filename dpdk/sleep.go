package dpdk

/*
#include "eal.h"
#include "sleep.h"
*/
import "C"

import (
	"syscall"
	"time"
	"unsafe"
)

// Sleeper lets the thread that polls a receive queue sleep until frames come, a time is over, or another thread wakes
// it. Arm, Sleep and Disarm belong to one thread at a time; Wake may be called by any.
//
// No frame is slept over if the thread calls Arm, then receives once more, and sleeps only if there was nothing.
type Sleeper struct{ c *C.struct_ndpip_sleeper }

// NewSleeper makes a sleeper for receive queue rxq of a port that runs. A port whose driver cannot tell of frames
// (net_memif, net_ring, af_packet, af_xdp, or one that was configured without PortConf.Interrupts) is no error: see
// Interrupts. A nil port stands for none.
func (p *Port) NewSleeper(rxq int) (*Sleeper, error) {
	mark := C.ndpip_log_mark()
	id, name := -1, "no port"
	if p != nil {
		id, name = int(p.id), p.name
	}
	var errno C.int
	c := C.ndpip_sleeper_new(C.int(id), C.uint16_t(rxq), &errno)
	if c == nil {
		return nil, dpdkError("eventfd", name, int(errno), mark, "allow the process more open files")
	}
	return &Sleeper{c}, nil
}

// Interrupts says whether the port tells of frames. Otherwise only time and Wake end a sleep.
func (s *Sleeper) Interrupts() bool { return s.c.interrupts != 0 }

// Arm has the port tell of frames that come from here on.
func (s *Sleeper) Arm() { C.ndpip_sleeper_arm(s.c, 1) }

// Disarm has it stop.
func (s *Sleeper) Disarm() { C.ndpip_sleeper_arm(s.c, 0) }

// Sleep sleeps, for d at most; d < 0: without end. Where the port tells of frames, d is rounded up to milliseconds.
func (s *Sleeper) Sleep(d time.Duration) { C.ndpip_sleeper_wait(s.c, C.int64_t(d)) }

// Wake ends the sleep, or the next one.
func (s *Sleeper) Wake() {
	one := uint64(1)
	_, _ = syscall.Write(int(s.c.kick), (*[8]byte)(unsafe.Pointer(&one))[:])
}

// Close frees the sleeper, which nobody may use any more.
func (s *Sleeper) Close() {
	C.ndpip_sleeper_free(s.c)
	s.c = nil
}
