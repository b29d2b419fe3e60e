package hosts

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const both = `# two hosts
[sender]
ssh = "root@alpha"
address = "10.0.0.1/24"
mac = "02:00:00:00:00:01"
pci = "3b:00.0"
driver = "vfio-pci"
lcores = [2, 3]

[receiver]
ssh = "root@beta"
address = "10.0.0.2/24"
linux_address = "10.0.1.2"
wire = "af_xdp:eth1"
lcores = [4]
checksum = "off"
programs = "/opt/ndpip/bin/"
`

func TestRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts.toml")
	_, err := Read(file)
	require.ErrorContains(t, err, "no such file")
	require.NoError(t, os.WriteFile(file, []byte(both), 0o600))
	p, err := Read(file)
	require.NoError(t, err)
	s, r := &p.Sender, &p.Receiver
	require.Equal(t, "pci:0000:3b:00.0", s.Port())
	require.Equal(t, "af_xdp:eth1", r.Port())
	require.Equal(t, "10.0.0.1", s.LinuxAddress)
	require.Equal(t, "10.0.1.2", r.LinuxAddress)
	require.Equal(t, "ndpip-perf", s.Program("ndpip-perf"))
	require.Equal(t, "/opt/ndpip/bin/ndpip-perf", r.Program("ndpip-perf"))
	require.Equal(t, "auto", s.Checksum)
	require.Equal(t, []int{2, 3}, s.Lcores)

	own, err := ParseOwn("alpha", []byte("address = '10.0.0.1/24'\nwire = 'null'\nlcores = [1]"))
	require.NoError(t, err)
	require.Equal(t, "alpha", own.SSH)
	_, err = Join(own, r)
	require.NoError(t, err)
	_, err = Join(own, own)
	require.ErrorContains(t, err, "alpha, alpha: receiver.address 10.0.0.1 is the sender's too")
}

// Each change of one line is found, with that line, the field, and what would be right.
func TestWrongFile(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`pci = "3b:00.0"`, `pcie = "3b:00.0"`, "f:6:1: sender.pcie is no field: want one of ssh, address,"},
		{`[receiver]`, `[reciever]`, "f:10:2: reciever is no field: want the tables [sender] and [receiver]"},
		{`# two hosts`, `ssh = "alpha"`, "f:1:1: ssh is no field: want the tables"},
		{`"10.0.0.1/24"`, `"10.0.0.1"`, `f:4:1: sender.address: want the port's IPv4 address with its prefix length, such as "10.0.0.1/24"`},
		{`"10.0.0.1/24"`, `"fe80::1/64"`, "f:4:1: sender.address: want the port's IPv4 address"},
		{`"10.0.0.1/24"`, `7`, "f:4:11: sender.address: want the port's IPv4 address"},
		{`"02:00:00:00:00:01"`, `"03:00:00:00:00:01"`, `f:5:1: sender.mac: want the port's Ethernet address`},
		{`"3b:00.0"`, `"3b:00"`, `f:6:1: sender.pci: want the address of a PCI device, such as "0000:3b:00.0"`},
		{`"vfio-pci"`, `"vfio pci"`, `f:7:1: sender.driver: want the name of the driver`},
		{`[2, 3]`, `[2, 2]`, "f:8:1: sender.lcores: want the CPU of the application and that of the worker, such as [2, 3]"},
		{`[2, 3]`, `[2, -3]`, "f:8:1: sender.lcores: want the CPU"},
		{`[2, 3]`, `"2-3"`, "f:8:10: sender.lcores: want the CPU"},
		{`[2, 3]`, `["2"]`, "f:8:11: sender.lcores: want the CPU"},
		{`lcores = [4]`, ``, "f:10:2: receiver.lcores is missing: want the CPU"},
		{`"root@beta"`, `"-oProxyCommand=x"`, "f:11:1: receiver.ssh: want a destination"},
		{`"10.0.0.2/24"`, `"10.0.0.1/24"`, "f:12:1: receiver.address 10.0.0.1 is the sender's too"},
		{`"10.0.0.2/24"`, `"10.0.9.2/24"`, "f:12:1: receiver.address 10.0.9.2/24 and sender.address 10.0.0.1/24 are on different networks"},
		{`"10.0.1.2"`, `"10.0.1.2/24"`, "f:13:1: receiver.linux_address: want"},
		{`wire = "af_xdp:eth1"`, `pci = "1:00.0"`, "f:14:1: receiver.pci: want"},
		{`wire = "af_xdp:eth1"`, `# none`, "f:10:2: receiver.pci is missing"},
		{`driver = "vfio-pci"`, `wire = "null"`, "f:7:1: sender.pci and sender.wire name one port each"},
		{`checksum = "off"`, `driver = "mlx5_core"`, "f:16:1: receiver.driver is that of a PCI device"},
		{`address = "10.0.0.1/24"`, `"address" = ""`, "f:4:1: sender.address: want"},
		{`checksum = "off"`, `checksum = off`, "f:16:12: "},
		{`checksum = "off"`, `checksum = "no"`, `f:16:1: receiver.checksum: want one of "auto", "software", "off"`},
		{`"/opt/ndpip/bin/"`, `"bin"`, "f:17:1: receiver.programs: want the full path"},
	} {
		require.Contains(t, both, c.old)
		_, err := Parse("f", []byte(strings.Replace(both, c.old, c.new, 1)))
		require.ErrorContains(t, err, c.want, c.new)
		require.NotContains(t, err.Error(), "\n")
	}
}

// Positions are known however the file is written.
func TestInline(t *testing.T) {
	const host = "address = '10.0.0.%s', wire = 'null', lcores = [1] }\n"
	text := "sender = { ssh = 'a', " + strings.Replace(host, "%s", "1/24", 1) + "receiver = { ssh = 'b', " + strings.Replace(host, "%s", "2", 1)
	_, err := Parse("f", []byte(text))
	require.ErrorContains(t, err, "f:2:25: receiver.address: want")
}

// The example of the documentation is right, and shows every field.
func TestExample(t *testing.T) {
	file := filepath.Join("..", "..", "..", "docs", "hosts.toml")
	_, err := Read(file)
	require.NoError(t, err)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, f := range Fields {
		require.Contains(t, string(text), f.Name+" = ")
	}
}

// Every field is in the list of what fields take, and the other way round.
func TestFields(t *testing.T) {
	var tags, names []string
	for h, i := reflect.TypeFor[Host](), 0; i < h.NumField(); i++ {
		tags = append(tags, h.Field(i).Tag.Get("toml"))
	}
	for _, f := range Fields {
		names = append(names, f.Name)
	}
	require.Equal(t, tags, names)
}
