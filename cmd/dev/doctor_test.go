package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// machine makes a tree like /sys, of files with their texts and of links (->).
func machine(t *testing.T, files map[string]string) string {
	t.Helper()
	sys := t.TempDir()
	for name, text := range files {
		path := filepath.Join(sys, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if target, ok := strings.CutPrefix(text, "->"); ok {
			require.NoError(t, os.Symlink(target, path))
		} else {
			require.NoError(t, os.WriteFile(path, []byte(text+"\n"), 0o644))
		}
	}
	return sys
}

func TestDoctorDevice(t *testing.T) {
	const addr = "0000:3b:00.0"
	sys := machine(t, map[string]string{
		"bus/pci/devices/" + addr + "/vendor": "0x14e4", "bus/pci/devices/" + addr + "/device": "0x16d7",
		"bus/pci/devices/" + addr + "/numa_node": "1", "bus/pci/devices/" + addr + "/driver": "->../../drivers/vfio-pci",
	})
	f := seeDevice(sys, addr, "vfio-pci")
	require.True(t, f.good)
	require.Equal(t, addr+" (0x14e4:0x16d7), bound to vfio-pci, NUMA node 1", f.have)
	f = seeDevice(sys, addr, "mlx5_core")
	require.False(t, f.good)
	require.Contains(t, f.get, "dpdk-devbind.py -b mlx5_core "+addr)
	require.False(t, seeDevice(sys, "0000:3b:00.1", "vfio-pci").good)
}

func TestDoctorDMA(t *testing.T) {
	const mode = "module/vfio/parameters/enable_unsafe_noiommu_mode"
	require.True(t, seeDMA(machine(t, map[string]string{"kernel/iommu_groups/0/type": "DMA", mode: "N"})).good)
	require.True(t, seeDMA(machine(t, map[string]string{mode: "Y"})).good)
	f := seeDMA(machine(t, map[string]string{mode: "N"}))
	require.False(t, f.good)
	require.Contains(t, f.get, "intel_iommu=on")
	require.Contains(t, f.get, "enable_unsafe_noiommu_mode")
	require.NotContains(t, seeDMA(machine(t, nil)).get, "unsafe")
}

func TestDoctorCPUs(t *testing.T) {
	online := expandCPUs("0-3,8")
	require.Equal(t, []int{0, 1, 2, 3, 8}, online)
	require.Empty(t, expandCPUs(""))
	require.True(t, seeThese([]int{2, 8}, online).good)
	f := seeThese([]int{2, 9, 10}, online)
	require.False(t, f.good)
	require.Equal(t, "9,10 not there; 5 are", f.have)
	require.True(t, seeIsolated([]int{2, 3}, []int{2, 3}).good)
	f = seeIsolated([]int{2, 3}, []int{2})
	require.Equal(t, "3 not isolated", f.have)
	require.Contains(t, f.get, "isolcpus=2,3 ")
	for _, bad := range []string{"2-3", "two", "-1", "1,"} {
		_, err := parseCPUs(bad)
		require.Error(t, err, bad)
	}
}

// TestDoctorAnywhere runs outside of the tree, as on a host of a testbed; the card that it has to find is not there.
func TestDoctorAnywhere(t *testing.T) {
	d := testDev(t)
	t.Chdir(t.TempDir())
	require.NoError(t, d.doctor(t.Context(), doctorOptions{runtime: true}))
	require.NotContains(t, printed(d), "compiler")
	require.ErrorContains(t, d.doctor(t.Context(), doctorOptions{runtime: true, pci: "ffff:ff:1f.7", driver: "vfio-pci", cpus: "0"}), "mended")
	require.Contains(t, printed(d), "lack  NIC                none at ffff:ff:1f.7")
	require.ErrorAs(t, realMain([]string{"doctor", "--cpus", "two"}), new(usageError))
}
