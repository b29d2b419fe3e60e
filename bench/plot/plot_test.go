package main

import (
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDraw(t *testing.T) {
	p := picture{Title: "title", X: "x, bytes", Y: "y, Gb/s", Log: true, Places: []string{"a", "b"}, Notes: []string{"a note"},
		Series: []series{
			{Name: "ours", Points: []point{{0, 1, 0.5, 2}, {1, 10, 9, 11}}},
			{Name: "ours, back", Back: true, Points: []point{{0, 2, 0, 0}}},
			{Name: "theirs", Faint: true, Points: []point{{0, 0, 0, 0}, {1, 3, 0, 0}}}, // 0 has no place on the axis
		}}
	if err := p.check(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"p.png", "p.svg"} {
		if err := p.write(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(filepath.Join(dir, "p.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if img, err := png.Decode(f); err != nil || img.Bounds().Dx() < 1000 {
		t.Errorf("the PNG: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "p.svg"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"title", "x, bytes", "y, Gb/s", "ours", "theirs", "a note"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the SVG does not say %q", want)
		}
	}
}

func TestBelow(t *testing.T) {
	for y, want := range map[float64]float64{7: 5, 5: 2, 2.5: 2, 1.05: 0.5, 0.03: 0.02} {
		if got := below(y); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("below(%g) = %g, want %g", y, got, want)
		}
	}
}

func TestWrongPictures(t *testing.T) {
	for want, p := range map[string]picture{
		"no places":       {},
		"place 2":         {Places: []string{"a"}, Series: []series{{Points: []point{{2, 1, 1, 1}}}}},
		"no point can be": {Log: true, Places: []string{"a"}, Series: []series{{Points: []point{{0, 0, 0, 0}}}}},
	} {
		if err := p.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %q", err, want)
		}
	}
	p := picture{Places: []string{"a"}, Series: []series{{Points: []point{{0, 1, 1, 1}}}}}
	if err := p.write(filepath.Join(t.TempDir(), "p.gif")); err == nil {
		t.Error("a GIF was written")
	}
}
