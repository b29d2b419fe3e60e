package dpdk

/*
#include "port.h"
*/
import "C"

// MemifClient says whether the port is the side of a net_memif that connects to the other. Its driver does that once,
// in Start, and a server that is not started yet turns it away without an error: LinkUp stays false then, until Stop
// and Start.
func (p *Port) MemifClient() bool {
	return p.driver == "net_memif" && C.ndpip_memif_client(C.uint16_t(p.id)) != 0
}
