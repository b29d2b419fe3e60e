package dpdk

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// DefaultArgs are EAL arguments for a process that is to be a good neighbour: quiet, one lcore that may run wherever this
// process may (threads are registered one by one, see RegisterLcore), and nothing left behind.
//
// noHuge runs on ordinary pages of which mb MiB are taken at once (0: 64). Otherwise hugepages are taken as needed and
// never show in the hugepage directory; mb then is a limit (0: none). prefix names the process's files (DPDK's
// --file-prefix, "": one made of the process's number); processes with the same one cannot run at the same time.
func DefaultArgs(noHuge bool, mb int, prefix string) []string {
	args := []string{"--lcores=0@" + cpuList()}
	if noHuge {
		if mb <= 0 {
			mb = 64
		}
		if prefix == "" {
			prefix = fmt.Sprintf("ndpip%d", os.Getpid())
		}
		args = append(args, "--no-huge", "-m", strconv.Itoa(mb), "--file-prefix="+prefix)
	} else {
		args = append(args, "--in-memory")
		if mb > 0 {
			args = append(args, "-m", strconv.Itoa(mb))
		}
		if prefix != "" {
			args = append(args, "--file-prefix="+prefix)
		}
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
