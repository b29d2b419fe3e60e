package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// doctorOptions say what a host of a testbed must have; without them the doctor tells and judges nothing.
type doctorOptions struct {
	runtime bool
	pci     string
	driver  string
	cpus    string
}

func doctorVerb() verb {
	var o doctorOptions
	return verb{
		name: "doctor", what: "what this machine has, what it lacks for full speed, and how to get it", limit: 2 * time.Minute,
		anywhere: true,
		flags: func(fs *flag.FlagSet) {
			fs.BoolVar(&o.runtime, "runtime", false, "leave out what only building takes")
			fs.StringVar(&o.pci, "pci", "", "fail unless the network card at this `ADDRESS`, and hugepages, can be used from DPDK")
			fs.StringVar(&o.driver, "driver", "vfio-pci", "with --pci: the `DRIVER` that the card has to be bound to")
			fs.StringVar(&o.cpus, "cpus", "", "fail unless these `CPUS` exist, such as 2,3, and warn unless they are isolated")
		},
		run: func(ctx context.Context, d *dev, _ []string) error { return d.doctor(ctx, o) },
	}
}

func (d *dev) doctor(ctx context.Context, o doctorOptions) error {
	cpus, err := parseCPUs(o.cpus)
	if err != nil {
		return usagef("doctor: --cpus %s: %v", o.cpus, err)
	}
	var must []finding
	if o.pci != "" {
		must = append(must, seeHugepages(), seeDevice("/sys", o.pci, o.driver))
		if o.driver == "vfio-pci" {
			must = append(must, seeDMA("/sys"))
		}
	}
	if len(cpus) > 0 {
		must = append(must, seeThese(cpus, expandCPUs(readText("/sys/devices/system/cpu/online"))))
	}
	all := d.examine(ctx, o.runtime)
	for _, f := range must {
		all = slices.DeleteFunc(all, func(other finding) bool { return other.what == f.what })
	}
	if len(cpus) > 0 {
		all = slices.DeleteFunc(all, func(f finding) bool { return f.what == "isolated CPUs" })
		all = append(all, seeIsolated(cpus, expandCPUs(readText("/sys/devices/system/cpu/isolated"))))
	}
	lacks := 0
	for _, f := range append(all, must...) {
		d.out.Printf("%s", f)
	}
	for _, f := range must {
		if !f.good {
			lacks++
		}
	}
	if lacks > 0 {
		return fmt.Errorf("%d of the last %d lines say what has to be mended before this host can be used", lacks, len(must))
	}
	return nil
}

// seeDevice looks at one card.
func seeDevice(sys, addr, driver string) finding {
	dir := filepath.Join(sys, "bus", "pci", "devices", addr)
	f := finding{what: "NIC", have: "none at " + addr}
	if _, err := os.Stat(dir); err != nil {
		f.get = "see the other NICs, or lspci -D, for the right address"
		return f
	}
	bound := "no driver"
	if link, err := os.Readlink(filepath.Join(dir, "driver")); err == nil {
		bound = filepath.Base(link)
	}
	f.good = bound == driver
	f.have = fmt.Sprintf("%s (%s:%s), bound to %s, NUMA node %s", addr, readText(filepath.Join(dir, "vendor")),
		readText(filepath.Join(dir, "device")), bound, readText(filepath.Join(dir, "numa_node")))
	if !f.good {
		f.get = "as root: dpdk-devbind.py -b " + driver + " " + addr
	}
	return f
}

// seeDMA looks whether vfio may give a device memory: through an IOMMU, or without one by the user's leave.
func seeDMA(sys string) finding {
	groups, _ := filepath.Glob(filepath.Join(sys, "kernel", "iommu_groups", "*"))
	f := finding{good: len(groups) > 0, what: "IOMMU", have: fmt.Sprintf("%d groups", len(groups))}
	if !f.good {
		leave := readText(filepath.Join(sys, "module", "vfio", "parameters", "enable_unsafe_noiommu_mode"))
		f.good, f.have = leave == "Y", "off; vfio without it is allowed"
		if !f.good {
			f.have = "off, and vfio without it is not allowed"
			f.get = "switch it on in the firmware and with intel_iommu=on (or amd_iommu=on) iommu=pt on the kernel's command line"
			if leave != "" { // else this kernel is built without that mode
				f.get += ",\nor, as root and at your risk: echo Y > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
			}
		}
	}
	return f
}

func seeThese(want, online []int) finding {
	f := finding{good: true, what: "CPUs", have: fmt.Sprintf("%s of %d", joinCPUs(want), len(online))}
	if lacks := without(want, online); len(lacks) > 0 {
		f.good, f.have = false, fmt.Sprintf("%s not there; %d are", joinCPUs(lacks), len(online))
		f.get = "name others: lscpu -e shows them with their cores and nodes"
	}
	return f
}

func seeIsolated(want, isolated []int) finding {
	f := finding{good: true, what: "isolated CPUs", have: joinCPUs(isolated)}
	if lacks := without(want, isolated); len(lacks) > 0 {
		list := joinCPUs(want)
		f.good, f.have = false, joinCPUs(lacks)+" not isolated"
		f.get = fmt.Sprintf("on the kernel's command line: isolcpus=%s nohz_full=%s rcu_nocbs=%s", list, list, list)
	}
	return f
}

// without are those of a that are not in b.
func without(a, b []int) []int {
	return slices.DeleteFunc(slices.Clone(a), func(n int) bool { return slices.Contains(b, n) })
}

var errCPUs = errors.New("want numbers of CPUs, such as 2,3")

func parseCPUs(list string) ([]int, error) {
	if list == "" {
		return nil, nil
	}
	var out []int
	for f := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(f)
		if err != nil || n < 0 {
			return nil, errCPUs
		}
		out = append(out, n)
	}
	return out, nil
}

// expandCPUs reads a list of the kernel's, such as 0-3,8.
func expandCPUs(list string) []int {
	var out []int
	for f := range strings.SplitSeq(list, ",") {
		first, last, _ := strings.Cut(f, "-")
		if last == "" {
			last = first
		}
		a, err1 := strconv.Atoi(first)
		b, err2 := strconv.Atoi(last)
		for n := a; err1 == nil && err2 == nil && n <= b; n++ {
			out = append(out, n)
		}
	}
	return out
}

func joinCPUs(cpus []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(cpus), " ", ","), "[]")
}
