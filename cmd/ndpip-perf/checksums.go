package main

import (
	"fmt"

	"ndpip/api"
	"ndpip/dpdk"
)

// checksums says in a line who computes checksums: a card that should and does not is the first thing to look for when
// figures are low.
func checksums(how api.Checksum, sent, received dpdk.Flags) string {
	who := func(port bool) string {
		if port {
			return "the port"
		}
		return "the CPU"
	}
	switch how {
	case api.ChecksumOff:
		return "checksums: off, neither computed nor checked"
	case api.ChecksumSoftware:
		sent, received = 0, 0
	case api.ChecksumAuto:
	}
	return fmt.Sprintf("checksums: computed by %s, checked by %s", who(sent&dpdk.TxTCPSum != 0), who(received&dpdk.RxL4Good != 0))
}
