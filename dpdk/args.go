package dpdk

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// defaultPrefix is the --file-prefix of processes that do not care.
const defaultPrefix = "ndpip"

// DefaultArgs are EAL arguments for a process that is to be a good neighbour: one lcore that may run wherever this
// process may (threads are registered one by one, see RegisterLcore), no log, and nothing left behind.
//
// noHuge runs on ordinary pages of which mb MiB are taken at once (0: 64). Otherwise hugepages are taken as needed and
// never show in the hugepage directory; mb then is what is taken at the start (0: nothing). prefix names the directory
// of DPDK's telemetry socket (its --file-prefix, "": ndpip); processes may share one.
func DefaultArgs(noHuge bool, mb int, prefix string) []string {
	if prefix == "" {
		prefix = defaultPrefix
	}
	args := []string{"--lcores=0@" + cpuList(), "--file-prefix=" + prefix}
	if noHuge {
		if mb <= 0 {
			mb = 64
		}
		// --in-memory would be refused together with --no-huge; of what it stands for this is the part that matters.
		args = append(args, "--no-huge", "--no-shconf")
	} else {
		args = append(args, "--in-memory")
	}
	if mb > 0 {
		args = append(args, "-m", strconv.Itoa(mb))
	}
	return args
}

// cpuList is the CPUs that this process may run on, as "(0,1,4-7)", which the EAL takes for the set of one lcore.
func cpuList() string {
	status, err := os.ReadFile("/proc/self/status")
	if err == nil {
		for line := range strings.Lines(string(status)) {
			if l, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
				return "(" + strings.TrimSpace(l) + ")"
			}
		}
	}
	return "(0)"
}

// HasHugepages reports whether this user can get hugepages: some are free, and the kernel lets us have them, by
// a hugepage directory that we may write to, or by anonymous memory (--in-memory), which needs no directory.
func HasHugepages() bool {
	files, _ := filepath.Glob("/sys/kernel/mm/hugepages/hugepages-*/free_hugepages")
	for _, f := range files {
		free, err := os.ReadFile(f)
		if err != nil || strings.TrimSpace(string(free)) == "0" {
			continue
		}
		var kb int
		if n, _ := fmt.Sscanf(filepath.Base(filepath.Dir(f)), "hugepages-%dkB", &kb); n == 1 && tryHugepage(kb<<10) {
			return true
		}
	}
	return false
}

// tryHugepage maps one page of the given size the way that DPDK does with --in-memory, and gives it back.
func tryHugepage(size int) bool {
	log2 := 0
	for 1<<log2 < size {
		log2++
	}
	const mapHugeShift = 26
	m, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS|syscall.MAP_HUGETLB|log2<<mapHugeShift)
	if err != nil {
		return false
	}
	return syscall.Munmap(m) == nil
}
