package dpdk

/*
#cgo !static pkg-config: libdpdk
#cgo static pkg-config: --static libdpdk
#include <stdlib.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include "eal.h"
*/
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unsafe"
)

// eal is the life of the EAL in this process. DPDK allows one.
var eal struct {
	mu     sync.Mutex
	up     bool // EalInit has started it
	failed bool // rte_eal_init was called here, and failed: what is left behind does not count as initialised
	closed bool // EalCleanup has run
}

// EalInit starts DPDK. args are its command line: args[0] is the program's name, as in os.Args; when args is empty or
// args[0] is an option, a name is put before it. It returns how many of args were the EAL's, the name and a
// closing "--" included.
//
// The calling thread keeps its CPU affinity and does not become an lcore: see RegisterLcore. What DPDK logs is kept for
// the text of errors; it goes to stderr as well when args has a --log-level option. A device that does not come up is
// no error of DPDK's: PortByName then fails, and says what DPDK logged.
//
// The error is an *EalError. DPDK cannot be started twice in one process, not even after EalCleanup or after most
// failures; the error says so.
func EalInit(args []string) (int, error) {
	eal.mu.Lock()
	defer eal.mu.Unlock()
	switch {
	case eal.closed:
		return 0, ealError(syscall.EALREADY, "", onlyOnce)
	case eal.up, !eal.failed && C.ndpip_eal_up() != 0:
		return 0, ealError(syscall.EALREADY, "", alreadyUp)
	}
	added := 0
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		args = append([]string{"ndpip"}, args...)
		added = 1
	}
	opts := args[1:]
	if i := slices.Index(opts, "--"); i >= 0 {
		opts = opts[:i]
	}
	echo := false
	for _, a := range opts {
		if a == "-h" || a == "--help" {
			return 0, ealError(syscall.EINVAL, "", "leave out "+a+": DPDK would print its options and end the program")
		}
		if strings.HasPrefix(a, "--log-level") {
			echo = true
		}
	}
	if err := clearMemifSockets(opts); err != nil {
		return 0, err
	}
	mark := C.ndpip_log_mark()
	n, e := rteEalInit(args, echo)
	if n < 0 {
		hint := initHint(opts, e)
		if eal.failed && e == syscall.EALREADY {
			hint = startFailed
		}
		eal.failed = true
		return 0, ealError(e, logSince(mark), hint)
	}
	eal.up = true
	return n + 1 - added, nil // DPDK does not count the program's name
}

// rteEalInit calls rte_eal_init; it knows nothing of what was done before.
func rteEalInit(args []string, echo bool) (int, syscall.Errno) {
	// DPDK reorders argv and keeps pointers into it, so this memory is never freed.
	argv := (**C.char)(C.calloc(C.size_t(len(args)+1), C.size_t(unsafe.Sizeof(uintptr(0)))))
	for i, a := range args {
		unsafe.Slice(argv, len(args))[i] = C.CString(a)
	}
	defer runtimeDir()()
	var errno C.int
	n := C.ndpip_eal_init(C.int(len(args)), argv, C.int(cbool(echo)), &errno)
	return int(n), syscall.Errno(errno)
}

// runtimeDir gives DPDK a directory for its sockets that it can write to, for as long as it starts; call what it
// returns afterwards. Root has /var/run; for others DPDK takes XDG_RUNTIME_DIR or else /tmp/dpdk, which may belong to
// another user.
func runtimeDir() (restore func()) {
	const xdg = "XDG_RUNTIME_DIR"
	if os.Getuid() == 0 {
		return func() {}
	}
	old, had := os.LookupEnv(xdg)
	dir := old
	if !had {
		dir = "/tmp"
	}
	base := filepath.Join(dir, "dpdk")
	if dir != "" && os.MkdirAll(base, 0o700) == nil && syscall.Access(base, 7) == nil {
		return func() {}
	}
	own := fmt.Sprintf("/tmp/ndpip-%d", os.Getuid())
	if os.MkdirAll(own, 0o700) != nil || syscall.Access(own, 7) != nil {
		return func() {} // DPDK will say what is wrong
	}
	_ = os.Setenv(xdg, own)
	return func() {
		if had {
			_ = os.Setenv(xdg, old)
		} else {
			_ = os.Unsetenv(xdg)
		}
	}
}

// EalInitialized reports whether DPDK is up in this process, started by EalInit or by a host program.
func EalInitialized() bool {
	eal.mu.Lock()
	defer eal.mu.Unlock()
	return !eal.closed && (eal.up || !eal.failed && C.ndpip_eal_up() != 0)
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
	unguardAll()
	defer removeRuntimeDir(C.GoString(C.rte_eal_get_runtime_dir()))
	if ret := C.rte_eal_cleanup(); ret != 0 {
		e := ealError(syscall.Errno(-ret), "", "")
		e.Call = "rte_eal_cleanup"
		return e
	}
	return nil
}

// removeRuntimeDir removes the directory that DPDK leaves behind with its telemetry socket in it, unless its name is one
// that processes share.
func removeRuntimeDir(dir string) {
	base, parent := filepath.Base(dir), filepath.Base(filepath.Dir(dir))
	if parent == "dpdk" && base != defaultPrefix && base != "rte" {
		_ = os.RemoveAll(dir)
	}
}

func ealError(errno syscall.Errno, reason, hint string) *EalError {
	return &EalError{Call: "rte_eal_init", Errno: errno, Text: strerror(errno), Reason: reason, Hint: hint}
}

// initHint says what most often mends a failed start.
func initHint(args []string, errno syscall.Errno) string {
	has := func(o string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, o) })
	}
	switch {
	case has("--no-huge") && has("--in-memory"):
		return "--no-huge and --in-memory exclude each other: leave out --in-memory"
	case errno == syscall.EINVAL:
		return "an option of the EAL is wrong or unknown"
	case !has("--no-huge") && !HasHugepages():
		return "there are no free hugepages for this user: reserve some (echo 512 > /proc/sys/vm/nr_hugepages, as root), or run with --no-huge -m 64"
	case !has("--no-huge") && !has("--in-memory") && os.Getuid() != 0:
		return "the hugepage directory may belong to root: add --in-memory, which needs none"
	case errno == syscall.ENOMEM:
		return "ask for less memory with -m N, in MiB"
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

// noise are warnings that DPDK gives in good health.
var noise = []string{
	"hugepages reported on node",
	"no mounted hugetlbfs",
	"No legacy callbacks",
	"Failed to register mp action callback", // net_memif, for secondary processes, which DefaultArgs leaves out
}

// logSince is what DPDK logged since mark, warnings and worse, on one line.
func logSince(mark C.uint64_t) string {
	var buf [1000]byte
	n := C.ndpip_log_since(mark, (*C.char)(unsafe.Pointer(&buf[0])), C.size_t(len(buf)))
	var lines []string
	for line := range strings.Lines(string(buf[:n])) {
		line = strings.TrimSpace(line)
		if line != "" && !slices.ContainsFunc(noise, func(s string) bool { return strings.Contains(line, s) }) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// LogTail is the last part of what DPDK logged since EalInit: warnings and worse.
func LogTail() string { return logSince(0) }
