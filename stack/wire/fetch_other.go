//go:build !amd64

package wire

// FetchToWrite has the processor fetch two cache lines that are going to be written.
func FetchToWrite(a, b uintptr) {}
