package dpdk

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestWire(t *testing.T) {
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	memif := func(role, path string) string {
		return "--vdev=net_memif0,role=" + role + ",id=0,socket=" + path + ",socket-abstract=no,bsize=2048,rsize=11"
	}
	for _, c := range []struct {
		spec   string
		server bool
		args   []string
		device string
	}{
		{"memif:/tmp/x.sock", true, []string{"--no-pci", memif("server", "/tmp/x.sock")}, "net_memif0"},
		{"memif:/tmp/../x", false, []string{"--no-pci", memif("client", "/x")}, "net_memif0"},
		{"memif:x.sock", false, []string{"--no-pci", memif("client", filepath.Join(wd, "x.sock"))}, "net_memif0"},
		{"memif:/tmp/a:b", false, []string{"--no-pci", memif("client", "/tmp/a:b")}, "net_memif0"},
		{"tap:ndpip0", true, []string{"--no-pci", "--vdev=net_tap0,iface=ndpip0"}, "net_tap0"},
		{"af_packet:eth1", false, []string{"--no-pci", "--vdev=net_af_packet0,iface=eth1,blocksz=1048576,framesz=2048,framecnt=4096"}, "net_af_packet0"},
		{"af_xdp:enp3s0f1np1.1000", false, nil, ""}, // 16 characters are one too many
		{"af_xdp:enp3s0f1np1.1", false, []string{"--no-pci", "--vdev=net_af_xdp0,iface=enp3s0f1np1.1"}, "net_af_xdp0"},
		{"pci:0000:03:00.0", false, []string{"--allow=0000:03:00.0"}, "0000:03:00.0"},
		{"pci:03:00.1", false, []string{"--allow=0000:03:00.1"}, "0000:03:00.1"},
		{"pci:0000:AF:1f.7", false, []string{"--allow=0000:af:1f.7"}, "0000:af:1f.7"},
		{"null", false, []string{"--no-pci", "--vdev=net_null0"}, "net_null0"},
	} {
		args, device, err := Wire(c.spec, c.server)
		if c.args == nil {
			if err == nil {
				t.Errorf("Wire(%q): no error", c.spec)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(args, c.args) || device != c.device {
			t.Errorf("Wire(%q, %v)\n gives %q, %q, %v\n want %q, %q", c.spec, c.server, args, device, err, c.args, c.device)
		}
	}
}

func TestWireErrors(t *testing.T) {
	for _, c := range []struct{ spec, want string }{
		{"", "a wire is one of memif:PATH, tap:NAME"},
		{"memif", "memif:PATH takes the path of the socket"},
		{"memif:", "as in memif:/tmp/ndpip.sock"},
		{"memif:/" + strings.Repeat("x", 107), "at most 107 bytes"},
		{"memif:/tmp/a,b", "a comma or a space"},
		{"memif:/tmp/a b", "a comma or a space"},
		{"tap:", "1 to 15 characters"},
		{"tap:a/b", "as in tap:ndpip0"},
		{"tap:abcdefghijklmnop", "1 to 15 characters"},
		{"af_packet", "an interface that exists"},
		{"af_xdp:..", "an interface that exists"},
		{"pci:3", "as lspci -D prints it"},
		{"pci:0000:03:20.0", "as in pci:0000:03:00.0"},
		{"pci:0000:03:00.0x", "as in pci:0000:03:00.0"},
		{"null:1", "null takes no argument"},
		{"eth0", `"eth0" is no kind of wire`},
		{"Memif:/x", `"Memif" is no kind of wire`},
	} {
		_, _, err := Wire(c.spec, false)
		var w *WireError
		if !errors.As(err, &w) || !strings.Contains(err.Error(), c.want) || w.Spec != c.spec {
			t.Errorf("Wire(%q): %v; want %q", c.spec, err, c.want)
		}
	}
}

func TestMemifServerSocket(t *testing.T) {
	for vdev, want := range map[string]string{
		"net_memif0,role=server,socket=/a,socket-abstract=no":          "/a",
		"net_memif7,socket=/a,role=server,id=0,socket-abstract=no,x=y": "/a",
		"net_memif0,role=client,socket=/a,socket-abstract=no":          "",
		"net_memif0,role=server,socket=/a,socket-abstract=yes":         "",
		"net_memif0,role=server,socket=/a":                             "", // abstract is the driver's default
		"net_tap0,iface=a":                                             "",
	} {
		if got := memifServerSocket(vdev); got != want {
			t.Errorf("%s: %q, want %q", vdev, got, want)
		}
	}
}

func TestDefaultArgs(t *testing.T) {
	for _, c := range []struct {
		noHuge bool
		mb     int
		prefix string
		want   []string
	}{
		{true, 0, "", []string{"--file-prefix=ndpip", "--no-huge", "--no-shconf", "-m", "64"}},
		{true, 256, "p", []string{"--file-prefix=p", "--no-huge", "--no-shconf", "-m", "256"}},
		{false, 0, "", []string{"--file-prefix=ndpip", "--in-memory"}},
		{false, 128, "", []string{"--file-prefix=ndpip", "--in-memory", "-m", "128"}},
	} {
		args := DefaultArgs(c.noHuge, c.mb, c.prefix)
		if !strings.HasPrefix(args[0], "--lcores=0@(") || !reflect.DeepEqual(args[1:], c.want) {
			t.Errorf("%v, %d: %q, want %q", c.noHuge, c.mb, args, c.want)
		}
	}
}
