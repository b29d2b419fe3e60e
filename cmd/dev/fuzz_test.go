package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFuzzEnd(t *testing.T) {
	for text, late := range map[string]bool{
		"fuzz: elapsed: 6s, execs: 90620 (24871/sec)\n--- FAIL: FuzzSum (6.56s)\n    context deadline exceeded\nFAIL":                            true,
		"--- FAIL: FuzzSum (0.02s)\n    --- FAIL: FuzzSum (0.00s)\n        sum_test.go:80: wrong\n    \n    Failing input written to testdata/x": false,
		"--- FAIL: FuzzSum (3.02s)\n    fuzzing process hung or terminated unexpectedly: exit status 2\n    context deadline exceeded":           false,
		"panic: test timed out after 5m0s": false,
		"ok  \tndpip/stack/wire\t6.1s":     false,
	} {
		var e fuzzEnd
		for line := range strings.Lines(text) {
			e.see(line)
		}
		require.Equal(t, late, e.late(), text)
	}
}
