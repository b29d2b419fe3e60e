package cli

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"
)

// Flags is a set of options with GNU names. Elsewhere holds the options that are known to another verb of the same
// program, with the verb's name, so that the message can say where they belong. Verbs are the program's verbs.
type Flags struct {
	*pflag.FlagSet
	Elsewhere map[string]string
	Verbs     []string

	config string // see config.go
	print  bool
}

// NewFlags makes an empty set. name is the program with its verb, as in "ndpip-perf recv".
func NewFlags(name string) *Flags {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	fs.SortFlags = false
	fs.Usage = func() {}
	return &Flags{FlagSet: fs}
}

// Parse reads the options. Errors are UsageErrors of one line.
func (f *Flags) Parse(args []string) error {
	err := f.FlagSet.Parse(args)
	if err == nil {
		if f.config != "" {
			return f.configure(f.config)
		}
		return nil
	}
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return ErrHelp
	case errors.As(err, &unknown):
		return f.unknown(unknown)
	case errors.As(err, &bare):
		flag := bare.GetFlag()
		return Usagef("--%s needs a value (%s)", flag.Name, flag.Usage)
	case errors.As(err, &invalid):
		return Usagef("--%s %s: want %s", invalid.GetFlag().Name, quote(invalid.GetValue()), wants(invalid))
	}
	return Usagef("%s; see '%s --help'", err, f.Name())
}

// NoArgs reports arguments that belong to no option.
func (f *Flags) NoArgs() error {
	if f.NArg() == 0 {
		return nil
	}
	return Usagef("%s belongs to no option; options begin with --, see '%s --help'", quote(f.Arg(0)), f.Name())
}

// wants is what the option would have taken. The values of this package say it in their errors; for the others
// (pflag's own booleans) it is known.
func wants(e *pflag.InvalidValueError) string {
	if e.GetFlag().Value.Type() == "bool" {
		return "true or false, or nothing"
	}
	return e.Unwrap().Error()
}

func (f *Flags) unknown(e *pflag.NotExistError) error {
	name := e.GetSpecifiedName()
	if short := e.GetSpecifiedShortnames(); short != "" {
		return Usagef("unknown option -%s; EAL arguments stand before a --, as in '%s -l 0-1 -- --iface 0'", short, f.Name())
	}
	if verb, ok := f.Elsewhere[name]; ok {
		return Usagef("--%s is an option of '%s', not of '%s'", name, verb, f.Name())
	}
	if near := f.nearest(name); near != "" {
		return Usagef("unknown option --%s; did you mean --%s?", name, near)
	}
	return Usagef("unknown option --%s; see '%s --help', and put EAL arguments before a --", name, f.Name())
}

// nearest is the known option that differs least from name, or "" when none is within two edits.
func (f *Flags) nearest(name string) string {
	best, found := 3, ""
	f.VisitAll(func(flag *pflag.Flag) {
		if d := edits(name, flag.Name); d < best {
			best, found = d, flag.Name
		}
	})
	return found
}

// edits is the Levenshtein distance of a and b.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// quote marks a value off from the words around it where that is needed.
func quote(s string) string {
	if s == "" || s != OneLine(s) || strings.ContainsAny(s, " \"") {
		return "\"" + strings.ReplaceAll(OneLine(s), "\"", "'") + "\""
	}
	return s
}
