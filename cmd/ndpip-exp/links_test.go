package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The experiments with congestion controls are a program of their own, whose exit status and files are passed on.
func TestLinks(t *testing.T) {
	var out, fault strings.Builder
	require.Equal(t, statusUsage, run([]string{"links", "--only", "nothing"}, &out, &fault))
	require.Equal(t, "links: --only nothing: want some of versus, crowd, window, sharing\n", fault.String())

	t.Chdir(t.TempDir())
	require.Equal(t, statusFault, run([]string{"links"}, &out, &fault), "not in the source tree")
}
