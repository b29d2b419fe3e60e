package netns

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The two ends of a pair reach each other once both have addresses, and nothing is left behind.
func TestVeth(t *testing.T) {
	var name string
	t.Run("pair", func(t *testing.T) {
		a, b := New(t), New(t)
		name = a.Name
		a.Veth("port", b, "peer", "10.77.0.2/24")
		a.Appears("port", 0)
		a.Address("port", "10.77.0.1/24")
		require.Contains(t, b.Run("ping", "-c", "1", "-W", "2", "10.77.0.1"), "1 received")
		require.Contains(t, b.Run("ethtool", "-k", "peer"), "tcp-segmentation-offload: off")
	})
	if name != "" {
		require.NotContains(t, run(t, "ip", "netns", "list"), name)
	}
}
