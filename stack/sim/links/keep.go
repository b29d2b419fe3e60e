package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// keeper keeps what was measured in a folder. The zero keeper keeps nothing.
type keeper struct {
	dir    string
	tables bytes.Buffer
	csv    bytes.Buffer
}

func (k *keeper) open(dir string) error {
	k.dir = dir
	fmt.Fprintln(&k.csv, "experiment,streams,window,seed,stream,control,mbps")
	return os.MkdirAll(dir, 0o755)
}

func (k *keeper) keep(cells []cell, got map[cell]figures) {
	for _, c := range cells {
		names := strings.Fields(c.streams)
		for seed, run := range got[c] {
			for i, mbps := range run {
				fmt.Fprintf(&k.csv, "%s,%s,%d,%d,%d,%s,%.1f\n", c.experiment, c.streams, c.window, seed+1, i, names[i], mbps)
			}
		}
	}
}

func (k *keeper) close() error {
	if k.dir == "" {
		return nil
	}
	return errors.Join(os.WriteFile(filepath.Join(k.dir, "tables.txt"), k.tables.Bytes(), 0o644),
		os.WriteFile(filepath.Join(k.dir, "figures.csv"), k.csv.Bytes(), 0o644))
}

// picture is what bench/plot draws.
type picture struct {
	Title  string   `json:"title"`
	Notes  []string `json:"notes"`
	X      string   `json:"x"`
	Y      string   `json:"y"`
	Places []string `json:"places"`
	Series []series `json:"series"`
}

type series struct {
	Name   string  `json:"name"`
	Faint  bool    `json:"faint"`
	Back   bool    `json:"back"`
	Points []point `json:"points"`
}

type point struct {
	Place int     `json:"place"`
	Y     float64 `json:"y"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

func (s *series) add(place int, f figure) {
	s.Points = append(s.Points, point{place, f.mean, max(f.mean-f.dev, 0), f.mean + f.dev})
}

// published are the published figures whose places the picture has.
func (p *picture) published(all []publishedFigure) (out []series) {
	for _, f := range all {
		place := slices.Index(p.Places, f.at)
		if place < 0 {
			continue
		}
		i := slices.IndexFunc(out, func(s series) bool { return s.Name == f.name })
		if i < 0 {
			out = append(out, series{Name: f.name, Faint: true})
			i = len(out) - 1
		}
		out[i].add(place, f.figure)
	}
	return out
}

// draw has the module bench/plot draw the picture as PNG and SVG.
func (p *picture) draw(root, dir, name string) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	at, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "run", "-buildvcs=false", ".", at+".png", at+".svg")
	cmd.Dir, cmd.Stdin = filepath.Join(root, "bench", "plot"), bytes.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}
