package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// screen prints lines that stay and one line of status that is written over. Where the output is no terminal, the
// status is printed as a line of its own, at most once in quietFor, so that a log shows what is going on.
type screen struct {
	mu     sync.Mutex
	w      io.Writer
	tty    bool
	width  int
	status string
	last   time.Time
}

const quietFor = 10 * time.Second

func newScreen(f *os.File) *screen {
	st, err := f.Stat()
	tty := err == nil && st.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb" && os.Getenv("CI") == ""
	return &screen{w: f, tty: tty, width: 100, last: time.Now()}
}

// Printf prints a line that stays.
func (s *screen) Printf(format string, a ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	fmt.Fprintln(s.w, strings.TrimRight(fmt.Sprintf(format, a...), "\n"))
	s.last = time.Now()
	s.draw()
}

// Status replaces the status line; "" takes it away.
func (s *screen) Status(format string, a ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprintf(format, a...)
	if !s.tty {
		if text != "" && time.Since(s.last) >= quietFor {
			s.last = time.Now()
			fmt.Fprintln(s.w, "  …", text)
		}
		return
	}
	s.clear()
	s.status = text
	s.draw()
}

func (s *screen) clear() {
	if s.tty && s.status != "" {
		fmt.Fprint(s.w, "\r\x1b[K")
	}
}

func (s *screen) draw() {
	if !s.tty || s.status == "" {
		return
	}
	line := []rune(s.status)
	if len(line) > s.width {
		line = append(line[:s.width-1], '…')
	}
	fmt.Fprint(s.w, string(line))
}

// table lays rows out in columns; the first row is the heading. A column of numbers is set to the right.
func table(rows [][]string) string {
	width := make([]int, len(rows[0]))
	right := make([]bool, len(rows[0]))
	for n, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], len([]rune(cell)))
			if n > 0 && cell != "" {
				right[i] = cell[len(cell)-1] >= '0' && cell[len(cell)-1] <= '9'
			}
		}
	}
	var b strings.Builder
	line := func(cells []string) {
		var l strings.Builder
		for i, cell := range cells {
			pad := strings.Repeat(" ", width[i]-len([]rune(cell)))
			if right[i] {
				cell, pad = pad, cell
			}
			l.WriteString("  " + cell + pad)
		}
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	for n, row := range rows {
		line(row)
		if n == 0 {
			rule := make([]string, len(row))
			for i := range rule {
				rule[i] = strings.Repeat("─", width[i])
			}
			line(rule)
		}
	}
	return b.String()
}
