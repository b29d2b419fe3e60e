package api

import (
	"bufio"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode"

	"ndpip/stack"
	"ndpip/stack/wire"
)

// Metric is one number of a host, under the name that DPDK's telemetry, OpenMetrics and ndpip-stat have in common.
type Metric struct {
	Name         string // such as rx_frames
	Label, Value string // what tells it from others of its name, such as reason and stray; empty: nothing
	Kind         string // counter, gauge or histogram
	Help         string
	N            uint64
	Times        *stack.TurnTimes // of a histogram
}

// Flat is the metric's name with its label's value, for where there are no labels.
func (m *Metric) Flat() string {
	if m.Value == "" {
		return m.Name
	}
	return m.Name + "_" + m.Value
}

// Metrics are all numbers of the host: its counters, and those of its port and its pools.
func (h *Host) Metrics() (all []Metric) {
	s := h.Stats()
	p := h.dev.look()
	all = numbers(all, "", reflect.ValueOf(s))
	all = numbers(all, "port_", reflect.ValueOf(p.PortStats))
	all = append(all, Metric{Name: "port_link_up", Kind: "gauge", Help: "1: the port has a peer", N: one(p.Link)})
	for _, m := range p.Pools {
		all = append(all,
			Metric{Name: "pool_buffers", Label: "pool", Value: m.Name, Kind: "gauge", Help: "buffers of a pool", N: uint64(m.Size)},
			Metric{Name: "pool_in_use", Label: "pool", Value: m.Name, Kind: "gauge", Help: "buffers that are out of a pool", N: uint64(m.InUse)})
	}
	return all
}

func one(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// labels are the values that the indices of arrays stand for, by the arrays' types.
var labels = map[reflect.Type]func(i int) string{
	reflect.TypeFor[[stack.NumDrops]uint64](): func(i int) string { return stack.Drop(i).String() },
	reflect.TypeFor[[wire.NumDrops]uint64]():  func(i int) string { return strings.ReplaceAll(wire.Drop(i).String(), " ", "_") },
}

// numbers appends the fields of a struct. A field is called by its name in small letters, or by its tag "name".
func numbers(all []Metric, prefix string, v reflect.Value) []Metric {
	t := v.Type()
	for i := range t.NumField() {
		f, x := t.Field(i), v.Field(i)
		m := Metric{Name: f.Tag.Get("name"), Kind: f.Tag.Get("kind"), Help: f.Tag.Get("help"), Label: f.Tag.Get("label")}
		if m.Name == "" {
			m.Name = small(f.Name)
		}
		m.Name = prefix + m.Name
		if m.Kind == "" {
			m.Kind = "counter"
		}
		switch x.Kind() { //nolint:exhaustive // of all the kinds these are what counters are made of
		case reflect.Uint64:
			m.N = x.Uint()
			all = append(all, m)
		case reflect.Int:
			m.N = uint64(x.Int())
			all = append(all, m)
		case reflect.Array:
			name := labels[x.Type()]
			for i := range x.Len() {
				if x.Type() == reflect.TypeFor[[wire.NumDrops]uint64]() && i == stack.ParseOK {
					continue
				}
				m.N, m.Value = x.Index(i).Uint(), name(i)
				all = append(all, m)
			}
		case reflect.Struct:
			switch {
			case x.Type() == reflect.TypeFor[stack.TurnTimes]():
				times := x.Interface().(stack.TurnTimes)
				m.Times = &times
				all = append(all, m)
			case f.Anonymous:
				all = numbers(all, prefix, x)
			default:
				all = numbers(all, m.Name+"_", x)
			}
		}
	}
	return all
}

// small turns a Go name into one of small letters: RxFrames is rx_frames, UDPSockets udp_sockets.
func small(name string) string {
	r := []rune(name)
	var b strings.Builder
	for i, c := range r {
		if unicode.IsUpper(c) && i > 0 && (!unicode.IsUpper(r[i-1]) || i+1 < len(r) && unicode.IsLower(r[i+1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

// WriteMetrics writes the numbers of hosts as OpenMetrics text (which Prometheus reads), each with its host's address as
// label. Without hosts it is those of all hosts of this process.
func WriteMetrics(w io.Writer, of ...*Host) error {
	if len(of) == 0 {
		of = hosts()
	}
	var families []string
	samples := map[string][]string{}
	head := map[string]string{}
	for _, h := range of {
		for _, m := range h.Metrics() {
			name := "ndpip_" + m.Name
			if _, known := head[name]; !known {
				families = append(families, name)
				head[name] = fmt.Sprintf("# TYPE %s %s\n", name, m.Kind)
				if m.Help != "" {
					head[name] += fmt.Sprintf("# HELP %s %s\n", name, m.Help)
				}
			}
			samples[name] = append(samples[name], m.samples(name, h.Addr().String())...)
		}
	}
	b := bufio.NewWriter(w)
	for _, name := range families {
		b.WriteString(head[name])
		for _, s := range samples[name] {
			b.WriteString(s)
		}
	}
	b.WriteString("# EOF\n")
	return b.Flush()
}

func (m *Metric) samples(name, host string) []string {
	label := fmt.Sprintf("host=%q", host)
	if m.Label != "" {
		label += fmt.Sprintf(",%s=%q", m.Label, m.Value)
	}
	switch {
	case m.Times != nil:
		var out []string
		sum := uint64(0)
		for i, n := range m.Times.Count {
			sum += n
			bound := "+Inf"
			if i < len(m.Times.Count)-1 {
				bound = fmt.Sprintf("%g", float64(stack.TurnBound(i))/1e9)
			}
			out = append(out, fmt.Sprintf("%s_bucket{%s,le=%q} %d\n", name, label, bound, sum))
		}
		return append(out, fmt.Sprintf("%s_count{%s} %d\n", name, label, sum),
			fmt.Sprintf("%s_sum{%s} %g\n", name, label, float64(m.Times.Sum)/1e9))
	case m.Kind == "counter":
		name += "_total"
	}
	return []string{fmt.Sprintf("%s{%s} %d\n", name, label, m.N)}
}
