//go:build amd64

#include "textflag.h"

// func FetchToWrite(a, b uintptr)
//
// PREFETCHW, which the assembler does not know by name. Processors that have not got it take it for nothing, as both do with
// an address that is not mapped.
TEXT ·FetchToWrite(SB), NOSPLIT, $0-16
	MOVQ a+0(FP), AX
	MOVQ b+8(FP), BX
	BYTE $0x0F; BYTE $0x0D; BYTE $0x08 // PREFETCHW (AX)
	BYTE $0x0F; BYTE $0x0D; BYTE $0x0B // PREFETCHW (BX)
	RET
