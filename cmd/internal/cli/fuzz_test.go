package cli

import (
	"errors"
	"strings"
	"testing"

	"ndpip/dpdk"
)

// FuzzWire reads any text as the value of --wire: here, and where it becomes arguments for DPDK.
func FuzzWire(f *testing.F) {
	for _, s := range []string{"memif:/tmp/x.sock", "tap:ndpip0", "af_packet:eth0", "af_xdp:eth0", "pci:0000:03:00.0", "pci:03:00.0", "null",
		"null:x", "memif:", "tap:a,b", "tap:..", "memif:a b", ":", "pci:0:0:0.0", "tap:%d", "\r", "tap:\x1b[2J", "memif:/" + strings.Repeat("x", 107)} {
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, s string, server bool) {
		w, err := ParseWire(s)
		if err != nil {
			oneLine(t, err)
		} else if w.String() != s && w.String()+":" != s {
			t.Errorf("%q is read as %q", s, w)
		}
		args, device, derr := dpdk.Wire(s, server)
		var wrong *dpdk.WireError
		switch {
		case derr != nil && !errors.As(derr, &wrong):
			t.Errorf("%q: %T", s, derr)
		case derr != nil:
			if derr.Error() == "" {
				t.Errorf("%q: no text", s)
			}
		case device == "" || len(args) == 0:
			t.Errorf("%q: device %q, arguments %q", s, device, args)
		case err != nil:
			t.Errorf("%q: the option is wrong (%v), and DPDK would get %q", s, err, args)
		}
		// Whatever is in the text, it stays within its argument: one device, and options that are the driver's.
		for _, a := range args {
			if strings.ContainsAny(a, " \t\n") || !strings.HasPrefix(a, "--") {
				t.Errorf("%q: argument %q", s, a)
			}
		}
	})
}

func oneLine(t *testing.T, err error) {
	if s := err.Error(); s == "" || s != OneLine(s) {
		t.Errorf("not one line: %q", s)
	}
}
