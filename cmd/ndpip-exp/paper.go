package main

import (
	"embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
)

// The paper's published figures.
//
//go:embed paper/*.csv
var paperFiles embed.FS

// paperFigure is one published figure.
type paperFigure struct {
	tx, rx           string
	mss, connections int
	bps              float64 // 0: it did not work there
}

// paperName is how the paper calls a stack of ours, or "".
func paperName(stack string) string {
	switch stack {
	case "ndpip":
		return "SlimTCP"
	case "f-stack", "mtcp":
		return stack
	}
	return ""
}

// published are the figures of exp1 or exp2, in the paper's order; nil for what is not in the paper.
func published(experiment string) (out []paperFigure, err error) {
	text, err := paperFiles.ReadFile("paper/" + experiment + ".csv")
	if err != nil {
		return nil, nil
	}
	rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("the paper's figures of %s: %w", experiment, err)
	}
	for _, row := range rows[1:] {
		f := paperFigure{connections: 1}
		for i, name := range rows[0] {
			switch name {
			case "tx":
				f.tx = row[i]
			case "rx":
				f.rx = row[i]
			case "mss":
				f.mss, err = strconv.Atoi(row[i])
			case "connections":
				f.connections, err = strconv.Atoi(row[i])
			case "goodput_bps":
				f.bps, err = strconv.ParseFloat(row[i], 64)
			}
			if err != nil {
				return nil, fmt.Errorf("the paper's figures of %s: %s %q: %w", experiment, name, row[i], err)
			}
		}
		out = append(out, f)
	}
	return out, nil
}

// paperOf finds the figure of a cell of ours.
func paperOf(all []paperFigure, c cell) (bps float64, ok bool) {
	for _, f := range all {
		if f.tx == paperName(c.Tx) && f.rx == paperName(c.Rx) && f.mss == c.MSS && f.connections == c.Connections {
			return f.bps, true
		}
	}
	return 0, false
}
