package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Hugepages of 2 MiB: how many the demo and the tests work with.
const (
	hugeDir   = "/sys/kernel/mm/hugepages/hugepages-2048kB"
	hugeWant  = 512 // pages
	hugeFewer = 256 // still enough
)

// hugepages is what was taken from the machine and is given back at the end.
type hugepages struct {
	free  int // free pages of 2 MiB after take
	added int
}

// takeHugepages sees to it that hugepages are free, where that is possible. Not having any is no error: the programs
// run without, only slower.
func (d *dev) takeHugepages() *hugepages {
	h := &hugepages{free: readInt(hugeDir + "/free_hugepages")}
	if d.uid != 0 || h.free >= hugeFewer {
		return h
	}
	add := hugeWant - h.free
	// Half of what is available stays for the builds and for all else.
	if most := memAvailableMiB() / 2 / 2; add > most {
		add = most
	}
	total := readInt(hugeDir + "/nr_hugepages")
	if add <= 0 || os.WriteFile(hugeDir+"/nr_hugepages", []byte(strconv.Itoa(total+add)), 0o644) != nil {
		return h
	}
	// The kernel gives as many as it finds in one piece.
	h.added = max(0, readInt(hugeDir+"/nr_hugepages")-total)
	h.free = readInt(hugeDir + "/free_hugepages")
	return h
}

// giveBack leaves as many pages as there were before.
func (h *hugepages) giveBack() {
	if h.added > 0 {
		now := readInt(hugeDir + "/nr_hugepages")
		_ = os.WriteFile(hugeDir+"/nr_hugepages", []byte(strconv.Itoa(max(0, now-h.added))), 0o644)
		h.added, h.free = 0, 0
	}
}

func (h *hugepages) String() string {
	switch {
	case h.added > 0:
		return fmt.Sprintf("%d hugepages of 2 MiB (%d reserved now, given back at the end)", h.free, h.added)
	case h.free > 0:
		return fmt.Sprintf("%d free hugepages of 2 MiB", h.free)
	default:
		return "no hugepages (slower; go run ./cmd/dev doctor says how to get them)"
	}
}

// hugeMounts are the folders where hugetlbfs is mounted.
func hugeMounts() []string {
	var dirs []string
	for line := range strings.Lines(readText("/proc/mounts")) {
		if f := strings.Fields(line); len(f) > 2 && f[2] == "hugetlbfs" {
			dirs = append(dirs, f[1])
		}
	}
	return dirs
}

func memAvailableMiB() int {
	for line := range strings.Lines(readText("/proc/meminfo")) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "MemAvailable:" {
			kib, _ := strconv.Atoi(f[1])
			return kib / 1024
		}
	}
	return 0
}

// readText is a small file's content, "" if it cannot be read.
func readText(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// readInt is the number in a small file, 0 if there is none.
func readInt(path string) int {
	n, _ := strconv.Atoi(readText(path))
	return n
}

// globText gives the content of each file that matches.
func globText(pattern string) map[string]string {
	out := map[string]string{}
	paths, _ := filepath.Glob(pattern)
	for _, path := range paths {
		out[path] = readText(path)
	}
	return out
}
