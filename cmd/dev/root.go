package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A folder that somebody has changed root to, and that is no mount point, is one in which "ip netns exec" fails: it makes
// the mounts of "/" its own, and there are none. There dev runs in a mount namespace of its own, whose root is the same
// folder once more, mounted. All of that is gone when dev ends.

// ownRootVar names the empty folder that the mounted root is made in; "-": it was made, or cannot be.
const ownRootVar = "NDPIP_DEV_ROOT"

// ownRootTime is how long dev has for its own cleaning up after it was told to stop.
const ownRootTime = 30 * time.Second

// rootIsMount says whether "/" is among the mounts that a process sees, as in /proc/self/mountinfo (proc(5)). Where that
// cannot be told it is taken for granted.
func rootIsMount(mountinfo string) bool {
	for line := range strings.Lines(mountinfo) {
		if f := strings.Fields(line); len(f) > 4 && f[4] == "/" {
			return true
		}
	}
	return mountinfo == ""
}

// needsOwnRoot says whether this process should run in a root of its own.
func needsOwnRoot() bool {
	return os.Getuid() == 0 && os.Getenv(ownRootVar) == "" && !rootIsMount(readText("/proc/self/mountinfo"))
}

// inOwnRoot runs this program once more, with the same arguments, in a root of its own, and gives its exit status.
func inOwnRoot(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "ndpip-root-")
	if err != nil {
		return err
	}
	defer func() {
		_ = syscall.Unmount(dir, syscall.MNT_DETACH) // where the mount was handed on to this namespace
		os.Remove(dir)
	}()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), ownRootVar+"="+dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = ownRootTime
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return exitError(exit.ExitCode())
	}
	if err != nil && ctx.Err() == nil && exit == nil { // no namespaces here: as well as it goes without
		os.Setenv(ownRootVar, "-")
		return realMain(os.Args[1:])
	}
	return err
}

// enterOwnRoot is the first thing that the process does which inOwnRoot has started. It starts the program anew in its root,
// or goes on where it is if that cannot be.
func enterOwnRoot() {
	dir := os.Getenv(ownRootVar)
	if dir == "" || dir == "-" {
		return
	}
	os.Setenv(ownRootVar, "-")
	self, err := os.Executable()
	if err != nil {
		return
	}
	cwd, err := os.Getwd()
	if err != nil {
		return
	}
	root := filepath.Join(dir, "root")
	for _, step := range []func() error{
		// What is mounted below a private mount is handed on to no other namespace.
		func() error { return syscall.Mount("ndpip-root", dir, "tmpfs", 0, "") },
		func() error { return syscall.Mount("", dir, "", syscall.MS_PRIVATE, "") },
		func() error { return os.Mkdir(root, 0o755) },
		func() error { return syscall.Mount("/", root, "", syscall.MS_BIND|syscall.MS_REC, "") },
		func() error { return syscall.Mount("", root, "", syscall.MS_SLAVE|syscall.MS_REC, "") },
		func() error { return syscall.Chroot(root) },
		func() error { return os.Chdir(cwd) },
		func() error { return syscall.Exec(self, os.Args, os.Environ()) },
	} {
		if step() != nil {
			return
		}
	}
}

// tellOfRoot says where dev runs, if that is not where it was started.
func (d *dev) tellOfRoot() {
	switch {
	case os.Getenv(ownRootVar) == "":
	case rootIsMount(readText("/proc/self/mountinfo")):
		d.out.Printf("/ is no mount point (somebody changed root to a folder): dev runs in a namespace where it is one")
	default:
		d.out.Printf("/ is no mount point (somebody changed root to a folder) and cannot be made one, so that \"ip netns exec\" will fail; mend: mount --bind DIR DIR before chroot DIR")
	}
}
