package dpdk

/*
#cgo pkg-config: libdpdk
#include <stdlib.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include "eal.h"
*/
import "C"

import (
	"slices"
	"strings"
	"sync"
	"syscall"
	"unsafe"
)

// eal is the life of the EAL in this process. DPDK allows one.
var eal struct {
	mu     sync.Mutex
	tried  bool // EalInit has called rte_eal_init
	up     bool // and it worked
	closed bool // EalCleanup has run
}

// EalInit starts DPDK. args are its command line: args[0] is the program's name, as in os.Args; when args is empty or
// args[0] is an option, a name is put before it. It returns how many of args were the EAL's, up to and including "--".
//
// The calling thread keeps its CPU affinity and does not become an lcore: see RegisterLcore. What DPDK logs is kept for
// the text of errors; it goes to stderr as well when args has a --log-level option.
//
// The error is an *EalError. DPDK cannot be started twice in one process, not even after EalCleanup or after most
// failures; the error says so.
func EalInit(args []string) (int, error) {
	eal.mu.Lock()
	defer eal.mu.Unlock()
	switch {
	case eal.closed:
		return 0, ealError(syscall.EALREADY, "", onlyOnce)
	case eal.up, !eal.tried && C.ndpip_eal_up() != 0:
		return 0, ealError(syscall.EALREADY, "", alreadyUp)
	case eal.tried:
		return 0, ealError(syscall.EALREADY, "", startFailed)
	}
	added := 0
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		args = append([]string{"ndpip"}, args...)
		added = 1
	}
	echo := C.int(0)
	for _, a := range args[1:] {
		if a == "--" {
			break
		}
		if a == "-h" || a == "--help" {
			return 0, ealError(syscall.EINVAL, "", "leave out "+a+": DPDK would print its options and end the program")
		}
		if strings.HasPrefix(a, "--log-level") {
			echo = 1
		}
	}
	// DPDK reorders argv and keeps pointers into it, so this memory is never freed.
	argv := make([]*C.char, len(args)+1)
	for i, a := range args {
		argv[i] = C.CString(a)
	}
	cargv := (**C.char)(C.malloc(C.size_t(len(argv)) * C.size_t(unsafe.Sizeof(argv[0]))))
	copy(unsafe.Slice(cargv, len(argv)), argv)
	mark := C.ndpip_log_mark()
	var errno C.int
	n := int(C.ndpip_eal_init(C.int(len(args)), cargv, echo, &errno))
	if n < 0 {
		err := ealError(syscall.Errno(errno), logSince(mark), initHint(args, syscall.Errno(errno)))
		// After the early checks DPDK lets itself be started again; later it does not.
		eal.tried = true
		return 0, err
	}
	eal.tried, eal.up = true, true
	if i := slices.Index(args, "--"); i > 0 && n == i {
		n++
	}
	return max(n-added, 0), nil
}

// EalInitialized reports whether DPDK is up in this process, started by EalInit or by a host program.
func EalInitialized() bool {
	eal.mu.Lock()
	defer eal.mu.Unlock()
	return !eal.closed && (eal.up || !eal.tried && C.ndpip_eal_up() != 0)
}

// EalCleanup stops what EalInit started. Every lane, pool and port must be freed before, and no thread may be inside
// this package. An EAL that a host program started is left to it: the error says so.
func EalCleanup() error {
	eal.mu.Lock()
	defer eal.mu.Unlock()
	if !eal.up || eal.closed {
		e := ealError(syscall.EINVAL, "", "EalInit has not started an EAL that is still up; one that a host program started is the host's to stop")
		e.Call = "rte_eal_cleanup"
		return e
	}
	eal.closed = true
	if ret := C.rte_eal_cleanup(); ret != 0 {
		e := ealError(syscall.Errno(-ret), "", "")
		e.Call = "rte_eal_cleanup"
		return e
	}
	return nil
}

func ealError(errno syscall.Errno, reason, hint string) *EalError {
	return &EalError{Call: "rte_eal_init", Errno: errno, Text: strerror(errno), Reason: reason, Hint: hint}
}

// initHint says what most often mends a failed start.
func initHint(args []string, errno syscall.Errno) string {
	has := func(o string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return a == o || strings.HasPrefix(a, o+"=") })
	}
	switch {
	case has("--no-huge") && has("--in-memory"):
		return "--no-huge and --in-memory exclude each other in DPDK before 23.03: leave out --in-memory"
	case !has("--no-huge") && !HasHugepages():
		return "there are no free hugepages for this user: reserve some (echo 512 > /proc/sys/vm/nr_hugepages, as root), or give --no-huge -m 64"
	case errno == syscall.EACCES || errno == syscall.EPERM:
		return "this user may not use what the options name: run as root, or take --no-huge and virtual ports"
	}
	return ""
}

// dpdkError makes an Error of a failed call. errno is DPDK's, of either sign; mark is the log's position before the call.
func dpdkError(call, what string, errno int, mark C.uint64_t, hint string) *Error {
	e := syscall.Errno(max(errno, -errno))
	return &Error{Call: call, What: what, Errno: e, Text: strerror(e), Reason: logSince(mark), Hint: hint}
}

func strerror(e syscall.Errno) string {
	if e == 0 {
		return "failed, and DPDK gives no error number"
	}
	return C.GoString(C.rte_strerror(C.int(e)))
}

func rteErrno() int { return int(C.ndpip_rte_errno()) }

// logSince is what DPDK logged since mark, warnings and worse, on one line.
func logSince(mark C.uint64_t) string {
	var buf [600]byte
	n := C.ndpip_log_since(mark, (*C.char)(unsafe.Pointer(&buf[0])), C.size_t(len(buf)))
	lines := strings.FieldsFunc(string(buf[:n]), func(r rune) bool { return r == '\n' })
	return strings.Join(lines, "; ")
}

// LogTail is the last part of what DPDK logged since EalInit: warnings and worse.
func LogTail() string { return logSince(0) }
