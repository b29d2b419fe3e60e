// Package dpdk is the only place that talks to DPDK.
package dpdk
