package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// finding is one line of the doctor's report.
type finding struct {
	good bool
	what string // what was looked at
	have string // what is there
	get  string // how to get what is missing, "" if nothing is
}

func (f finding) String() string {
	mark := "ok  "
	if !f.good {
		mark = "lack"
	}
	line := fmt.Sprintf("%s  %-18s %s", mark, f.what, f.have)
	if f.get != "" {
		line += "\n      get it:            " + strings.ReplaceAll(f.get, "\n", "\n                         ")
	}
	return line
}

// examine only looks; it changes nothing.
func (d *dev) examine(ctx context.Context, runtime bool) []finding {
	var out []finding
	if !runtime {
		out = append(out, d.seeSystem())
		out = append(out, d.seeBuild(ctx)...)
	}
	out = append(out, d.seeUser(), seeHugepages(), seeCores(), seeGovernor(), seeAnyIsolated(), seeIOMMU(), seeVFIO())
	out = append(out, seeNICs()...)
	return append(out, seeKernelPorts())
}

func (d *dev) seeSystem() finding {
	name, err := osName()
	if err != nil {
		name = err.Error()
	}
	f := finding{good: true, what: "system", have: fmt.Sprintf("%s, %s, %s", name, runtime.GOARCH, runtime.Version())}
	if commandPath("apt-get") == "" {
		f.good, f.get = false, "no apt-get here: install what is missing below with this system's own package manager"
	}
	return f
}

func (d *dev) seeBuild(ctx context.Context) []finding {
	var out []finding
	flags, _ := d.output(ctx, job{argv: []string{"pkg-config", "--cflags", "libdpdk"}})
	for _, n := range needsToBuild() {
		f := finding{what: n.name, good: n.ok(ctx, d), have: "there"}
		if n.name == needDPDK.name {
			f.what, f.have = "DPDK", "none that is new enough ("+oldestDPDK+")"
			if v, err := d.output(ctx, job{argv: []string{"pkg-config", "--modversion", "libdpdk"}}); err == nil {
				f.have = strings.TrimSpace(v)
			}
		}
		if n.name == needDrivers.name && !f.good {
			f.have = "missing: " + strings.Join(missingDrivers(ctx, d), ", ")
		}
		if !f.good {
			if f.have == "there" {
				f.have = "missing"
			}
			f.get = "apt-get install -y --no-install-recommends " + strings.Join(n.pkgs, " ")
			if n.name == needDrivers.name && !needDPDK.ok(ctx, d) {
				f.get = "they come with libdpdk-dev"
			}
		}
		if n.name == needDPDK.name && f.good && strings.Contains(flags, cgoAllow) {
			f.have += ", whose flags the go command takes with CGO_CFLAGS_ALLOW=" + cgoAllow + " in the environment (dev sets it)"
		}
		out = append(out, f)
	}
	return out
}

// Capabilities by their number (linux/capability.h).
var wantedCaps = []struct {
	bit  uint
	name string
	why  string
}{
	{12, "CAP_NET_ADMIN", "tap, af_xdp"}, {13, "CAP_NET_RAW", "af_packet"}, {14, "CAP_IPC_LOCK", "hugepages, NICs"},
	{21, "CAP_SYS_ADMIN", "physical addresses, namespaces"},
}

func (d *dev) seeUser() finding {
	var caps uint64
	for line := range strings.Lines(readText("/proc/self/status")) {
		if v, ok := strings.CutPrefix(line, "CapEff:"); ok {
			caps, _ = strconv.ParseUint(strings.TrimSpace(v), 16, 64)
		}
	}
	var lacks []string
	for _, c := range wantedCaps {
		if caps&(1<<c.bit) == 0 {
			lacks = append(lacks, c.name+" ("+c.why+")")
		}
	}
	f := finding{good: len(lacks) == 0, what: "user", have: fmt.Sprintf("uid %d with all capabilities that matter", d.uid)}
	if !f.good {
		f.have = fmt.Sprintf("uid %d without %s", d.uid, strings.Join(lacks, ", "))
		f.get = "run as root, or give the program the capabilities with setcap; memif, ring and null work without"
	}
	return f
}

func seeHugepages() finding {
	f := finding{what: "hugepages"}
	var have []string
	free := 0
	for path, text := range globText("/sys/kernel/mm/hugepages/hugepages-*/free_hugepages") {
		kib := 0
		fmt.Sscanf(filepath.Base(filepath.Dir(path)), "hugepages-%dkB", &kib)
		if n, _ := strconv.Atoi(text); n > 0 {
			have = append(have, fmt.Sprintf("%d free of %d MiB", n, kib/1024))
			free += n * kib / 1024
		}
	}
	f.good = free >= 512
	f.have = "none free"
	if len(have) > 0 {
		f.have = strings.Join(have, ", ")
	}
	if !f.good {
		f.get = "as root: echo 512 > /proc/sys/vm/nr_hugepages (until the next boot), or vm.nr_hugepages=512 in /etc/sysctl.d\n" +
			"at best pages of 1 GiB on the kernel's command line: default_hugepagesz=1G hugepagesz=1G hugepages=4"
	}
	if mounts := hugeMounts(); len(mounts) > 0 {
		f.have += ", mounted on " + strings.Join(mounts, ", ")
	} else {
		f.have += ", hugetlbfs not mounted (only programs that share hugepages need that)"
	}
	return f
}

