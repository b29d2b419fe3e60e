//go:build amd64

#include "textflag.h"

// func copyAhead(dst, src *byte, n int, nextDst, nextSrc uintptr)
//
// n is at least 64. The first and the last 32 bytes are moved apart, so that the stores between them are aligned: a store
// across two cache lines costs more than a load does. A prefetch of an address that is not mapped does nothing.
TEXT ·copyAhead(SB), NOSPLIT, $0-40
	MOVQ    dst+0(FP), DI
	MOVQ    src+8(FP), SI
	MOVQ    n+16(FP), BX
	MOVQ    nextDst+24(FP), CX
	MOVQ    nextSrc+32(FP), DX
	VMOVDQU (SI), Y0
	VMOVDQU -32(SI)(BX*1), Y1
	MOVQ    DI, R8
	LEAQ    -32(DI)(BX*1), R9
	MOVQ    DI, AX
	NEGQ    AX
	ANDQ    $31, AX
	ADDQ    AX, DI
	ADDQ    AX, SI
	SUBQ    AX, BX
	CMPQ    BX, $128
	JLT     rest

loop:
	PREFETCHT0 (CX)
	PREFETCHT0 64(CX)
	PREFETCHT0 (DX)
	PREFETCHT0 64(DX)
	VMOVDQU    (SI), Y2
	VMOVDQU    32(SI), Y3
	VMOVDQU    64(SI), Y4
	VMOVDQU    96(SI), Y5
	VMOVDQA    Y2, (DI)
	VMOVDQA    Y3, 32(DI)
	VMOVDQA    Y4, 64(DI)
	VMOVDQA    Y5, 96(DI)
	ADDQ       $128, CX
	ADDQ       $128, DX
	ADDQ       $128, SI
	ADDQ       $128, DI
	SUBQ       $128, BX
	CMPQ       BX, $128
	JGE        loop

rest:
	CMPQ    BX, $32
	JLT     done
	VMOVDQU (SI), Y2
	VMOVDQA Y2, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	SUBQ    $32, BX
	JMP     rest

done:
	VMOVDQU Y0, (R8)
	VMOVDQU Y1, (R9)
	VZEROUPPER
	RET
