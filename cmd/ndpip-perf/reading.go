package main

import (
	"ndpip/api"
	"ndpip/cmd/internal/meter"
)

// reading is what the meter prints: the loop's own counters, and the host's since the job began.
func (j *job) reading() meter.Reading {
	now := j.h.Stats()
	sent, received := sentSegments(&now)-sentSegments(&j.base), receivedSegments(&now)-receivedSegments(&j.base)
	r := meter.Reading{
		Bytes:           j.count.Bytes.Load(),
		Back:            j.count.Back.Load(),
		Connections:     int(j.count.Connections.Load()),
		Moving:          int(j.count.Moving.Load()),
		Segments:        received,
		BackSegments:    sent,
		Retransmissions: now.Retransmits - j.base.Retransmits,
		Drops:           now.Drops + now.PortDrops - j.base.Drops - j.base.PortDrops,
	}
	if j.o.verb == "send" {
		r.Segments, r.BackSegments = sent, received
	}
	return r
}

// These count the frames with payload.
func sentSegments(s *api.Stats) uint64     { return s.TxSegments + s.TxDatagrams }
func receivedSegments(s *api.Stats) uint64 { return s.RxData + s.RxDatagrams }
