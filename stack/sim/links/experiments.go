package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// experiment is one of those of the studies: the cells that it needs, and what is made of their figures.
type experiment struct {
	name      string
	published string
	cells     func(*lab) []cell
	table     func(*lab, map[cell]figures, io.Writer)
	picture   func(*lab, map[cell]figures) *picture
}

var experiments = []experiment{
	{"versus", publishedVersus, (*lab).versusCells, (*lab).versusTable, (*lab).versusPicture},
	{"crowd", publishedCrowd, (*lab).crowdCells, (*lab).crowdTable, (*lab).crowdPicture},
	{"window", publishedWindow, (*lab).windowCells, (*lab).windowTable, (*lab).windowPicture},
	{"sharing", publishedSharing, (*lab).sharingCells, (*lab).sharingTable, (*lab).sharingPicture},
}

func experimentNames() (names []string) {
	for _, e := range experiments {
		names = append(names, e.name)
	}
	return names
}

// all are the controls, Reno first.
func (l *lab) all() []string { return append([]string{"reno"}, l.controls...) }

// versus is one stream of each control alone, and against one of Reno.

func (l *lab) alone(c string) cell  { return newCell("versus", l.window, c) }
func (l *lab) versus(c string) cell { return newCell("versus", l.window, c, "reno") }

func (l *lab) versusCells() (out []cell) {
	for _, c := range l.all() {
		out = append(out, l.alone(c), l.versus(c))
	}
	return out
}

func (l *lab) versusTable(got map[cell]figures, w io.Writer) {
	fmt.Fprintf(w, "\nOne stream, and one beside one Reno stream (%s)\n%-10s %10s %10s %10s\n", publishedVersus, "control", "alone", "stream", "Reno")
	for _, c := range l.all() {
		v := got[l.versus(c)]
		fmt.Fprintf(w, "%-10s %v %v %v\n", c, got[l.alone(c)].of(0), v.of(0), v.of(1))
	}
}

func (l *lab) versusPicture(got map[cell]figures) *picture {
	p := &picture{Title: "One stream alone, and beside one Reno stream", X: "control", Y: "Mb/s", Places: l.all()}
	var alone, stream, reno series
	alone.Name, stream.Name, reno.Name = "alone", "beside Reno", "that Reno stream"
	for i, c := range l.all() {
		v := got[l.versus(c)]
		alone.add(i, got[l.alone(c)].of(0))
		stream.add(i, v.of(0))
		reno.add(i, v.of(1))
	}
	p.Series = append([]series{alone, stream, reno}, p.published(publishedByControl)...)
	return p
}

// crowd is one stream of each control against 1 to 8 of Reno.

func (l *lab) crowdCell(c string, n int) cell {
	return newCell("crowd", l.window, append([]string{c}, many("reno", n)...)...)
}

func (l *lab) crowdCells() (out []cell) {
	for _, c := range l.controls {
		for n := 1; n <= l.crowd; n++ {
			out = append(out, l.crowdCell(c, n))
		}
	}
	return out
}

func (l *lab) crowdTable(got map[cell]figures, w io.Writer) {
	fmt.Fprintf(w, "\nOne stream against n Reno streams: the stream, and the others together (%s)\n%-3s", publishedCrowd, "n")
	for _, c := range l.controls {
		fmt.Fprintf(w, " %20s", c)
	}
	fmt.Fprintln(w)
	for n := 1; n <= l.crowd; n++ {
		fmt.Fprintf(w, "%-3d", n)
		for _, c := range l.controls {
			v := got[l.crowdCell(c, n)]
			fmt.Fprintf(w, "  %v %v", v.of(0), v.rest())
		}
		fmt.Fprintln(w)
	}
}

