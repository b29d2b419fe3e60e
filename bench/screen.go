package main

import (
	"fmt"
	"os"
	"sync"
	"time"
)

// screen prints lines that stay, and one line of status that is written over. Where the output is no terminal, the
// status is printed as a line of its own from time to time, so that a log shows what is going on.
type screen struct {
	mu   sync.Mutex
	f    *os.File
	tty  bool
	now  string
	last time.Time
}

const (
	quietFor    = 5 * time.Second
	screenWidth = 110
)

func newScreen(f *os.File) *screen {
	st, err := f.Stat()
	return &screen{f: f, tty: err == nil && st.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb", last: time.Now()}
}

func (s *screen) printf(format string, a ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tty && s.now != "" {
		fmt.Fprint(s.f, "\r\x1b[K")
	}
	fmt.Fprintf(s.f, format+"\n", a...)
	s.last = time.Now()
	if s.tty {
		fmt.Fprint(s.f, s.now)
	}
}

// status replaces the status line; "" takes it away.
func (s *screen) status(format string, a ...any) {
	text := []rune(fmt.Sprintf(format, a...))
	if len(text) > screenWidth {
		text = append(text[:screenWidth-1], '…')
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = string(text)
	switch {
	case s.tty:
		fmt.Fprint(s.f, "\r\x1b[K", s.now)
	case s.now != "" && time.Since(s.last) >= quietFor:
		s.last = time.Now()
		fmt.Fprintln(s.f, s.now)
	}
}
