package wire

// FetchToWrite has the processor fetch two cache lines that are going to be written, from another one's cache if need be.
func FetchToWrite(a, b uintptr)
