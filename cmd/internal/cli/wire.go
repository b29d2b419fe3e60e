package cli

import (
	"path/filepath"
	"strings"
)

// Wire is the value of --wire: a kind of port and what names it, as in memif:/tmp/x.sock. It spares the EAL arguments.
type Wire struct{ Kind, Name string }

// String is the wire as api.Config takes it; "" without one.
func (w Wire) String() string {
	if w.Name == "" {
		return w.Kind
	}
	return w.Kind + ":" + w.Name
}

// What each kind of wire is named by.
var wireKinds = map[string]string{
	"memif":     "PATH",
	"tap":       "NAME",
	"af_packet": "INTERFACE",
	"af_xdp":    "INTERFACE",
	"pci":       "ADDRESS",
	"null":      "",
}

const (
	wireWant   = "memif:PATH, tap:NAME, af_packet:INTERFACE, af_xdp:INTERFACE or pci:ADDRESS"
	maxSocket  = 107 // bytes of sockaddr_un.sun_path without its final 0
	maxIfName  = 15  // IFNAMSIZ without its final 0
	ifNameWant = "an interface name of 1 to 15 characters without spaces or slashes"
)

// ParseWire reads KIND:NAME.
func ParseWire(s string) (Wire, error) {
	kind, name, _ := strings.Cut(s, ":")
	by, known := wireKinds[kind]
	switch {
	case !known:
		return Wire{}, Usagef("--wire %s: want %s", quote(s), wireWant)
	case by == "" && name != "":
		return Wire{}, Usagef("--wire %s: want %s alone", quote(s), kind)
	case by != "" && name == "":
		return Wire{}, Usagef("--wire %s: want %s:%s", quote(s), kind, by)
	case kind == "memif" && len(absolute(name)) > maxSocket:
		return Wire{}, Usagef("--wire memif: the path has %d bytes, and a socket's path holds at most %d; choose a shorter one", len(absolute(name)), maxSocket)
	case by == "INTERFACE" || by == "NAME":
		if len(name) > maxIfName || strings.ContainsAny(name, " \t\n/,") {
			return Wire{}, Usagef("--wire %s: want %s after %s:", quote(s), ifNameWant, kind)
		}
	}
	return Wire{kind, name}, nil
}

// absolute is the path that DPDK is given.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// kernelEnd says whether the other end of the wire is this machine's kernel.
func (w Wire) kernelEnd() bool { return w.Kind == "tap" || w.Kind == "af_packet" || w.Kind == "af_xdp" }
