package api

import (
	"log/slog"
	"slices"
	"strings"
	"time"
)

// What a host logs (Config.Log) is at most a line a second about trouble, and fewer while the trouble goes on; a line
// when the link goes up or down; and one each when it opens and stops.

const (
	logPace = time.Second
	logRest = time.Minute // the longest pause between two lines about trouble that goes on
)

// trouble are the counters whose growth is worth a line; those of reasons for drops come to them.
var trouble = []string{"no_buffer", "tx_dropped", "port_drops", "port_rx_errors", "port_tx_errors", "arp_conflicts", "arp_failed",
	"timeouts", "cookies_sent"}

func isTrouble(name string) bool {
	return strings.HasPrefix(name, "dropped_") || strings.HasPrefix(name, "malformed_") || slices.Contains(trouble, name)
}

// diary watches a host and logs.
type diary struct {
	log   *slog.Logger
	was   map[string]uint64
	link  bool
	pause time.Duration // until the next line about trouble
	at    time.Duration // since the last
}

// beginLog starts to log, if the host is to. endLog is called when the stack has stopped.
func (h *Host) beginLog() {
	if h.cfg.Log == nil {
		return
	}
	log := h.cfg.Log.With("host", h.Addr().String())
	log.Info("opened", "wire", h.cfg.Wire, "mac", h.MAC().String(), "worker", !h.cfg.Inline)
	d := &diary{log: log, was: h.troubles(), link: h.LinkUp(), pause: logPace}
	h.quiet, h.logged = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(h.logged)
		for {
			select {
			case <-h.quiet:
				s := h.Stats()
				log.Info("stopped", "rx_payload", s.RxPayload, "tx_payload", s.TxPayload, "retransmits", s.Retransmits, "drops", s.Drops)
				return
			case <-time.After(logPace):
				d.note(h.troubles(), h.LinkUp())
			}
		}
	}()
}

func (h *Host) endLog() {
	if h.quiet != nil {
		close(h.quiet)
		<-h.logged
	}
}

func (h *Host) troubles() map[string]uint64 {
	m := map[string]uint64{}
	for _, x := range h.Metrics() {
		if name := x.Flat(); isTrouble(name) {
			m[name] = x.N
		}
	}
	return m
}

// note is called each logPace. While trouble goes on, the pauses between lines double, up to logRest.
func (d *diary) note(now map[string]uint64, link bool) {
	if link != d.link {
		d.link = link
		if link {
			d.log.Info("link up")
		} else {
			d.log.Warn("link down")
		}
	}
	if d.at += logPace; d.at < d.pause {
		return
	}
	var more []any
	for name, n := range now {
		if n > d.was[name] {
			more = append(more, slog.Uint64(name, n-d.was[name]))
		}
	}
	if len(more) == 0 {
		if d.at >= logRest {
			d.pause = logPace
		}
		return
	}
	slices.SortFunc(more, func(a, b any) int { return strings.Compare(a.(slog.Attr).Key, b.(slog.Attr).Key) })
	d.log.Warn("trouble", append([]any{"seconds", int(d.at / time.Second)}, more...)...)
	d.was, d.at, d.pause = now, 0, min(2*d.pause, logRest)
}
