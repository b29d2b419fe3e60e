package main

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// report writes the tables and plots of the results into their folder, and the table to stdout.
func report(ctx context.Context, root string, o *options, st *store, stdout, stderr io.Writer) error {
	var paper []paperFigure
	var err error
	if o.paper {
		if paper, err = published(st.about.Plan.Experiment); err != nil {
			return err
		}
	}
	all := st.summaries()
	tables := []*table{st.goodput(all, paper), st.cost(all)}
	if len(paper) > 0 {
		tables = append(tables, paperTable(st.about.Plan.Experiment, paper))
	}
	var text, md, tex strings.Builder
	for i, t := range tables {
		if i > 0 {
			text.WriteString("\n")
			md.WriteString("\n")
			tex.WriteString("\n")
		}
		text.WriteString(t.text())
		md.WriteString(t.markdown())
		tex.WriteString(t.latex())
	}
	foot := st.about.machines() + "; " + st.about.Time.Format("2 January 2006")
	text.WriteString("\n" + foot + "\n")
	md.WriteString("\n" + foot + "\n")
	for name, content := range map[string]string{"table.txt": text.String(), "table.md": md.String(), "table.tex": tex.String(), "table.csv": csvTable(all, paper)} {
		if err := os.WriteFile(filepath.Join(st.dir, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintf(stdout, "%s\n", text.String())
	made := "tables"
	if o.plots {
		switch err := plot(ctx, root, st, all, paper); {
		case err == errNothing:
		case err != nil:
			fmt.Fprintf(stderr, "ndpip-exp: no plots: %v\n", err)
		default:
			made = "tables and plots"
		}
	}
	fmt.Fprintf(stdout, "%s are in %s\n", made, st.dir)
	return nil
}

// varied are the options that have more than one value, with their column's head and what is in it.
func (p *plan) varied() (head []string, value []func(cell) string) {
	add := func(name string, n int, f func(cell) string) {
		if n > 1 {
			head, value = append(head, name), append(value, f)
		}
	}
	add("protocol", len(p.Protocol), func(c cell) string { return c.Protocol })
	add("window", len(p.Window), func(c cell) string { return strconv.Itoa(c.Window) })
	add("burst", len(p.Burst), func(c cell) string { return strconv.Itoa(c.Burst) })
	return head, value
}

// keys are the columns that say which cell a row is of.
func (p *plan) keys() (head []string, row func(cell) []string) {
	more, value := p.varied()
	head = append([]string{"sender → receiver"}, append(more, "MSS", "connections")...)
	return head, func(c cell) []string {
		out := []string{c.Tx + " → " + c.Rx}
		for _, f := range value {
			out = append(out, f(c))
		}
		return append(out, strconv.Itoa(c.MSS), strconv.Itoa(c.Connections))
	}
}

// goodput is the table of what was measured.
func (st *store) goodput(all []summary, paper []paperFigure) *table {
	p := &st.about.Plan
	head, key := p.keys()
	t := &table{
		caption: fmt.Sprintf("%s: goodput in Gb/s, %s of %g s (lowest – highest), order shuffled with seed %d", p.Experiment,
			medianOf(all, p.Runs), p.Seconds, p.Seed),
		head: append(head, "wire", "Gb/s", "lowest – highest", "segments/s", "bytes/segment"), left: 1,
	}
	if p.Bidir {
		t.caption += "; both ends sent, and back is what the receiver sent"
		t.head = append(t.head, "back, Gb/s")
	}
	partial := least(all) != p.Runs
	if partial {
		t.head = append(t.head, "runs")
	}
	if len(paper) > 0 {
		t.head = append(t.head, "paper, Gb/s")
	}
	for _, s := range all {
		row := key(s.cell)
		if len(s.runs) == 0 {
			why := "not measured yet"
			if s.failed > 0 {
				why = "failed"
			}
			row = append(row, "", why, "", "", "")
		} else {
			mid := s.mid
			row = append(row, mid.Wire, gbps(mid.BPS), gbps(s.low)+" – "+gbps(s.high), segments(mid.PPS), digits(mid.BPS/8/max(mid.PPS, 1)))
		}
		if p.Bidir {
			back := ""
			if len(s.runs) > 0 {
				back = gbps(s.mid.BackBPS)
			}
			row = append(row, back)
		}
		if partial {
			row = append(row, strconv.Itoa(len(s.runs)))
		}
		if len(paper) > 0 {
			cell := ""
			if bps, ok := paperOf(paper, s.cell); ok {
				cell = gbps(bps)
			}
			row = append(row, cell)
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// least is how many runs have figures in the cell that has the fewest, of those that have any.
func least(all []summary) (n int) {
	for _, s := range all {
		if k := len(s.runs); k > 0 && (n == 0 || k < n) {
			n = k
		}
	}
	return n
}

// medianOf says what a figure is, in words that are true also of results that are not complete.
func medianOf(all []summary, planned int) string {
	n, most := least(all), 0
	for _, s := range all {
		most = max(most, len(s.runs))
	}
	switch {
	case n == most && n <= 1:
		return "one run"
	case n == most:
		return "median of " + count(n, "run")
	}
	return fmt.Sprintf("median of %d to %d runs (%d planned)", n, most, planned)
}

// segments is a rate in thousands or millions.
func segments(pps float64) string {
	if pps >= 1e6 {
		return digits(pps/1e6) + " M"
	}
	return digits(pps/1e3) + " k"
}

// cost is the table of what the median run took.
func (st *store) cost(all []summary) *table {
	p := &st.about.Plan
	head, key := p.keys()
	t := &table{
		caption: "what the median run took: CPU (share of one, over the program's life), memory (without hugepages), drops and " +
			"retransmissions, and the bytes of the connections that got the least and the most",
		head: append(head, "CPU tx", "CPU rx", "MiB tx", "MiB rx", "drops rx", "retrans. tx", "least, kB", "most, kB", "failed runs"), left: 1,
	}
	udp := slices.Contains(p.Protocol, "udp")
	if udp {
		t.caption += "; lost: datagrams that were sent and did not arrive, in the program's life"
		t.head = append(t.head, "lost")
	}
	for _, s := range all {
		row := key(s.cell)
		if len(s.runs) == 0 {
			row = append(row, "", "", "", "", "", "", "", "", strconv.Itoa(s.failed))
			if udp {
				row = append(row, "")
			}
			t.rows = append(t.rows, row)
			continue
		}
		m := s.mid
		share := func(u usage) string { return strconv.FormatFloat(100*u.CPU/max(u.Wall, 1e-9), 'f', 0, 64) + "%" }
		mib := func(u usage) string { return strconv.FormatInt(u.RSS>>20, 10) }
		kb := func(n uint64) string { return strconv.FormatUint(n/1000, 10) }
		few, many, lost := kb(m.Least), kb(m.Most), ""
		if s.cell.Protocol == "udp" { // one socket takes all
			few, many = "", ""
			if m.Sender.Bytes > 0 {
				lost = strconv.FormatFloat(100-100*float64(m.Recv.Bytes)/float64(m.Sender.Bytes), 'f', 1, 64) + "%"
			}
		}
		row = append(row, share(m.Sender), share(m.Recv), mib(m.Sender), mib(m.Recv), strconv.FormatUint(m.Recv.Drops, 10),
			strconv.FormatUint(m.Sender.Retransmissions, 10), few, many, strconv.Itoa(s.failed))
		if udp {
			row = append(row, lost)
		}
		t.rows = append(t.rows, row)
	}
	return t
}

// paperTable are the figures of all the paper's pairs.
func paperTable(experiment string, paper []paperFigure) *table {
	x := func(f paperFigure) int { return f.mss }
	unit := "MSS"
	if experiment == "exp2" {
		x, unit = func(f paperFigure) int { return f.connections }, "connections"
	}
	t := &table{caption: "the paper's published goodput in Gb/s (other machines, network cards of 25 Gb/s), over " + unit, head: []string{"sender → receiver"}, left: 1}
	var xs []int
	for _, f := range paper {
		if !slices.Contains(xs, x(f)) {
			xs = append(xs, x(f))
			t.head = append(t.head, strconv.Itoa(x(f)))
		}
	}
	place := make(map[string]int)
	for _, f := range paper {
		pair := f.tx + " → " + f.rx
		if _, ok := place[pair]; !ok {
			place[pair] = len(t.rows)
			t.rows = append(t.rows, append([]string{pair}, make([]string, len(xs))...))
		}
		t.rows[place[pair]][1+slices.Index(xs, x(f))] = gbps(f.bps)
	}
	return t
}

// csvTable has a row per cell with plain numbers, and the paper's figures in rows of their own.
func csvTable(all []summary, paper []paperFigure) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(strings.Split("source,tx,rx,protocol,mss,connections,window,burst,wire,runs,failed,goodput_bps,lowest_bps,highest_bps,pps,"+
		"bytes_least,bytes_most,tx_cpu_seconds,rx_cpu_seconds,tx_rss_bytes,rx_rss_bytes,rx_drops,tx_retransmissions,tx_bytes,rx_bytes,back_bps", ","))
	f := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	u := func(n uint64) string { return strconv.FormatUint(n, 10) }
	for _, s := range all {
		c, m := s.cell, s.mid
		_ = w.Write([]string{"measured", c.Tx, c.Rx, c.Protocol, strconv.Itoa(c.MSS), strconv.Itoa(c.Connections), strconv.Itoa(c.Window), strconv.Itoa(c.Burst),
			m.Wire, strconv.Itoa(len(s.runs)), strconv.Itoa(s.failed), f(m.BPS), f(s.low), f(s.high), f(m.PPS), u(m.Least), u(m.Most), f(m.Sender.CPU), f(m.Recv.CPU),
			strconv.FormatInt(m.Sender.RSS, 10), strconv.FormatInt(m.Recv.RSS, 10), u(m.Recv.Drops), u(m.Sender.Retransmissions), u(m.Sender.Bytes), u(m.Recv.Bytes), f(m.BackBPS)})
	}
	for _, p := range paper {
		row := make([]string, 26)
		row[0], row[1], row[2], row[3] = "paper", p.tx, p.rx, "tcp"
		row[4], row[5], row[11] = strconv.Itoa(p.mss), strconv.Itoa(p.connections), f(p.bps)
		_ = w.Write(row)
	}
	w.Flush()
	return b.String()
}
