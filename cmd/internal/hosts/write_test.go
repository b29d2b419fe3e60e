package hosts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFormat(t *testing.T) {
	p, err := Parse("f", []byte(both))
	require.NoError(t, err)
	again, err := Parse("again", Format(p))
	require.NoError(t, err)
	require.Equal(t, p, again)
}
