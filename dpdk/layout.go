package dpdk

// The two sides of the shared memory are checked against each other by the compilers: shim.c asserts the C offsets,
// this file compares them with Go's. An array whose length is the difference is a [0]byte only when there is none.

/*
#include <stddef.h>
#include "shim.h"

#define OFF(field) offsetof(struct ndpip_block, field)
enum {
	OFF_NFREE = OFF(nfree), OFF_NTX = OFF(ntx), OFF_NSTOCK = OFF(nstock), OFF_NRX = OFF(nrx),
	OFF_RXMAX = OFF(rx_max), OFF_WANT = OFF(want), OFF_FILL = OFF(fill), OFF_TSC = OFF(tsc), OFF_SENT = OFF(tx_sent),
	OFF_REFUSE = OFF(tx_refuse), OFF_NOMEM = OFF(no_mem), OFF_FREE = OFF(free), OFF_TX = OFF(tx),
	OFF_STOCK = OFF(stock), OFF_RX = OFF(rx), SIZE_BLOCK = sizeof(struct ndpip_block),
	OFF_ADDR = offsetof(struct ndpip_frame, addr), OFF_LEN = offsetof(struct ndpip_frame, len),
	OFF_FLAGS = offsetof(struct ndpip_frame, flags), SIZE_FRAME = sizeof(struct ndpip_frame),
};
*/
import "C"

import "unsafe"

type same = [0]byte

var (
	_ same = [unsafe.Sizeof(Frame{}) ^ C.SIZE_FRAME]byte{}
	_ same = [unsafe.Offsetof(Frame{}.Addr) ^ C.OFF_ADDR]byte{}
	_ same = [unsafe.Offsetof(Frame{}.Len) ^ C.OFF_LEN]byte{}
	_ same = [unsafe.Offsetof(Frame{}.Flags) ^ C.OFF_FLAGS]byte{}

	_ same = [unsafe.Sizeof(Block{}) ^ C.SIZE_BLOCK]byte{}
	_ same = [unsafe.Offsetof(Block{}.NFree) ^ C.OFF_NFREE]byte{}
	_ same = [unsafe.Offsetof(Block{}.NTx) ^ C.OFF_NTX]byte{}
	_ same = [unsafe.Offsetof(Block{}.NStock) ^ C.OFF_NSTOCK]byte{}
	_ same = [unsafe.Offsetof(Block{}.NRx) ^ C.OFF_NRX]byte{}
	_ same = [unsafe.Offsetof(Block{}.RxMax) ^ C.OFF_RXMAX]byte{}
	_ same = [unsafe.Offsetof(Block{}.Want) ^ C.OFF_WANT]byte{}
	_ same = [unsafe.Offsetof(Block{}.Fill) ^ C.OFF_FILL]byte{}
	_ same = [unsafe.Offsetof(Block{}.TSC) ^ C.OFF_TSC]byte{}
	_ same = [unsafe.Offsetof(Block{}.TxSent) ^ C.OFF_SENT]byte{}
	_ same = [unsafe.Offsetof(Block{}.TxRefuse) ^ C.OFF_REFUSE]byte{}
	_ same = [unsafe.Offsetof(Block{}.NoMem) ^ C.OFF_NOMEM]byte{}
	_ same = [unsafe.Offsetof(Block{}.Free) ^ C.OFF_FREE]byte{}
	_ same = [unsafe.Offsetof(Block{}.Tx) ^ C.OFF_TX]byte{}
	_ same = [unsafe.Offsetof(Block{}.Stock) ^ C.OFF_STOCK]byte{}
	_ same = [unsafe.Offsetof(Block{}.Rx) ^ C.OFF_RX]byte{}

	_ same = [OpYield ^ C.NDPIP_OP_YIELD]byte{}
	_ same = [OpFree ^ C.NDPIP_OP_FREE]byte{}
	_ same = [OpTx ^ C.NDPIP_OP_TX]byte{}
	_ same = [OpStock ^ C.NDPIP_OP_STOCK]byte{}
	_ same = [OpRx ^ C.NDPIP_OP_RX]byte{}

	_ same = [RxIPGood ^ C.NDPIP_RX_IP_GOOD]byte{}
	_ same = [RxIPBad ^ C.NDPIP_RX_IP_BAD]byte{}
	_ same = [RxL4Good ^ C.NDPIP_RX_L4_GOOD]byte{}
	_ same = [RxL4Bad ^ C.NDPIP_RX_L4_BAD]byte{}
	_ same = [RxChained ^ C.NDPIP_RX_CHAINED]byte{}
	_ same = [TxIPSum ^ C.NDPIP_TX_IP_SUM]byte{}
	_ same = [TxTCPSum ^ C.NDPIP_TX_TCP_SUM]byte{}
	_ same = [TxUDPSum ^ C.NDPIP_TX_UDP_SUM]byte{}
	_ same = [TxRetain ^ C.NDPIP_TX_RETAIN]byte{}

	_ same = [RxCap ^ C.NDPIP_RX_CAP]byte{}
	_ same = [TxCap ^ C.NDPIP_TX_CAP]byte{}
	_ same = [StockCap ^ C.NDPIP_STOCK_CAP]byte{}
	_ same = [FreeCap ^ C.NDPIP_FREE_CAP]byte{}
)
