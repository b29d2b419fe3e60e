//go:build cgo

package dpdk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

func init() {
	children["init"] = func(arg string) error {
		n, err := EalInit(strings.Fields(arg))
		fmt.Println("parsed", n)
		return err
	}
	children["start and stop"] = func(arg string) error {
		if _, err := EalInit(strings.Fields(arg)); err != nil {
			return err
		}
		return EalCleanup()
	}
	children["port"] = func(arg string) error {
		if _, err := EalInit(append(testArgs(), strings.Fields(arg)...)); err != nil {
			return err
		}
		_, err := PortByName("net_memif0")
		return err
	}
	children["life"] = lifeChild
	children["failed"] = failedChild
	children["host"] = hostChild
	children["affinity"] = affinityChild
}

// small are arguments for a child that only starts.
func small() string { return strings.Join(append(DefaultArgs(true, 32, ""), "--no-pci"), " ") }

func TestEalInitErrors(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--no-huge -m 32 --in-memory --no-pci", "leave out --in-memory"},
		{"--no-pci --nonsense", "an option of the EAL is wrong"},
		{"prog --no-pci --help", "leave out --help"},
		{"prog -h", "leave out -h"},
		{small() + " --lcores=0@4000", "an option of the EAL is wrong"},
		{small() + " -m 99999999", "rte_eal_init"},
	} {
		out, err := child(t, "init", c.args, nil)
		if err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%s\n gives %v: %s\n want %q", c.args, err, out, c.want)
		}
		t.Log(out)
	}
}

func TestEalInitCountsArguments(t *testing.T) {
	for _, c := range []struct {
		args string
		want int
	}{
		{small(), len(strings.Fields(small()))},
		{"prog " + small(), len(strings.Fields(small())) + 1},
		{"prog " + small() + " -- -x --help", len(strings.Fields(small())) + 2},
		{small() + " -- -x", len(strings.Fields(small())) + 1},
	} {
		out, err := child(t, "init", c.args, nil)
		if want := fmt.Sprintln("parsed", c.want); err != nil || out != want {
			t.Errorf("%s\n gives %q %v\n want %q", c.args, out, err, want)
		}
	}
}

// A device that does not come up: the EAL starts, and the port's absence is explained.
func TestPortThatFailed(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, want string }{
		{"/nonexistent/m", "Invalid socket directory.; vdev_probe(): failed to initialize net_memif0 device; EAL: Bus (vdev) probe failed.\"; the socket's directory must exist"},
		{dir + "/file", "no socket"},
		{dir, "no socket"},
	} {
		args, _, err := Wire("memif:"+c.path, true)
		if err != nil {
			t.Fatal(err)
		}
		out, err := child(t, "port", strings.Join(args, " "), nil)
		if err == nil || !strings.Contains(out, c.want) {
			t.Errorf("%s: %v %s", c.path, err, out)
		}
		t.Log(out)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(b) != "precious" {
		t.Errorf("the file at a socket's path: %q, %v", b, err)
	}
}

func TestEalLife(t *testing.T) {
	for _, part := range []string{"life", "failed", "host", "affinity"} {
		if out, err := child(t, part, "", nil); err != nil {
			t.Errorf("%s: %v\n%s", part, err, out)
		}
	}
	_, err := EalInit(nil)
	wantError(t, err, syscall.EALREADY, "is up already")
	if !EalInitialized() {
		t.Error("not initialised")
	}
}

// want returns an error that says what is not as it should be.
func want(ok bool, format string, a ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf(format, a...)
}

func lifeChild(string) error {
	_, poolErr := NewMempool("early", 10, 0, -1, -1)
	_, _, ringErr := RingPair("early", 10)
	_, lcoreErr := RegisterLcore(-1)
	early := EalInitialized()
	_, firstErr := EalInit(strings.Fields(small()))
	up := EalInitialized()
	_, secondErr := EalInit(strings.Fields(small()))
	cleanErr := EalCleanup()
	down := EalInitialized()
	_, thirdErr := EalInit(strings.Fields(small()))
	return errors.Join(
		want(poolErr != nil && ringErr != nil && lcoreErr != nil, "use before the start: %v, %v, %v", poolErr, ringErr, lcoreErr),
		want(!early && up && !down, "initialised: %v %v %v", early, up, down),
		firstErr,
		want(errors.Is(secondErr, syscall.EALREADY), "second init: %v", secondErr),
		cleanErr,
		want(errors.Is(thirdErr, syscall.EALREADY) && strings.Contains(thirdErr.Error(), "second time"), "init after clean-up: %v", thirdErr),
		want(EalCleanup() != nil, "a second clean-up worked"),
	)
}

