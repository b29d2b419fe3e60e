package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// machine is where results come from. What cannot be found out is left empty.
type machine struct {
	CPU       string `json:"cpu"`
	CPUs      int    `json:"cpus"` // that this process may use
	Memory    string `json:"memory"`
	Hugepages string `json:"hugepages_free"`
	Kernel    string `json:"kernel"`
	Go        string `json:"go"`
	DPDK      string `json:"dpdk"`
	Commit    string `json:"commit"` // of the source tree; with + when files differ
}

func describe(root string, p plan) about {
	m := machine{CPUs: runtime.NumCPU(), Go: runtime.Version()}
	m.CPU = field("/proc/cpuinfo", "model name")
	m.Memory = field("/proc/meminfo", "MemTotal")
	m.Hugepages = field("/proc/meminfo", "HugePages_Free")
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Sysname[:]) + " " + unix.ByteSliceToString(u.Release[:])
	}
	m.DPDK = output(root, "pkg-config", "--modversion", "libdpdk")
	m.Commit = output(root, "git", "rev-parse", "--short=12", "HEAD")
	if m.Commit != "" && output(root, "git", "status", "--porcelain", "--untracked-files=no") != "" {
		m.Commit += "+"
	}
	return about{Type: "about", Time: time.Now(), Plan: p, Machine: m}
}

// field is the first line "NAME : VALUE" of a file.
func field(file, name string) string {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func output(dir, name string, args ...string) string {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func (m machine) String() string {
	parts := []string{m.CPU, count(m.CPUs, "CPU"), m.Kernel}
	if m.Go != "" {
		parts = append(parts, m.Go)
	}
	if m.DPDK != "" {
		parts = append(parts, "DPDK "+m.DPDK)
	}
	if m.Commit != "" {
		parts = append(parts, "commit "+m.Commit)
	}
	return strings.Join(parts, ", ")
}

// machines are those that were measured.
func (a *about) machines() string {
	if a.Peer == nil || *a.Peer == a.Machine {
		return a.Machine.String()
	}
	return "sender: " + a.Machine.String() + "; receiver: " + a.Peer.String()
}

// findRoot goes up from the working directory to the folder with ndpip's go.mod.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if text, err := os.ReadFile(filepath.Join(at, "go.mod")); err == nil && strings.HasPrefix(string(text), "module ndpip\n") {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", errors.New(dir + " is not inside ndpip's source tree: change to the folder with its go.mod")
		}
	}
}

// cpus are those that this process may use.
func cpus() (out []int) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return []int{0}
	}
	for i := range 1024 {
		if set.IsSet(i) {
			out = append(out, i)
		}
	}
	return out
}
