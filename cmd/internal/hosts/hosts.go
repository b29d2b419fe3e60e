// Package hosts reads the file that describes the two hosts of an experiment, or one of them:
//
//	[sender]
//	ssh = "root@alpha"
//	address = "10.0.0.1/24"
//	pci = "0000:3b:00.0"
//	lcores = [2, 3]
//
//	[receiver]
//	…
//
// A host may also describe itself, in a file that has the same fields and no table (OwnFile). docs/hosts.toml has all fields;
// Fields says what each takes. The reading is strict: a fault names the line, the field and what would be right.
package hosts

import (
	"net"
	"net/netip"
	"path"
	"regexp"
	"strings"
)

// OwnFile is where a host describes itself.
const OwnFile = "/etc/ndpip/host.toml"

// Host is one end. What is not given is "", but for the defaults that are named here.
type Host struct {
	SSH          string `toml:"ssh"`           // where to, as ssh(1) takes it
	Address      string `toml:"address"`       // of the port that ndpip drives, with the prefix length
	LinuxAddress string `toml:"linux_address"` // of the kernel's interface, for the stack linux (Address without the length)
	MAC          string `toml:"mac"`           // of the port; the other host then does not ask for it
	PCI          string `toml:"pci"`           // the port: a device that DPDK drives,
	Wire         string `toml:"wire"`          // or any other --wire of ndpip-perf's
	Driver       string `toml:"driver"`        // that the PCI device is to be bound to
	Lcores       []int  `toml:"lcores"`        // CPUs of the application and of the worker; one alone: without a worker
	Checksum     string `toml:"checksum"`      // who computes checksums (auto)
	Programs     string `toml:"programs"`      // the folder of the programs ("": they are in the PATH)
}

// Pair is both hosts.
type Pair struct {
	Sender   Host `toml:"sender"`
	Receiver Host `toml:"receiver"`
}

// Fields are the fields of a host with what each takes, in the order of the documentation.
var Fields = []struct{ Name, Want string }{
	{"ssh", `a destination of ssh's, such as "root@alpha"`},
	{"address", `the port's IPv4 address with its prefix length, such as "10.0.0.1/24"`},
	{"linux_address", `the IPv4 address of the kernel's interface, such as "10.0.1.1"`},
	{"mac", `the port's Ethernet address, such as "02:00:00:00:00:01"`},
	{"pci", `the address of a PCI device, such as "0000:3b:00.0"`},
	{"wire", `another port in the place of pci, as ndpip-perf's --wire takes it, such as "af_xdp:eth1"`},
	{"driver", `the name of the driver that the PCI device is bound to, such as "vfio-pci"`},
	{"lcores", `the CPU of the application and that of the worker, such as [2, 3], or one alone to run without a worker`},
	{"checksum", `one of "auto", "software", "off"`},
	{"programs", `the full path of the folder with the programs, such as "/opt/ndpip/bin"`},
}

// Port is the port as ndpip-perf's --wire takes it.
func (h *Host) Port() string {
	if h.PCI != "" {
		return "pci:" + h.PCI
	}
	return h.Wire
}

// Program is how a program is called on the host.
func (h *Host) Program(name string) string {
	if h.Programs == "" {
		return name
	}
	return strings.TrimSuffix(h.Programs, "/") + "/" + name
}

// right says for each field that is a text whether it can be that.
var right = map[string]func(string) bool{
	"ssh": func(s string) bool { return s != "" && s[0] != '-' && !strings.ContainsAny(s, " \t\n") },
	"address": func(s string) bool {
		p, err := netip.ParsePrefix(s)
		return err == nil && p.Bits() > 0 && one(p.Addr())
	},
	"linux_address": func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && one(a) },
	"mac":           func(s string) bool { m, err := net.ParseMAC(s); return err == nil && len(m) == 6 && m[0]&1 == 0 },
	"pci":           regexp.MustCompile(`^([0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`).MatchString,
	"wire":          regexp.MustCompile(`^[a-z_]+(:\S+)?$`).MatchString,
	"driver":        regexp.MustCompile(`^[a-z0-9_-]+$`).MatchString,
	"checksum":      regexp.MustCompile(`^(auto|software|off)$`).MatchString,
	"programs":      path.IsAbs,
}

// one says whether a can be the address of one host.
func one(a netip.Addr) bool {
	return a.Is4() && !a.IsUnspecified() && !a.IsMulticast() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// texts are the fields that are texts, by name.
func (h *Host) texts() map[string]*string {
	return map[string]*string{
		"ssh": &h.SSH, "address": &h.Address, "linux_address": &h.LinuxAddress, "mac": &h.MAC, "pci": &h.PCI, "wire": &h.Wire,
		"driver": &h.Driver, "checksum": &h.Checksum, "programs": &h.Programs,
	}
}

// complete fills in the defaults.
func (h *Host) complete() {
	if h.LinuxAddress == "" {
		h.LinuxAddress, _, _ = strings.Cut(h.Address, "/")
	}
	if strings.Count(h.PCI, ":") == 1 {
		h.PCI = "0000:" + h.PCI
	}
	if h.Checksum == "" {
		h.Checksum = "auto"
	}
}
