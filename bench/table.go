package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// tableOf makes the table of the results, which Render and its kin print to w.
func tableOf(w io.Writer, results []result) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"bench", "MSS", "conns", "checksum", "ns/segment", "spread", "floor", "× floor", "Gb/s", "allocs/segment"})
	var columns []table.ColumnConfig
	for _, n := range []int{2, 3, 5, 6, 7, 8, 9, 10} {
		columns = append(columns, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(columns)
	last := ""
	for _, r := range results {
		group, _, _ := strings.Cut(r.Bench, "-")
		if last != "" && last != group {
			t.AppendSeparator()
		}
		last = group
		t.AppendRow(table.Row{r.Bench, whole(r.MSS), whole(r.Connections), r.Checksum, figure(r.NsPerSegment),
			fmt.Sprintf("±%.0f%%", 100*r.Spread), figure(r.FloorNs), ratio(r.Ratio), gbps(r.Gbps), allocs(r.Allocs)})
	}
	return t
}

const legend = `ns/segment: median of the blocks of a row, each being the lower quartile of its samples; spread: half the distance
between the blocks' quartiles. One core: both ends together; two cores: from one segment's arrival to the next.
cycle: ns per connection, beside the kernel's in place of the floor. ping: median ns of a round trip, likewise.
`

func whole(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func figure(v float64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}

func ratio(v float64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func gbps(v float64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

func allocs(v *float64) string {
	switch {
	case v == nil:
		return ""
	case *v == 0:
		return "0"
	}
	return strconv.FormatFloat(*v, 'g', 2, 64)
}
