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

// table lays rows out in columns; the first row is the heading. A cell that starts with a digit is set to the right.
func table(rows [][]string) string {
	var width []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], len([]rune(cell)))
		}
	}
	var b strings.Builder
	for n, row := range rows {
		for i, cell := range row {
			pad := strings.Repeat(" ", width[i]-len([]rune(cell)))
			right := i < len(rows[len(rows)-1]) && startsWithDigit(rows[len(rows)-1][i])
			if right {
				b.WriteString("  " + pad + cell)
			} else if i == len(row)-1 {
				b.WriteString("  " + cell)
			} else {
				b.WriteString("  " + cell + pad)
			}
		}
		b.WriteByte('\n')
		if n == 0 {
			for _, w := range width {
				b.WriteString("  " + strings.Repeat("─", w))
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func startsWithDigit(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }
