package main

import "ndpip/cmd/internal/meter"

// reading is what the meter prints: the loop's own counters, and the host's since the job began.
func (j *job) reading() meter.Reading {
	s := j.h.Stats()
	r := meter.Reading{
		Bytes:           j.count.Bytes.Load(),
		Connections:     int(j.count.Connections.Load()),
		Retransmissions: s.Retransmits - j.base.Retransmits,
		Drops:           s.Drops - j.base.Drops,
		Segments:        j.count.Segments.Load(),
	}
	return r
}
