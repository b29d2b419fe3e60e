package api

import (
	"fmt"
	"strconv"

	"ndpip/dpdk"
)

var telemetryDone bool // under process.mu

// telemetry has DPDK's telemetry socket answer for the hosts of this process, as dpdk-telemetry.py asks:
//
//	/ndpip/hosts    the hosts' addresses by number
//	/ndpip/stats,N  the numbers of host N (0 if it is left out)
func telemetry() {
	if telemetryDone || !dpdk.EalInitialized() {
		return
	}
	telemetryDone = true
	_ = dpdk.TelemetryCommand("/ndpip/hosts", "The ndpip stacks of this process. Takes no parameters", func(string) (all []dpdk.TelemetryValue) {
		for i, h := range hosts() {
			all = append(all, dpdk.TelemetryValue{Name: strconv.Itoa(i), Text: h.Addr().String()})
		}
		return all
	})
	_ = dpdk.TelemetryCommand("/ndpip/stats", "The counters of an ndpip stack. Parameter: its number in /ndpip/hosts (0)", telemetryStats)
}

func telemetryStats(params string) (all []dpdk.TelemetryValue) {
	i := 0
	if params != "" {
		var err error
		if i, err = strconv.Atoi(params); err != nil {
			i = -1
		}
	}
	hosts := hosts()
	if i < 0 || i >= len(hosts) {
		return []dpdk.TelemetryValue{{Name: "error", Text: fmt.Sprintf("%s is no host: there are %d, numbered from 0", params, len(hosts))}}
	}
	all = append(all, dpdk.TelemetryValue{Name: "host", Text: hosts[i].Addr().String()})
	for _, m := range hosts[i].Metrics() {
		if m.Times == nil {
			all = append(all, dpdk.TelemetryValue{Name: m.Flat(), N: m.N})
			continue
		}
		all = append(all, dpdk.TelemetryValue{Name: "turn_ns", N: m.Times.Sum},
			dpdk.TelemetryValue{Name: "turn_ns_p50", N: m.Times.Quantile(0.5)}, dpdk.TelemetryValue{Name: "turn_ns_p99", N: m.Times.Quantile(0.99)})
	}
	return all
}
