package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"ndpip/api"
	"ndpip/dpdk"
)

func TestChecksums(t *testing.T) {
	all := dpdk.TxTCPSum | dpdk.TxUDPSum | dpdk.RxL4Good
	require.Equal(t, "checksums: computed by the port, checked by the port", checksums(api.ChecksumAuto, all, all))
	require.Equal(t, "checksums: computed by the CPU, checked by the port", checksums(api.ChecksumAuto, 0, all))
	require.Equal(t, "checksums: computed by the CPU, checked by the CPU", checksums(api.ChecksumSoftware, all, all))
	require.Equal(t, "checksums: off, neither computed nor checked", checksums(api.ChecksumOff, all, all))
}