func seeCores() finding {
	f := finding{good: cores() >= 4, what: "CPUs", have: fmt.Sprintf("%d to run on, %d NUMA node(s)", cores(), len(globText("/sys/devices/system/node/node*/cpulist")))}
	if !f.good {
		f.get = "one for the worker and one for each thread that uses sockets, besides the system's own: 4 or more.\n" +
			"With fewer, let threads yield on an empty poll"
	}
	return f
}

func seeGovernor() finding {
	kinds := map[string]int{}
	for _, text := range globText("/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor") {
		kinds[text]++
	}
	f := finding{good: true, what: "CPU frequency", have: "not managed by this kernel (as in most virtual machines)"}
	if len(kinds) > 0 {
		f.have = fmt.Sprint(kinds)
		if f.good = len(kinds) == 1 && kinds["performance"] > 0; !f.good {
			f.get = "as root: for f in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do echo performance > $f; done"
		}
	}
	return f
}

func seeAnyIsolated() finding {
	isolated := readText("/sys/devices/system/cpu/isolated")
	ticks := readText("/sys/devices/system/cpu/nohz_full")
	f := finding{what: "isolated CPUs", good: isolated != "", have: "none"}
	if f.good {
		f.have = isolated
		if ticks != "" && ticks != "(null)" {
			f.have += ", without timer ticks: " + ticks
		}
	} else {
		f.get = "on the kernel's command line: isolcpus=2,3 nohz_full=2,3 rcu_nocbs=2,3 (the CPUs of the worker and the application)"
	}
	return f
}

func seeIOMMU() finding {
	groups, _ := filepath.Glob("/sys/kernel/iommu_groups/*")
	f := finding{what: "IOMMU", good: len(groups) > 0, have: fmt.Sprintf("%d groups", len(groups))}
	if !f.good {
		f.have = "off or not there"
		f.get = "only for PCI NICs: switch it on in the firmware and with intel_iommu=on (or amd_iommu=on) iommu=pt on the kernel's command line"
	}
	return f
}

func seeVFIO() finding {
	_, dev := os.Stat("/dev/vfio/vfio")
	_, mod := os.Stat("/sys/module/vfio_pci")
	f := finding{what: "vfio-pci", good: dev == nil && mod == nil, have: "loaded"}
	if !f.good {
		f.have = "not loaded"
		f.get = "only for PCI NICs (Mellanox ones do without): as root, modprobe vfio-pci; then dpdk-devbind.py -b vfio-pci ADDRESS"
		if _, err := os.Stat("/lib/modules"); err != nil {
			f.get = "only for PCI NICs: this kernel has no modules to load"
		}
	}
	return f
}

func seeNICs() []finding {
	var out []finding
	devices, _ := filepath.Glob("/sys/bus/pci/devices/*")
	for _, dir := range devices {
		if !strings.HasPrefix(readText(filepath.Join(dir, "class")), "0x02") {
			continue // not a network controller
		}
		driver := "no driver"
		if link, err := os.Readlink(filepath.Join(dir, "driver")); err == nil {
			driver = filepath.Base(link)
		}
		addr := filepath.Base(dir)
		f := finding{what: "NIC", good: driver == "vfio-pci" || driver == "mlx5_core" || driver == "mlx4_core",
			have: fmt.Sprintf("%s (%s:%s), bound to %s", addr, readText(filepath.Join(dir, "vendor")), readText(filepath.Join(dir, "device")), driver)}
		switch {
		case carriesDefaultRoute(dir):
			f.get = "leave it to the kernel: this machine's default route goes through it"
		case !f.good:
			f.get = "to use it from DPDK, and no longer from the kernel: dpdk-devbind.py -b vfio-pci " + addr
		}
		out = append(out, f)
	}
	if len(out) == 0 {
		out = append(out, finding{what: "NIC", have: "none on PCI", get: "virtual ports (memif, tap, af_packet, af_xdp) work without"})
	}
	return out
}

// carriesDefaultRoute says whether the kernel's default route leaves through an interface of this PCI device.
func carriesDefaultRoute(device string) bool {
	var names []string
	for _, pattern := range []string{"net/*", "*/net/*"} { // virtio has a level in between
		found, _ := filepath.Glob(filepath.Join(device, pattern))
		for _, path := range found {
			names = append(names, filepath.Base(path))
		}
	}
	for line := range strings.Lines(readText("/proc/net/route")) {
		if f := strings.Fields(line); len(f) > 2 && f[1] == "00000000" && slices.Contains(names, f[0]) {
			return true
		}
	}
	return false
}

// seeKernelPorts says which ports to the kernel can be had.
func seeKernelPorts() finding {
	var lacks []string
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		lacks = append(lacks, "tap (no /dev/net/tun: modprobe tun)")
	}
	// A socket of these families that cannot be made for lack of privilege is still one that the kernel knows.
	const afPacket, afXDP = 17, 44
	for _, f := range []struct {
		name   string
		family int
	}{{"af_packet", afPacket}, {"af_xdp", afXDP}} {
		fd, err := syscall.Socket(f.family, syscall.SOCK_RAW, 0)
		if err == nil {
			syscall.Close(fd)
		} else if err == syscall.EAFNOSUPPORT {
			lacks = append(lacks, f.name+" (not in this kernel)")
		}
	}
	if len(lacks) == 0 {
		return finding{good: true, what: "ports to the kernel", have: "tap, af_packet, af_xdp"}
	}
	return finding{what: "ports to the kernel", have: "missing: " + strings.Join(lacks, ", ")}
}
