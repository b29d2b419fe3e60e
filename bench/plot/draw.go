package main

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// picture is lines over named places on the x axis, which are equally far apart.
type picture struct {
	Title  string   `json:"title"`
	Notes  []string `json:"notes"` // lines below the picture
	X      string   `json:"x"`     // the axis' name with its unit
	Y      string   `json:"y"`
	Log    bool     `json:"log"` // of y
	Places []string `json:"places"`
	Series []series `json:"series"`
}

// series is one line. Faint ones are there to compare with: dashed and grey, with hollow marks. One that is the Back of the
// series before it has its colour, and is dashed.
type series struct {
	Name   string  `json:"name"`
	Faint  bool    `json:"faint"`
	Back   bool    `json:"back"`
	Points []point `json:"points"`
}

// point is a value at a place with its spread.
type point struct {
	Place int     `json:"place"`
	Y     float64 `json:"y"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// The size of a picture, and of its parts.
const (
	width      = 9.5 * vg.Inch
	height     = 5 * vg.Inch
	legendPart = 2.6 * vg.Inch
	noteLine   = 13
	edge       = 10
	nameStrip  = 18  // the y axis' name
	resolution = 144 // dots per inch of a PNG
)

func (p *picture) check() error {
	if len(p.Places) == 0 || len(p.Series) == 0 {
		return errors.New("the picture has no places or no series")
	}
	n := 0
	for _, s := range p.Series {
		for _, pt := range s.Points {
			if pt.Place < 0 || pt.Place >= len(p.Places) {
				return fmt.Errorf("series %q: place %d: want 0 to %d", s.Name, pt.Place, len(p.Places)-1)
			}
			if p.drawn(pt) {
				n++
			}
		}
	}
	if n == 0 {
		return errors.New("no point can be drawn: on a logarithmic axis values must be above 0")
	}
	return nil
}

// drawn says whether a point has a place on the axis.
func (p *picture) drawn(pt point) bool { return !p.Log || pt.Y > 0 }

func (p *picture) write(name string) (err error) {
	var c vg.CanvasSizer
	var save func(*os.File) error
	switch filepath.Ext(name) {
	case ".png":
		img := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(resolution))
		c, save = img, func(f *os.File) error { _, err := vgimg.PngCanvas{Canvas: img}.WriteTo(f); return err }
	case ".svg":
		svg := vgsvg.New(width, height)
		c, save = svg, func(f *os.File) error { _, err := svg.WriteTo(f); return err }
	default:
		return errors.New("want a name that ends in .png or .svg")
	}
	if err := p.draw(draw.New(c)); err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := save(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// draw puts the legend to the right of the plot, where it hides nothing.
func (p *picture) draw(c draw.Canvas) error {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	pl := plot.New()
	pl.Title.Text = p.Title
	pl.Title.TextStyle.Font.Size = 14
	pl.Title.Padding = 8
	pl.X.Label.Text = p.X
	pl.X.Min, pl.X.Max = -0.3, float64(len(p.Places))-0.7
	ticks := make([]plot.Tick, len(p.Places))
	for i, name := range p.Places {
		ticks[i] = plot.Tick{Value: float64(i), Label: name}
	}
	pl.X.Tick.Marker = plot.ConstantTicks(ticks)
	for _, a := range []*plot.Axis{&pl.X, &pl.Y} {
		a.Label.TextStyle.Font.Size = 12
		a.Tick.Label.Font.Size = 11
		a.Label.Padding = 6
	}
	low, high := p.span()
	if p.Log {
		pl.Y.Scale = plot.LogScale{}
		pl.Y.Min, pl.Y.Max = below(low), high*1.4
		pl.Y.Tick.Marker = decades{}
	} else {
		pl.Y.Min, pl.Y.Max = 0, high*1.1
	}
	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	grid.Horizontal.Color = color.Gray{0xdd}
	pl.Add(grid)

	legend := plot.NewLegend()
	legend.Top, legend.Left = true, true
	legend.TextStyle.Font.Size = 11
	legend.ThumbnailWidth = 28
	legend.Padding = 3
	i := -1
	for _, s := range p.Series {
		if !s.Back {
			i++
		}
		if err := p.add(pl, &legend, s, max(i, 0)); err != nil {
			return fmt.Errorf("series %q: %w", s.Name, err)
		}
	}
	notes := vg.Length(len(p.Notes))*noteLine + edge
	area := draw.Crop(c, edge+nameStrip, -legendPart-edge, notes, -edge)
	pl.Draw(area)
	// The name of y is drawn here: plot leaves room for it at the middle of the numbers, which on a logarithmic axis is
	// near the top.
	style := pl.X.Label.TextStyle
	style.Rotation = math.Pi / 2
	style.XAlign, style.YAlign = draw.XCenter, draw.YTop
	inside := pl.DataCanvas(area)
	c.FillText(style, vg.Point{X: edge, Y: inside.Center().Y}, p.Y)
	legend.Draw(draw.Crop(c, width-legendPart, -edge, notes, -edge-26))
	small := draw.TextStyle{Color: color.Gray{0x44}, Font: font.From(plot.DefaultFont, 10), Handler: plot.DefaultTextHandler}
	for i, note := range p.Notes {
		c.FillText(small, vg.Point{X: edge, Y: vg.Length(len(p.Notes)-i)*noteLine - 4}, note)
	}
	return nil
}

// below is the nearest of 1, 2 and 5 times a power of ten that leaves some room under y.
func below(y float64) float64 {
	decade := math.Pow(10, math.Floor(math.Log10(y)))
	for _, m := range []float64{5, 2, 1} {
		if m*decade < 0.9*y {
			return m * decade
		}
	}
	return decade / 2
}

// span is the least and the greatest that is drawn.
func (p *picture) span() (low, high float64) {
	low = math.Inf(1)
	for _, s := range p.Series {
		for _, pt := range s.Points {
			if !p.drawn(pt) {
				continue
			}
			if pt.Low > 0 {
				low = min(low, pt.Low)
			}
			low, high = min(low, pt.Y), max(high, pt.Y, pt.High)
		}
	}
	return low, high
}

// colours differ for eyes that take red for green, too (after Okabe and Ito).
var colours = []color.RGBA{
	{0x00, 0x72, 0xb2, 0xff}, {0xd5, 0x5e, 0x00, 0xff}, {0x00, 0x9e, 0x73, 0xff}, {0xcc, 0x79, 0xa7, 0xff},
	{0xe6, 0x9f, 0x00, 0xff}, {0x56, 0xb4, 0xe9, 0xff},
}

var (
	full   = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.CrossGlyph{}}
	hollow = []draw.GlyphDrawer{draw.RingGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{}, draw.PlusGlyph{}}
)

// spread is points with their lows and highs, as plotter's error bars want them.
type spread struct {
	plotter.XYs
	plotter.YErrors
}

func (p *picture) add(pl *plot.Plot, legend *plot.Legend, s series, i int) error {
	var sp spread
	varies := false
	for _, pt := range s.Points {
		if !p.drawn(pt) {
			continue
		}
		sp.XYs = append(sp.XYs, plotter.XY{X: float64(pt.Place), Y: pt.Y})
		low, high := pt.Y-pt.Low, pt.High-pt.Y
		if pt.High == 0 || p.Log && pt.Low <= 0 {
			low, high = 0, 0
		}
		varies = varies || low > 0 || high > 0
		sp.YErrors = append(sp.YErrors, struct{ Low, High float64 }{low, high})
	}
	if len(sp.XYs) == 0 {
		return nil
	}
	line, marks, err := plotter.NewLinePoints(sp.XYs)
	if err != nil {
		return err
	}
	var ink color.Color = colours[i%len(colours)]
	marks.Shape, marks.Radius, line.Width = full[i%len(full)], 3.5, 1.8
	if s.Back {
		marks.Shape, line.Dashes = hollow[i%len(hollow)], []vg.Length{3, 2}
	}
	if s.Faint {
		ink = color.Gray{uint8(0x60 + 0x18*(i%3))}
		marks.Shape, line.Width, line.Dashes = hollow[i%len(hollow)], 1.1, []vg.Length{5, 3}
	}
	line.Color, marks.Color = ink, ink
	pl.Add(line, marks)
	if varies {
		bars, err := plotter.NewYErrorBars(sp)
		if err != nil {
			return err
		}
		bars.Color, bars.Width = ink, 1.2
		pl.Add(bars)
	}
	legend.Add(s.Name, line, marks)
	return nil
}

// decades are ticks at 1, 2 and 5 of each power of ten, written as numbers.
type decades struct{}

func (decades) Ticks(low, high float64) []plot.Tick {
	var out []plot.Tick
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for m := 1.0; m < 10; m++ {
			v := m * math.Pow(10, e)
			if v < low*0.999 || v > high*1.001 {
				continue
			}
			label := ""
			if m == 1 || m == 2 || m == 5 {
				label = strings.TrimSuffix(strconv.FormatFloat(v, 'g', 3, 64), ".")
			}
			out = append(out, plot.Tick{Value: v, Label: label})
		}
	}
	return out
}
