package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// need is one thing that has to be on the machine.
type need struct {
	name string
	pkgs []string // Debian and Ubuntu packages that bring it
	ok   func(ctx context.Context, d *dev) bool
}

// oldestDPDK is the first version that the project builds against.
const oldestDPDK = "21.11"

// Packages are named without their versions (libdpdk-dev, not librte-eal23), so that the names hold on Debian 12 and
// 13 and Ubuntu 22.04 and 24.04. gcc is nothing without libc6-dev, which it only recommends.
var (
	needCompiler  = need{"C compiler", []string{"gcc", "libc6-dev"}, compiles}
	needCPlusPlus = need{"C++ compiler", []string{"g++"}, inPath("g++")}
	needPkgConf   = need{"pkg-config", []string{"pkg-config"}, inPath("pkg-config")}
	needDPDK      = need{"DPDK " + oldestDPDK + " or later", []string{"libdpdk-dev"}, hasDPDK}
	// The drivers are loaded while the program runs, so a build does not show that one is missing.
	needDrivers = need{"DPDK's drivers", []string{"librte-meta-net", "librte-meta-mempool", "librte-meta-bus"}, hasDrivers}

	needIP      = need{"ip", []string{"iproute2"}, inPath("ip")}
	needPing    = need{"ping", []string{"iputils-ping"}, inPath("ping")}
	needSocat   = need{"socat", []string{"socat"}, inPath("socat")}
	needEthtool = need{"ethtool", []string{"ethtool"}, inPath("ethtool")}
	needNetcat  = need{"nc", []string{"netcat-openbsd"}, inPath("nc")}
	needCurl    = need{"curl", []string{"curl"}, inPath("curl")}
	needWget    = need{"wget", []string{"wget"}, inPath("wget")}
	needTcpdump = need{"tcpdump", []string{"tcpdump"}, inPath("tcpdump")}
	needWrk     = need{"wrk", []string{"wrk"}, inPath("wrk")}

	needShellcheck = need{"shellcheck", []string{"shellcheck"}, inPath("shellcheck")}
)

// needsToBuild is what building the programs and running them over virtual ports takes.
func needsToBuild() []need {
	return []need{needCompiler, needPkgConf, needDPDK, needDrivers}
}

// inPath looks for a command in PATH and where Debian keeps root's commands, which is not in every user's PATH.
func inPath(name string) func(context.Context, *dev) bool {
	return func(context.Context, *dev) bool { return commandPath(name) != "" }
}

func commandPath(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if path := filepath.Join(dir, name); isFile(path) {
			return path
		}
	}
	return ""
}

func compiles(ctx context.Context, d *dev) bool {
	if commandPath("gcc") == "" {
		return false
	}
	dir, err := os.MkdirTemp("", "ndpip-dev-")
	if err != nil {
		return false
	}
	defer os.RemoveAll(dir)
	src := filepath.Join(dir, "a.c")
	if os.WriteFile(src, []byte("#include <stdlib.h>\nint main(void) { return 0; }\n"), 0o644) != nil {
		return false
	}
	return d.run(ctx, job{argv: []string{"gcc", "-o", filepath.Join(dir, "a"), src}, limit: time.Minute}) == nil
}

func hasDPDK(ctx context.Context, d *dev) bool {
	return commandPath("pkg-config") != "" &&
		d.run(ctx, job{argv: []string{"pkg-config", "--atleast-version=" + oldestDPDK, "libdpdk"}}) == nil &&
		d.run(ctx, job{argv: []string{"pkg-config", "--exists", "libdpdk"}}) == nil
}

// drivers are the ones that the demo and the tests load, by the names of their shared libraries.
var drivers = []string{
	"net_memif", "net_tap", "net_af_packet", "net_ring", "net_null", "mempool_ring", "bus_vdev", "bus_pci",
}

func hasDrivers(ctx context.Context, d *dev) bool { return len(missingDrivers(ctx, d)) == 0 }

func missingDrivers(ctx context.Context, d *dev) []string {
	dir, err := d.output(ctx, job{argv: []string{"pkg-config", "--variable=libdir", "libdpdk"}})
	dir = strings.TrimSpace(dir)
	if err != nil || dir == "" {
		return drivers
	}
	var missing []string
	for _, name := range drivers {
		// The shared library (with any version at its end), or the archive of a static build.
		for _, pattern := range []string{"librte_" + name + ".so*", "dpdk/pmds-*/librte_" + name + ".so*", "librte_" + name + ".a"} {
			if found, _ := filepath.Glob(filepath.Join(dir, pattern)); len(found) > 0 {
				name = ""
				break
			}
		}
		if name != "" {
			missing = append(missing, name)
		}
	}
	return missing
}

