#include <rte_telemetry.h>
#include <rte_version.h>
#include "telemetry.h"
#include "_cgo_export.h"

static int answer(const char *cmd, const char *params, struct rte_tel_data *d)
{
	int ret = rte_tel_data_start_dict(d);

	return ret != 0 ? ret : ndpip_go_telemetry((char *)cmd, (char *)params, d);
}

int ndpip_telemetry_register(const char *cmd, const char *help)
{
	return rte_telemetry_register_cmd(cmd, answer, help);
}

/* What does not fit is left out: DPDK says so by its result, and there is nothing to be done about it. */
void ndpip_telemetry_number(void *d, const char *name, uint64_t n)
{
#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
	rte_tel_data_add_dict_uint(d, name, n);
#else
	rte_tel_data_add_dict_u64(d, name, n);
#endif
}

void ndpip_telemetry_text(void *d, const char *name, const char *text)
{
	rte_tel_data_add_dict_string(d, name, text);
}
