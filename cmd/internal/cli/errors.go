package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"ndpip/api"
)

// Exit statuses of the programs.
const (
	StatusOK    = 0 // the work is done, or a signal ended it
	StatusFault = 1 // the machine or the peer: no permission, port not found, connection refused …
	StatusUsage = 2 // the command line
)

// ErrHelp asks for the help text. It is no failure.
var ErrHelp = errors.New("help asked for")

// UsageError is a fault in the command line. Msg names the option and says what would be right.
type UsageError struct{ Msg string }

func (e *UsageError) Error() string { return e.Msg }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Sprintf(format, args...)} }

// Status is the exit status that err asks for.
func Status(err error) int {
	var usage *UsageError
	var config *api.ConfigError
	var printed *Printed
	switch {
	case err == nil, errors.Is(err, ErrHelp), errors.As(err, &printed):
		return StatusOK
	case errors.As(err, &usage), errors.As(err, &config):
		return StatusUsage
	}
	return StatusFault
}

// Asked writes to stdout what was asked for instead of the work: help, or the options.
func Asked(stdout io.Writer, err error, help func() string) {
	var printed *Printed
	switch {
	case errors.Is(err, ErrHelp):
		fmt.Fprint(stdout, help())
	case errors.As(err, &printed):
		fmt.Fprint(stdout, printed.Text)
	}
}

// Report writes err as one line that begins with the program's name, and returns its exit status.
// Nothing is written when err is nil or ErrHelp.
func Report(w io.Writer, program string, err error) int {
	status := Status(err)
	if status != StatusOK {
		fmt.Fprintf(w, "%s: %s\n", program, OneLine(err.Error()))
	}
	return status
}

// OneLine joins the lines of s, for messages that come from elsewhere, or have a part that does. What cannot be printed
// is not: a terminal would obey it.
func OneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, strings.Join(strings.Fields(s), " "))
}
