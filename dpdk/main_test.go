package dpdk

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	args := DefaultArgs(!HasHugepages(), 0, "")
	args = append(args, "--no-pci", "--vdev=net_null0")
	if _, err := EalInit(args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := EalCleanup(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
