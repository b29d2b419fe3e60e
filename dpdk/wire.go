package dpdk

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// WireError says that a wire string is wrong, and what would be right.
type WireError struct{ Spec, Problem string }

func (e *WireError) Error() string { return fmt.Sprintf("wire %q: %s", e.Spec, e.Problem) }

const wireKinds = "memif:PATH, tap:NAME, af_packet:INTERFACE, af_xdp:INTERFACE, pci:ADDRESS or null"

// Wire turns a wire string into EAL arguments that make its port, and the name by which PortByName finds it.
// server tells the side of a memif that creates the socket. The error is a *WireError.
func Wire(spec string, server bool) (args []string, device string, err error) {
	bad := func(format string, a ...any) ([]string, string, error) {
		return nil, "", &WireError{spec, fmt.Sprintf(format, a...)}
	}
	kind, rest, _ := strings.Cut(spec, ":")
	if strings.ContainsAny(rest, ", \t\n") {
		return bad("a comma or a space cannot be passed on to DPDK")
	}
	vdev := func(name, options string) ([]string, string, error) {
		return []string{"--no-pci", "--vdev=" + name + options}, name, nil
	}
	switch kind {
	case "memif":
		return wireMemif(rest, server, bad, vdev)
	case "tap":
		if !ifName(rest) {
			return bad("tap:NAME takes the name of the interface to make, 1 to 15 characters, as in tap:ndpip0")
		}
		return vdev("net_tap0", ",iface="+rest)
	case "af_packet":
		if !ifName(rest) {
			return bad("af_packet:INTERFACE takes the name of an interface that exists, as in af_packet:eth1")
		}
		// The driver's own 512 frames are fewer than a window of 1 MiB holds: what does not fit the ring is lost.
		return vdev("net_af_packet0", ",iface="+rest+",blocksz=1048576,framesz=2048,framecnt=4096")
	case "af_xdp":
		if !ifName(rest) {
			return bad("af_xdp:INTERFACE takes the name of an interface that exists, as in af_xdp:eth1")
		}
		return vdev("net_af_xdp0", ",iface="+rest)
	case "pci":
		addr, ok := pciAddress(rest)
		if !ok {
			return bad("pci:ADDRESS takes an address as lspci -D prints it, as in pci:0000:03:00.0")
		}
		return []string{"--allow=" + addr}, addr, nil
	case "null":
		if spec != "null" {
			return bad("null takes no argument")
		}
		return vdev("net_null0", "")
	case "":
		return bad("a wire is one of %s", wireKinds)
	}
	return bad("%q is no kind of wire; a wire is one of %s", kind, wireKinds)
}

// sunPath is the longest path of a Unix socket, less its final zero.
const sunPath = 107

func wireMemif(path string, server bool, bad func(string, ...any) ([]string, string, error),
	vdev func(string, string) ([]string, string, error)) ([]string, string, error) {
	if path == "" {
		return bad("memif:PATH takes the path of the socket that both sides meet at, as in memif:/tmp/ndpip.sock")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return bad("%v", err)
	}
	if len(abs) > sunPath {
		return bad("the path of a socket has at most %d bytes, %s has %d", sunPath, abs, len(abs))
	}
	role := "client"
	if server {
		role = "server"
	}
	// Without socket-abstract=no the driver takes the path for a name in the kernel's abstract space. One queue each
	// way of 2^11 entries; the client's choice holds. With 2^10 the sender was found waiting for its stores more often, at a
	// fifth of the speed: it writes slots again that are still in the cache of the other CPU.
	return vdev("net_memif0", fmt.Sprintf(",role=%s,id=0,socket=%s,socket-abstract=no,bsize=2048,rsize=11", role, abs))
}

func ifName(s string) bool {
	return len(s) > 0 && len(s) < 16 && s != "." && s != ".." && !strings.ContainsAny(s, "/:%")
}

// pciAddress accepts DDDD:BB:DD.F and BB:DD.F, and returns the long form.
func pciAddress(s string) (string, bool) {
	if strings.Count(s, ":") == 1 {
		s = "0000:" + s
	}
	var domain, bus, dev, fn uint
	n, err := fmt.Sscanf(s, "%x:%x:%x.%x", &domain, &bus, &dev, &fn)
	if err != nil || n != 4 || bus > 0xff || dev > 0x1f || fn > 7 {
		return "", false
	}
	full := fmt.Sprintf("%04x:%02x:%02x.%x", domain, bus, dev, fn)
	return full, strings.EqualFold(full, s)
}

// TapMAC is an option for a tap's --vdev argument: the address of the port's own end. (Without it the driver makes one.)
func TapMAC(mac net.HardwareAddr) string { return ",mac=" + mac.String() }

// memifServerSocket is the socket that a --vdev argument for a net_memif server names, or "".
func memifServerSocket(vdev string) string {
	if !strings.HasPrefix(vdev, "net_memif") || strings.Contains(vdev, "socket-abstract=yes") {
		return ""
	}
	server, path := false, ""
	for o := range strings.SplitSeq(vdev, ",") {
		server = server || o == "role=server" || o == "role=master"
		if p, ok := strings.CutPrefix(o, "socket="); ok {
			path = p
		}
	}
	if !server || !strings.Contains(vdev, "socket-abstract=no") {
		return ""
	}
	return path
}

// clearMemifSockets removes what a killed net_memif server left behind; the driver could not bind to its path otherwise.
// A socket with a living server at the other end is an error.
func clearMemifSockets(args []string) error {
	for i, a := range args {
		vdev, ok := strings.CutPrefix(a, "--vdev=")
		if !ok && i > 0 && args[i-1] == "--vdev" {
			vdev = a
		}
		path := memifServerSocket(vdev)
		if path == "" {
			continue
		}
		info, err := os.Lstat(path)
		if err != nil {
			continue // the driver says what is wrong with it, if anything is
		}
		if info.Mode().Type() != os.ModeSocket {
			return &WireError{"memif:" + path, "there is something at this path that is no socket: remove it, or choose another path"}
		}
		c, err := net.Dial("unixpacket", path)
		if err == nil {
			_ = c.Close()
			return &WireError{"memif:" + path, "another process is the server at this path already: stop it, or choose another path"}
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			if err := os.Remove(path); err != nil {
				return &WireError{"memif:" + path, fmt.Sprintf("a dead server's socket is there and cannot be removed: %v", err)}
			}
		}
	}
	return nil
}
