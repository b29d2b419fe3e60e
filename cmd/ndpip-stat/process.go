package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"ndpip/api"
)

// hostRates is a host with what it did per second since the look before.
type hostRates struct {
	api.HostView
	Seconds float64            `json:"seconds"`
	Rates   map[string]float64 `json:"rates"`   // of every counter, per second
	In      float64            `json:"in_bps"`  // goodput: bits of payload that applications read, per second
	Out     float64            `json:"out_bps"` // and that they wrote
	Busy    float64            `json:"busy"`    // share of the worker's turns that found something to do
}

// processRates is what --format json shows.
type processRates struct {
	PID     int         `json:"pid"`
	Program string      `json:"program"`
	Now     time.Time   `json:"now"`
	Hosts   []hostRates `json:"hosts"`
}

func ratesOf(v, old *api.ProcessView) processRates {
	out := processRates{PID: v.PID, Program: v.Program, Now: v.Now}
	for _, h := range v.Hosts {
		r := hostRates{HostView: h, Rates: map[string]float64{}}
		for _, was := range old.Hosts {
			if was.Addr != h.Addr || was.Wire != h.Wire {
				continue
			}
			r.Seconds = h.At.Sub(was.At).Seconds()
			for name, n := range h.Counters {
				if n >= was.Counters[name] && r.Seconds > 0 {
					r.Rates[name] = float64(n-was.Counters[name]) / r.Seconds
				}
			}
			r.In, r.Out = 8*r.Rates["rx_payload"], 8*r.Rates["tx_payload"]
			if all := r.Rates["turns"]; all > 0 {
				r.Busy = r.Rates["busy_turns"] / all
			}
		}
		out.Hosts = append(out.Hosts, r)
	}
	return out
}

// showProcess shows all views but the sockets.
func (s *show) showProcess(w io.Writer) error {
	v, err := s.c.look()
	if err != nil {
		return err
	}
	r := ratesOf(&v, &s.view)
	s.view = v
	enc := json.NewEncoder(w)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i := range r.Hosts {
		h := &r.Hosts[i]
		if s.o.format == "json" {
			switch s.o.view {
			case "ports":
				err = enc.Encode(map[string]any{"host": h.Addr, "port": h.Port, "counters": only(h.Counters, "port_")})
			case "pools":
				err = enc.Encode(map[string]any{"host": h.Addr, "pools": h.Pools})
			case "neighbours":
				err = enc.Encode(map[string]any{"host": h.Addr, "neighbours": h.Neighbours})
			case "counters":
				err = enc.Encode(map[string]any{"host": h.Addr, "counters": h.Counters})
			}
			if err != nil {
				return err
			}
			continue
		}
		switch s.o.view {
		case "summary":
			summary(w, &r, h)
		case "ports":
			port(t, h, i == 0)
		case "pools":
			pools(t, h, i == 0)
		case "neighbours":
			neighbours(t, h, i == 0)
		case "counters":
			counters(t, h)
		}
	}
	if s.o.format == "json" && s.o.view == "summary" {
		return enc.Encode(&r)
	}
	return t.Flush()
}

func only(m map[string]uint64, prefix string) map[string]uint64 {
	out := map[string]uint64{}
	for name, n := range m {
		if short, ok := strings.CutPrefix(name, prefix); ok {
			out[short] = n
		}
	}
	return out
}

