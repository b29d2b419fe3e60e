/* Commands of ours on DPDK's telemetry socket. */
#ifndef NDPIP_TELEMETRY_H
#define NDPIP_TELEMETRY_H

#include <stdint.h>
#include "eal.h"

int ndpip_telemetry_register(const char *cmd, const char *help);
void ndpip_telemetry_number(void *d, const char *name, uint64_t n);
void ndpip_telemetry_text(void *d, const char *name, const char *text);

#endif