// setUp brings what is missing onto the machine, or says how the user does it.
func (d *dev) setUp(ctx context.Context, needs []need) error {
	d.out.Status("looking for what is needed")
	missing := d.missing(ctx, needs)
	if len(missing) == 0 {
		return nil
	}
	names, pkgs := names(missing), packages(missing)
	switch {
	case commandPath("apt-get") == "":
		return fmt.Errorf("missing: %s. This is no Debian or Ubuntu: install them with your system's package manager "+
			"(on Debian the packages are %s)", strings.Join(names, ", "), strings.Join(pkgs, " "))
	case d.uid != 0:
		return fmt.Errorf("missing: %s. Install them with this command, then start again:\n"+
			"    sudo apt-get update && sudo apt-get install -y --no-install-recommends %s",
			strings.Join(names, ", "), strings.Join(pkgs, " "))
	}
	d.out.Printf("missing: %s", strings.Join(names, ", "))
	if err := d.aptInstall(ctx, pkgs); err != nil {
		return err
	}
	if still := d.missing(ctx, missing); len(still) > 0 {
		// libdpdk-dev brings DPDK's drivers along where it is packaged with them; elsewhere they are asked for by name.
		if err := d.aptInstall(ctx, packages(still)); err != nil {
			return err
		}
		if still = d.missing(ctx, still); len(still) > 0 {
			return fmt.Errorf("%s: still missing after installing %s%s", strings.Join(names, ", "),
				strings.Join(packages(still), " "), whyStill(ctx, d, still))
		}
	}
	return nil
}

func whyStill(ctx context.Context, d *dev, still []need) string {
	for _, n := range still {
		if n.name == needDPDK.name {
			have, _ := d.output(ctx, job{argv: []string{"pkg-config", "--modversion", "libdpdk"}})
			return fmt.Sprintf(" (found DPDK %s; Debian 12 and Ubuntu 22.04 are the first with one that is new enough)",
				strings.TrimSpace(have))
		}
	}
	return ""
}

func (d *dev) missing(ctx context.Context, needs []need) []need {
	var out []need
	for _, n := range needs {
		if !n.ok(ctx, d) {
			out = append(out, n)
		}
	}
	return out
}

func names(needs []need) []string {
	var out []string
	for _, n := range needs {
		out = append(out, n.name)
	}
	return out
}

// packages are the packages to ask for. The drivers' own are left to libdpdk-dev while that is missing itself.
func packages(needs []need) []string {
	withDPDK := slices.ContainsFunc(needs, func(n need) bool { return n.name == needDPDK.name })
	var out []string
	for _, n := range needs {
		if n.name != needDrivers.name || !withDPDK {
			out = append(out, n.pkgs...)
		}
	}
	return out
}

// aptInstall installs packages, with a fresh package list where the one at hand is old or does not know them.
func (d *dev) aptInstall(ctx context.Context, pkgs []string) error {
	begin := time.Now()
	updated := false
	if listsAreOld() {
		if err := d.aptGet(ctx, "reading the package lists", "update"); err != nil {
			return fmt.Errorf("%w\n    mend: see that this machine reaches its package mirror (apt-get update)", err)
		}
		updated = true
	}
	args := append([]string{"install", "-y", "--no-install-recommends", "--no-remove"}, pkgs...)
	err := d.aptGet(ctx, "installing", args...)
	if err != nil && !updated && ctx.Err() == nil {
		// A list of last week names package files that the mirror no longer has.
		if err = d.aptGet(ctx, "reading the package lists", "update"); err == nil {
			err = d.aptGet(ctx, "installing", args...)
		}
	}
	if err != nil {
		return fmt.Errorf("%w\n    mend: run this command by hand and see what it says:\n"+
			"    apt-get install -y --no-install-recommends %s", err, strings.Join(pkgs, " "))
	}
	d.out.Printf("installed %s (%.0f s)", strings.Join(pkgs, " "), time.Since(begin).Seconds())
	return nil
}

func (d *dev) aptGet(ctx context.Context, what string, args ...string) error {
	begin := time.Now()
	argv := []string{commandPath("apt-get"), "-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::Retries=3", "-o", "Dpkg::Use-Pty=0"}
	return d.run(ctx, job{
		argv:  append(argv, args...),
		env:   []string{"DEBIAN_FRONTEND=noninteractive", "NEEDRESTART_MODE=l", "PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin"},
		limit: 10 * time.Minute,
		grace: 30 * time.Second, // dpkg finishes the package that it is at
		line: func(s string) {
			d.out.Status("%s (%.0f s): %s", what, time.Since(begin).Seconds(), s)
		},
	})
}

// listsAreOld says whether apt's package lists are missing or older than a day.
func listsAreOld() bool {
	lists, _ := filepath.Glob("/var/lib/apt/lists/*_Packages*")
	if len(lists) == 0 {
		return true
	}
	newest := time.Time{}
	for _, path := range append(lists, "/var/lib/apt/lists/partial", "/var/cache/apt/pkgcache.bin") {
		if st, err := os.Stat(path); err == nil && st.ModTime().After(newest) {
			newest = st.ModTime()
		}
	}
	return time.Since(newest) > 24*time.Hour
}

// osName is the name that the system gives itself.
func osName() (string, error) {
	f, err := os.Open("/etc/os-release")
	if err != nil {
		return "", err
	}
	defer f.Close()
	for in := bufio.NewScanner(f); in.Scan(); {
		if name, ok := strings.CutPrefix(in.Text(), "PRETTY_NAME="); ok {
			return strings.Trim(name, `"`), nil
		}
	}
	return "", errors.New("/etc/os-release has no PRETTY_NAME")
}