// Nothing stays behind of a process with a prefix of its own.
func TestRuntimeDirRemoved(t *testing.T) {
	dir := t.TempDir()
	args := strings.Join(append(DefaultArgs(true, 32, "ndpip-test-alone"), "--no-pci"), " ")
	if out, err := child(t, "start and stop", args, nil, "XDG_RUNTIME_DIR="+dir); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, base := range []string{"/var/run", dir} {
		if _, err := os.Stat(base + "/dpdk/ndpip-test-alone"); err == nil {
			t.Errorf("%s/dpdk/ndpip-test-alone is still there", base)
		}
	}
}

func failedChild(string) error {
	_, badErr := EalInit(append(strings.Fields(small()), "-m", "99999999"))
	_, againErr := EalInit(strings.Fields(small()))
	var e *EalError
	return errors.Join(
		want(errors.As(badErr, &e) && e.Errno == syscall.ENOMEM, "too much memory: %v", badErr),
		want(errors.Is(againErr, syscall.EALREADY) && strings.Contains(againErr.Error(), "first rte_eal_init"), "init after a failed one: %v", againErr),
		want(!EalInitialized(), "initialised after a failure"),
	)
}

// hostChild plays a program that has started DPDK itself.
func hostChild(string) error {
	n, errno := rteEalInit(append([]string{"host"}, strings.Fields(small())...), false)
	if n < 0 {
		return errno
	}
	_, err := EalInit(nil)
	pool, poolErr := NewMempool("host", 100, 0, -1, -1)
	if poolErr == nil {
		a := AttachMempool(pool.Ptr())
		if a.Size() != 100 || a.Avail() != 100 || a.DataRoom() != DataRoom {
			poolErr = fmt.Errorf("attached pool: %d, %d, %d", a.Size(), a.Avail(), a.DataRoom())
		}
		a.Free() // the owner frees it
		pool.Free()
	}
	return errors.Join(
		want(EalInitialized(), "not seen as initialised"),
		want(errors.Is(err, syscall.EALREADY), "EalInit: %v", err),
		poolErr,
		want(EalCleanup() != nil, "the host's EAL was cleaned up"),
	)
}

func affinity() (mask [16]uint64) {
	_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
	return mask
}

func affinityChild(string) error {
	runtime.LockOSThread()
	before := affinity()
	if _, err := EalInit(strings.Fields(small())); err != nil {
		return err
	}
	after := affinity()
	first, err := RegisterLcore(-1)
	again, err2 := RegisterLcore(-1)
	registered := affinity()
	_, badErr := RegisterLcore(1023)
	cpu := slices.IndexFunc(before[:], func(w uint64) bool { return w != 0 })*64 + trailing(before)
	_, pinErr := RegisterLcore(cpu)
	pinned := affinity()
	UnregisterLcore()
	return errors.Join(err, err2, pinErr,
		want(before == after && before == registered, "affinity %x, %x, %x", before[0], after[0], registered[0]),
		want(first == again, "registered twice as %d and %d", first, again),
		want(badErr != nil && strings.Contains(badErr.Error(), "CPU 1023"), "pinned to CPU 1023: %v", badErr),
		want(pinned[cpu/64] == 1<<(cpu%64), "pinned to CPU %d: %x", cpu, pinned[0]),
	)
}

func trailing(mask [16]uint64) (n int) {
	for _, w := range mask {
		if w != 0 {
			for w&1 == 0 {
				w >>= 1
				n++
			}
			return n
		}
	}
	return 0
}

// TestUnprivileged runs the other tests of this package as a user who has neither rights nor hugepages.
func TestUnprivileged(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("this run is unprivileged itself")
	}
	attr := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}
	cmd := childCmd("", "", noHugeEnv+"=1", "HOME=/nonexistent", "TMPDIR=/tmp", "XDG_RUNTIME_DIR=")
	cmd.Args = append(cmd.Args, "-test.short")
	cmd.SysProcAttr = attr
	cmd.Dir = "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
