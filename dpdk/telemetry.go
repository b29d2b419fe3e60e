package dpdk

/*
#include <stdlib.h>
#include <rte_eal.h>
#include "telemetry.h"
*/
import "C"

import (
	"sync"
	"syscall"
	"unsafe"
)

// TelemetryValue is one entry of an answer on DPDK's telemetry socket: a number, or a text if there is one.
type TelemetryValue struct {
	Name string // at most 63 bytes
	N    uint64
	Text string
}

// commands are what is registered, by name. DPDK has no way to take one back, so they are there until the process ends.
var commands = struct {
	sync.Mutex
	of map[string]func(params string) []TelemetryValue
}{of: map[string]func(string) []TelemetryValue{}}

// TelemetryCommand has DPDK's telemetry socket answer a command, such as /ndpip/stats, by what f gives: at most 256 values.
// f is called on a thread of DPDK's, with what stands behind the command's comma.
func TelemetryCommand(name, help string, f func(params string) []TelemetryValue) error {
	commands.Lock()
	_, known := commands.of[name]
	commands.of[name] = f
	commands.Unlock()
	if known {
		return nil
	}
	cname, chelp := C.CString(name), C.CString(help)
	defer C.free(unsafe.Pointer(cname))
	defer C.free(unsafe.Pointer(chelp))
	mark := C.ndpip_log_mark()
	if ret := C.ndpip_telemetry_register(cname, chelp); ret != 0 {
		return dpdkError("rte_telemetry_register_cmd", name, int(ret), mark, "")
	}
	return nil
}

//export ndpip_go_telemetry
func ndpip_go_telemetry(cmd, params *C.char, d unsafe.Pointer) C.int {
	commands.Lock()
	f := commands.of[C.GoString(cmd)]
	commands.Unlock()
	if f == nil {
		return -C.int(syscall.ENOENT)
	}
	p := ""
	if params != nil {
		p = C.GoString(params)
	}
	for _, v := range f(p) {
		name := C.CString(v.Name)
		if v.Text != "" {
			text := C.CString(v.Text)
			C.ndpip_telemetry_text(d, name, text)
			C.free(unsafe.Pointer(text))
		} else {
			C.ndpip_telemetry_number(d, name, C.uint64_t(v.N))
		}
		C.free(unsafe.Pointer(name))
	}
	return 0
}

// RuntimeDir is where DPDK has the sockets of this process, such as that of its telemetry.
func RuntimeDir() string { return C.GoString(C.rte_eal_get_runtime_dir()) }
