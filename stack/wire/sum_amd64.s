//go:build amd64

#include "textflag.h"

// Each 64-bit lane holds two 32-bit words of the data. They are added to 64-bit counters apart, the lower ones and the
// upper ones, so that no carry is lost: 2^32 is 1 modulo 65535, and the counters hold 2^32 words.
//
// Y8 selects the lower words; Y4 to Y7 count.

#define INIT \
	VPCMPEQD Y8, Y8, Y8;     \
	VPSRLQ   $32, Y8, Y8;    \
	VPXOR    Y4, Y4, Y4;     \
	VPXOR    Y5, Y5, Y5;     \
	VPXOR    Y6, Y6, Y6;     \
	VPXOR    Y7, Y7, Y7

#define COUNT \
	VPAND  Y8, Y0, Y2;  \
	VPSRLQ $32, Y0, Y0; \
	VPAND  Y8, Y1, Y3;  \
	VPSRLQ $32, Y1, Y1; \
	VPADDQ Y2, Y4, Y4;  \
	VPADDQ Y0, Y5, Y5;  \
	VPADDQ Y3, Y6, Y6;  \
	VPADDQ Y1, Y7, Y7

#define TOTAL \
	VPADDQ       Y5, Y4, Y4;    \
	VPADDQ       Y7, Y6, Y6;    \
	VPADDQ       Y6, Y4, Y4;    \
	VEXTRACTI128 $1, Y4, X5;    \
	VPADDQ       X5, X4, X4;    \
	VPSRLDQ      $8, X4, X5;    \
	VPADDQ       X5, X4, X4;    \
	VMOVQ        X4, AX;        \
	VZEROUPPER

// func sumBlocks(p *byte, n int) uint64
TEXT ·sumBlocks(SB), NOSPLIT, $0-24
	MOVQ p+0(FP), SI
	MOVQ n+8(FP), CX
	INIT

sum:
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	COUNT
	ADDQ $64, SI
	SUBQ $64, CX
	JNZ  sum
	TOTAL
	MOVQ AX, ret+16(FP)
	RET

// func copySumBlocks(dst, src *byte, n int) uint64
TEXT ·copySumBlocks(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	INIT

copy:
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)
	COUNT
	ADDQ $64, SI
	ADDQ $64, DI
	SUBQ $64, CX
	JNZ  copy
	TOTAL
	MOVQ AX, ret+24(FP)
	RET
