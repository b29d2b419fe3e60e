//go:build cgo

package dpdk

import (
	"fmt"
	"os"
	"testing"
)

// childEnv names the part that this test binary plays when a test starts it again: the EAL can be started once per
// process, so whatever needs other arguments, another user, or two processes, is a child.
const childEnv = "NDPIP_DPDK_TEST_CHILD"

// children are the parts; the function's error is printed, and the exit status is 1 then.
var children = map[string]func(arg string) error{}

// noHugeEnv makes the tests run without hugepages where there are some.
const noHugeEnv = "NDPIP_DPDK_TEST_NOHUGE"

func testArgs() []string {
	return DefaultArgs(os.Getenv(noHugeEnv) != "" || !HasHugepages(), 0, "")
}

func TestMain(m *testing.M) {
	if part := os.Getenv(childEnv); part != "" {
		if err := children[part](os.Getenv(childEnv + "_ARG")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if _, err := EalInit(append(testArgs(), "--no-pci", "--vdev=net_null0", "--vdev=net_null1,size=1000,copy=1")); err != nil {
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