func summary(w io.Writer, p *processRates, h *hostRates) {
	n, r := h.Counters, h.Rates
	how, link := "a worker", "up"
	if !h.Worker {
		how = "no worker"
	}
	if !h.Port.Link {
		link = "down"
	}
	fmt.Fprintf(w, "%s (%d): %s at %s on %s, link %s, %s, for %s\n", p.Program, p.PID, h.Addr, h.Port.MAC, h.Wire, link, how,
		h.Up.Round(time.Second))
	fmt.Fprintf(w, "  goodput      in %s, out %s\n", rate(h.In, "b/s"), rate(h.Out, "b/s"))
	fmt.Fprintf(w, "  frames       in %s, out %s\n", rate(r["rx_frames"], "/s"), rate(r["tx_frames"], "/s"))
	fmt.Fprintf(w, "  sockets      %d connections (%d opened, %d accepted, %d closed so far), %d listeners, %d UDP\n", n["connections"],
		n["opened"], n["accepted"], n["closed"], n["listeners"], n["udp_sockets"])
	fmt.Fprintf(w, "  trouble      %s resent, %s timeouts, %s resets sent, %s drops, %s stalls of the window, %s of the port\n",
		rate(r["retransmits"], "/s"), rate(r["timeouts"], "/s"), rate(r["resets"], "/s"), rate(r["drops"]+r["port_drops"], "/s"),
		rate(r["window_stalls"], "/s"), rate(r["port_stalls"], "/s"))
	if h.Worker {
		fmt.Fprintf(w, "  turns        %s, %.0f %% busy; half of these took less than %v, 99 %% less than %v\n", rate(r["turns"], "/s"), 100*h.Busy,
			h.TurnMedian, h.Turn99)
	}
	fmt.Fprintf(w, "  buffers      unread %d (most %d), not acknowledged %d (most %d)\n", n["rx_held"], n["rx_held_peak"], n["tx_held"], n["tx_held_peak"])
	if d := drops(n); d != "" {
		fmt.Fprintf(w, "  dropped      %s\n", d)
	}
}

// drops are the reasons for which frames were dropped so far.
func drops(n map[string]uint64) string {
	var out []string
	for _, prefix := range []string{"dropped_", "malformed_"} {
		m := only(n, prefix)
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if m[name] > 0 {
				out = append(out, fmt.Sprintf("%s %d", name, m[name]))
			}
		}
	}
	return strings.Join(out, ", ")
}

func port(t io.Writer, h *hostRates, first bool) {
	if first {
		fmt.Fprintln(t, "HOST\tPORT\tDRIVER\tMAC\tLINK\tMTU\tQUEUES\tRX FRAMES\tRX BYTES\tTX FRAMES\tTX BYTES\tMISSED\tNO BUFFER\tERRORS")
	}
	link, n := "down", h.Counters
	if h.Port.Link {
		link = "up"
	}
	fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%d+%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", h.Addr.Addr(), h.Port.Name, h.Port.Driver, h.Port.MAC, link,
		h.Port.MTU, h.Port.RxQueues, h.Port.TxQueues, n["port_rx_frames"], n["port_rx_bytes"], n["port_tx_frames"], n["port_tx_bytes"],
		n["port_rx_missed"], n["port_rx_no_mbuf"], n["port_rx_errors"]+n["port_tx_errors"]+n["port_tx_unsendable"])
}

func pools(t io.Writer, h *hostRates, first bool) {
	if first {
		fmt.Fprintln(t, "HOST\tPOOL\tBUFFERS\tIN USE\tHELD\tMOST")
	}
	for _, p := range h.Pools {
		held, most := "", ""
		if n := h.Counters; p.Name == "rx" || p.Name == "tx" {
			held, most = fmt.Sprint(n[p.Name+"_held"]), fmt.Sprint(n[p.Name+"_held_peak"])
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\t%s\n", h.Addr.Addr(), p.Name, p.Size, p.InUse, held, most)
	}
}

func neighbours(t io.Writer, h *hostRates, first bool) {
	if first {
		fmt.Fprintln(t, "HOST\tNEIGHBOUR\tMAC\tSTATE\tGOOD FOR")
	}
	for _, n := range h.Neighbours {
		good := "-"
		if n.Good > 0 {
			good = n.Good.Round(100 * time.Millisecond).String()
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", h.Addr.Addr(), n.Addr, n.MAC, n.State, good)
	}
}

func counters(t io.Writer, h *hostRates) {
	for _, name := range slices.Sorted(maps.Keys(h.Counters)) {
		fmt.Fprintf(t, "%s\t%s\t%d\n", h.Addr.Addr(), name, h.Counters[name])
	}
}
