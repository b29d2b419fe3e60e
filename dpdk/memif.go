package dpdk

/*
#include <string.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_ethdev.h>
#include <rte_version.h>

static const char *port_args(uint16_t port)
{
	const struct rte_devargs *da;
	struct rte_eth_dev_info info;

	if (rte_eth_dev_info_get(port, &info) != 0 || info.device == NULL)
		return NULL;
#if RTE_VERSION >= RTE_VERSION_NUM(22, 11, 0, 0)
	da = rte_dev_devargs(info.device);
#else
	da = info.device->devargs;
#endif
	return da == NULL ? NULL : da->args;
}

static int memif_client(uint16_t port)
{
	const char *args = port_args(port);

	return args != NULL && strstr(args, "role=server") == NULL && strstr(args, "role=master") == NULL;
}
*/
import "C"

// MemifClient says whether the port is the side of a net_memif that connects to the other. Its driver does that once,
// in Start, and a server that is not started yet turns it away without an error: LinkUp stays false then, until Stop
// and Start.
func (p *Port) MemifClient() bool {
	return p.driver == "net_memif" && C.memif_client(C.uint16_t(p.id)) != 0
}