func (l *lab) crowdPicture(got map[cell]figures) *picture {
	p := &picture{Title: "One stream against n Reno streams (dashed: those together)", X: "Reno streams", Y: "Mb/s"}
	for n := 1; n <= l.crowd; n++ {
		p.Places = append(p.Places, strconv.Itoa(n))
	}
	for _, c := range l.controls {
		own, others := series{Name: c}, series{Name: "Reno beside " + c, Back: true}
		for n := 1; n <= l.crowd; n++ {
			v := got[l.crowdCell(c, n)]
			own.add(n-1, v.of(0))
			others.add(n-1, v.rest())
		}
		p.Series = append(p.Series, own, others)
	}
	p.Series = append(p.Series, p.published(publishedBesideMany)...)
	return p
}

// window is windows from 1 to 64 MB, alone and against Reno.

func (l *lab) windowAlone(c string, mb int) cell  { return newCell("window", mb<<20, c) }
func (l *lab) windowVersus(c string, mb int) cell { return newCell("window", mb<<20, c, "reno") }

func (l *lab) windowCells() (out []cell) {
	for _, c := range l.all() {
		for _, mb := range l.windows {
			out = append(out, l.windowAlone(c, mb), l.windowVersus(c, mb))
		}
	}
	return out
}

func (l *lab) windowTable(got map[cell]figures, w io.Writer) {
	fmt.Fprintf(w, "\nWindow in MB: alone; the stream and Reno beside it (%s)\n%-3s", publishedWindow, "MB")
	for _, c := range l.all() {
		fmt.Fprintf(w, " %31s", c)
	}
	fmt.Fprintln(w)
	for _, mb := range l.windows {
		fmt.Fprintf(w, "%-3d", mb)
		for _, c := range l.all() {
			v := got[l.windowVersus(c, mb)]
			fmt.Fprintf(w, "  %v; %v %v", got[l.windowAlone(c, mb)].of(0), v.of(0), v.of(1))
		}
		fmt.Fprintln(w)
	}
}

func (l *lab) windowPicture(got map[cell]figures) *picture {
	p := &picture{Title: "One stream by its window (dashed: beside one Reno stream)", X: "window, MB", Y: "Mb/s"}
	for _, mb := range l.windows {
		p.Places = append(p.Places, strconv.Itoa(mb))
	}
	for _, c := range l.all() {
		alone, beside := series{Name: c}, series{Name: c + " beside Reno", Back: true}
		for i, mb := range l.windows {
			alone.add(i, got[l.windowAlone(c, mb)].of(0))
			beside.add(i, got[l.windowVersus(c, mb)].of(0))
		}
		p.Series = append(p.Series, alone, beside)
	}
	p.Series = append(p.Series, p.published(publishedByWindow)...)
	return p
}

// sharing is two of a kind, and two kinds.

func (l *lab) pairs() (out []cell) {
	all := l.all()
	for i, a := range all {
		for _, b := range all[i:] {
			out = append(out, newCell("sharing", l.window, a, b))
		}
	}
	return out
}

func (l *lab) sharingCells() []cell { return l.pairs() }

func (l *lab) sharingTable(got map[cell]figures, w io.Writer) {
	fmt.Fprintf(w, "\nTwo streams, and how fairly they share (%s)\n%-22s %10s %10s  %s\n", publishedSharing, "streams", "first", "second", "Jain's index")
	for _, c := range l.pairs() {
		v := got[c]
		f := v.fairness()
		fmt.Fprintf(w, "%-22s %v %v  %.2f ±%.2f\n", strings.Replace(c.streams, " ", " + ", 1), v.of(0), v.of(1), f.mean, f.dev)
	}
}

func (l *lab) sharingPicture(got map[cell]figures) *picture {
	p := &picture{Title: "Two streams side by side", X: "streams", Y: "Mb/s"}
	short := strings.NewReplacer("reno", "R", "cubic", "C", "highspeed", "H", "scalable", "S", "fast", "F", " ", "+")
	first, second := series{Name: "the first"}, series{Name: "the second"}
	for i, c := range l.pairs() {
		p.Places = append(p.Places, short.Replace(c.streams))
		first.add(i, got[c].of(0))
		second.add(i, got[c].of(1))
	}
	p.Series = []series{first, second}
	return p
}
