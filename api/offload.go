package api

import "ndpip/dpdk"

// PortChecksums says which checksums the port computes: of frames that are sent (dpdk.TxTCPSum and its like) and of those
// that are received (dpdk.RxL4Good and its like). What is not among them the host computes itself, or nobody does, as
// Config.Checksum has it.
func (h *Host) PortChecksums() (sent, received dpdk.Flags) {
	if d, ok := h.dev.(interface{ info() dpdk.PortInfo }); ok {
		i := d.info()
		return i.TxOffload, i.RxOffload
	}
	return 0, 0
}

func (p *dpdkPort) info() dpdk.PortInfo { return p.port.Info() }
