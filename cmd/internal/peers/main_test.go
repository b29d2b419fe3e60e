package peers

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// childEnv makes this binary a child; its value is a childConfig in JSON.
const childEnv = "NDPIP_PEERS_CHILD"

func TestMain(m *testing.M) {
	if cfg := os.Getenv(childEnv); cfg != "" {
		if err := runChild(cfg); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	// Most of these tests wait: for timers, and for peers that do nothing.
	_ = flag.Set("test.parallel", "16")
	os.Exit(m.Run())
}
