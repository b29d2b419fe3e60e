package stack

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The 16 bytes of Aumasson and Bernstein's test vectors, whose key and message are 0, 1, 2 …
func TestSipHash(t *testing.T) {
	require.EqualValues(t, uint64(0x3f2acc7f57c29bdb),
		siphash(0x0706050403020100, 0x0f0e0d0c0b0a0908, 0x0706050403020100, 0x0f0e0d0c0b0a0908))
}

// An initial sequence number is a clock of 4 µs plus a function of both addresses and ports and of a secret
// (RFC 6528 3): each of them changes it.
func TestISNKeyed(t *testing.T) {
	s := Stack{sec: newSecret(), now: 1e9}
	k := key{1, 2, 3, 4}
	base := s.isn(k)
	require.Equal(t, base, s.isn(k))
	for _, other := range []key{{2, 1, 3, 4}, {1, 2, 4, 3}, {5, 2, 3, 4}, {1, 5, 3, 4}, {1, 2, 5, 4}, {1, 2, 3, 5}} {
		require.NotEqual(t, base, s.isn(other))
	}
	s.now += 4000
	require.Equal(t, base+1, s.isn(k))
	s.now += 1e9
	require.Equal(t, base+250001, s.isn(k))
	s.sec = newSecret()
	require.NotEqual(t, base+250001, s.isn(k), "another secret, with a chance of 2^-32")
}
