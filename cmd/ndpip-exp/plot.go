package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// picture is what the module bench/plot draws.
type picture struct {
	Title  string   `json:"title"`
	Notes  []string `json:"notes"`
	X      string   `json:"x"`
	Y      string   `json:"y"`
	Log    bool     `json:"log"`
	Places []string `json:"places"`
	Series []series `json:"series"`
}

type series struct {
	Name   string  `json:"name"`
	Faint  bool    `json:"faint"`
	Back   bool    `json:"back,omitempty"` // the other direction of the series before it
	Points []point `json:"points"`
}

type point struct {
	Place int     `json:"place"`
	Y     float64 `json:"y"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

var errNothing = errors.New("nothing to draw yet")

// plot draws the results into their folder.
func plot(ctx context.Context, root string, st *store, all []summary, paper []paperFigure) error {
	p, ok := st.picture(all, paper)
	if !ok {
		return errNothing
	}
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(st.dir)
	if err != nil {
		return err
	}
	return goCommand(ctx, filepath.Join(root, "bench", "plot"), bytes.NewReader(text), "run", "-buildvcs=false", ".",
		filepath.Join(dir, "plot.png"), filepath.Join(dir, "plot.svg"))
}

// axis is an option that may be the x axis.
type axis struct {
	name string
	all  []int
	of   func(cell) int
}

func (p *plan) axes() []axis {
	return []axis{
		{"largest segment (MSS), bytes", p.MSS, func(c cell) int { return c.MSS }},
		{"connections at the same time", p.Connections, func(c cell) int { return c.Connections }},
		{"receive buffer, bytes (0: the stack's choice)", p.Window, func(c cell) int { return c.Window }},
		{"segments in a write (burst)", p.Burst, func(c cell) int { return c.Burst }},
	}
}

// picture has the option with the most values as its x axis, and a line for each combination of the others.
func (st *store) picture(all []summary, paper []paperFigure) (picture, bool) {
	p := &st.about.Plan
	axes := p.axes()
	x := 0
	for i, a := range axes {
		if len(a.all) > len(axes[x].all) {
			x = i
		}
	}
	pic := picture{Title: map[string]string{"exp1": "Goodput over segment size, one connection", "exp2": "Goodput over the number of connections, MSS 1460"}[p.Experiment],
		X: axes[x].name, Y: "goodput, Gb/s (logarithmic)", Log: true}
	if pic.Title == "" {
		pic.Title = "Goodput"
	}
	for _, v := range axes[x].all {
		pic.Places = append(pic.Places, strconv.Itoa(v))
	}
	place := make(map[string]int)
	for _, s := range all {
		if len(s.runs) == 0 {
			continue
		}
		name := p.lineName(s, axes, x)
		if _, ok := place[name]; !ok {
			place[name] = len(pic.Series)
			pic.Series = append(pic.Series, series{Name: name})
		}
		at := &pic.Series[place[name]]
		where := slices.Index(axes[x].all, axes[x].of(s.cell))
		at.Points = append(at.Points, point{where, s.mid.BPS / 1e9, s.low / 1e9, s.high / 1e9})
		if p.Bidir {
			name += ", back"
			if _, ok := place[name]; !ok {
				place[name] = len(pic.Series)
				pic.Series = append(pic.Series, series{Name: name, Back: true})
			}
			at := &pic.Series[place[name]]
			back := point{Place: where, Y: s.mid.BackBPS / 1e9, Low: s.mid.BackBPS / 1e9}
			for _, r := range s.runs {
				back.Low, back.High = min(back.Low, r.BackBPS/1e9), max(back.High, r.BackBPS/1e9)
			}
			at.Points = append(at.Points, back)
		}
	}
	if len(pic.Series) == 0 {
		return pic, false
	}
	pic.Notes = []string{
		fmt.Sprintf("Marks: %s of %g s; bars: lowest to highest run.", medianOf(all, p.Runs), p.Seconds),
		"Measured on " + st.about.machines() + ".",
	}
	if drawn := pic.addPaper(paper, axes[x]); drawn {
		pic.Notes = append(pic.Notes, "Grey: as published in the paper, on two machines with network cards of 25 Gb/s; what did not work there (0) is not drawn.")
	}
	return pic, true
}

// lineName says what a line is of: the pair, its wire, and what else differs between lines.
func (p *plan) lineName(s summary, axes []axis, x int) string {
	parts := []string{fmt.Sprintf("%s → %s (%s)", s.cell.Tx, s.cell.Rx, s.mid.Wire)}
	short := []string{"MSS", "connections", "window", "burst"}
	for i, a := range axes {
		if i != x && len(a.all) > 1 {
			parts = append(parts, fmt.Sprintf("%s %d", short[i], a.of(s.cell)))
		}
	}
	if len(p.Protocol) > 1 {
		parts = append(parts, s.cell.Protocol)
	}
	return strings.Join(parts, ", ")
}

// addPaper adds the paper's pairs of a stack with itself, in the same order whatever the experiment. All nine would hide ours;
// they are in the tables.
func (pic *picture) addPaper(paper []paperFigure, x axis) bool {
	place := make(map[string]int)
	order := []string{"SlimTCP", "f-stack", "mtcp"}
	paper = slices.Clone(paper)
	slices.SortStableFunc(paper, func(a, b paperFigure) int { return slices.Index(order, a.tx) - slices.Index(order, b.tx) })
	for _, f := range paper {
		at := slices.Index(x.all, x.of(cell{MSS: f.mss, Connections: f.connections}))
		if f.tx != f.rx || at < 0 {
			continue
		}
		if _, ok := place[f.tx]; !ok {
			place[f.tx] = len(pic.Series)
			pic.Series = append(pic.Series, series{Name: "paper: " + f.tx + " → " + f.rx, Faint: true})
		}
		s := &pic.Series[place[f.tx]]
		s.Points = append(s.Points, point{Place: at, Y: f.bps / 1e9})
	}
	return len(place) > 0
}
