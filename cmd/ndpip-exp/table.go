package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// table is text in rows. All but the first left columns are set to the right.
type table struct {
	caption string
	head    []string
	rows    [][]string
	left    int
}

func (t *table) widths() []int {
	w := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, s := range row {
			w[i] = max(w[i], utf8.RuneCountInString(s))
		}
	}
	return w
}

func pad(s string, width int, left bool) string {
	space := strings.Repeat(" ", width-utf8.RuneCountInString(s))
	if left {
		return s + space
	}
	return space + s
}

// text is the table for a terminal.
func (t *table) text() string {
	var b strings.Builder
	b.WriteString(t.caption + "\n\n")
	w := t.widths()
	for _, row := range append([][]string{t.head}, t.rows...) {
		var cols []string
		for i, s := range row {
			cols = append(cols, pad(s, w[i], i < t.left))
		}
		b.WriteString(strings.TrimRight(strings.Join(cols, "  "), " ") + "\n")
	}
	return b.String()
}

func (t *table) markdown() string {
	var b strings.Builder
	b.WriteString(t.caption + "\n\n")
	line := func(cols []string) { b.WriteString("| " + strings.Join(cols, " | ") + " |\n") }
	line(t.head)
	var rule []string
	for i := range t.head {
		if i < t.left {
			rule = append(rule, "---")
		} else {
			rule = append(rule, "---:")
		}
	}
	line(rule)
	for _, row := range t.rows {
		line(row)
	}
	return b.String()
}

// latex is a table environment for the package booktabs.
func (t *table) latex() string {
	escape := strings.NewReplacer(`\`, `\textbackslash{}`, `&`, `\&`, `%`, `\%`, `_`, `\_`, `#`, `\#`, `$`, `\$`, `→`, `$\rightarrow$`, `–`, `--`, `×`, `$\times$`)
	var b strings.Builder
	line := func(cols []string) { b.WriteString("  " + escape.Replace(strings.Join(cols, "\x00")) + " \\\\\n") }
	fmt.Fprintf(&b, "\\begin{table}\n\\caption{%s}\n\\begin{tabular}{%s%s}\n  \\toprule\n", escape.Replace(t.caption),
		strings.Repeat("l", t.left), strings.Repeat("r", len(t.head)-t.left))
	line(t.head)
	b.WriteString("  \\midrule\n")
	for _, row := range t.rows {
		line(row)
	}
	b.WriteString("  \\bottomrule\n\\end{tabular}\n\\end{table}\n")
	return strings.ReplaceAll(b.String(), "\x00", " & ")
}

// gbps is bits per second as gigabits with three digits.
func gbps(bps float64) string { return digits(bps / 1e9) }

// digits is x with three digits and without an exponent.
func digits(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x >= 100:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case x >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case x >= 1:
		return strconv.FormatFloat(x, 'f', 2, 64)
	case x >= 0.01:
		return strconv.FormatFloat(x, 'f', 3, 64)
	}
	return strconv.FormatFloat(x, 'f', 6, 64)
}
