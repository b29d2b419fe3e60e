package main

import (
	"ndpip/api"
	"ndpip/cmd/internal/meter"
)

// reading is what the meter prints: the loop's own counters, and the host's since the job began.
func (j *job) reading() meter.Reading {
	now := j.h.Stats()
	r := meter.Reading{
		Bytes:           j.count.Bytes.Load(),
		Connections:     int(j.count.Connections.Load()),
		Segments:        j.segments(&now) - j.segments(&j.base),
		Retransmissions: now.Retransmits - j.base.Retransmits,
		Drops:           now.Drops + now.PortDrops - j.base.Drops - j.base.PortDrops,
	}
	return r
}

// segments counts the frames with payload in the direction of the job.
func (j *job) segments(s *api.Stats) uint64 {
	if j.o.verb == "send" {
		return s.TxSegments + s.TxDatagrams
	}
	return s.RxData + s.RxDatagrams
}
