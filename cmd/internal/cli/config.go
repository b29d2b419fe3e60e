package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/spf13/pflag"
)

// A TOML file may hold options: a key is an option's name. What the command line says comes first, then a table that is
// named by the program's verb, then what stands in no table.

// Printed is the text that --print-config asks for. It is no failure.
type Printed struct{ Text string }

func (p *Printed) Error() string { return "the options were printed" }

// registerConfig adds --config and --print-config.
func (f *Flags) registerConfig() {
	f.StringVar(&f.config, "config", "", "a TOML file with options")
	f.BoolVar(&f.print, "print-config", false, "print the options as a TOML file and end")
}

// verb is the program's verb; "" for a program without.
func (f *Flags) verb() string {
	_, verb, _ := strings.Cut(f.Name(), " ")
	return verb
}

// setting is an option in a file.
type setting struct {
	name   string
	values []string
	at     string // FILE:LINE
}

// configure sets the options of the file, as far as the command line has not.
func (f *Flags) configure(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return Usagef("--config: %v", err)
	}
	all, err := f.settings(file, text)
	if err != nil {
		return err
	}
	given := map[string]bool{}
	f.Visit(func(flag *pflag.Flag) { given[flag.Name] = true })
	for _, s := range all {
		flag := f.Lookup(s.name)
		if given[s.name] {
			continue
		}
		for i, v := range s.values {
			if i > 0 && !repeats(flag) {
				return Usagef("%s: %s: want one value", s.at, s.name)
			}
			if err := f.Set(s.name, v); err != nil {
				var invalid *pflag.InvalidValueError
				if errors.As(err, &invalid) {
					return Usagef("%s: %s %s: want %s", s.at, s.name, quote(v), wants(invalid))
				}
				return Usagef("%s: %s: %v", s.at, s.name, err)
			}
		}
	}
	return nil
}

// repeats says whether an option may be given more than once.
func repeats(flag *pflag.Flag) bool {
	_, ok := flag.Value.(interface{ Items() []string })
	return ok
}

// settings reads the options for this verb out of a file, each once.
func (f *Flags) settings(file string, text []byte) (all []setting, err error) {
	var whole map[string]any
	if err := toml.Unmarshal(text, &whole); err != nil { // finds what is no TOML, and keys that come twice
		var bad *toml.DecodeError
		if errors.As(err, &bad) {
			line, _ := bad.Position()
			return nil, Usagef("%s:%d: %s", file, line, strings.TrimPrefix(bad.Error(), "toml: "))
		}
		return nil, Usagef("%s: %v", file, err)
	}
	var p unstable.Parser
	own, ours := true, false // the table is for this verb; and is its own
	for p.Reset(text); p.NextExpression(); {
		n := p.Expression()
		key, at := "", ""
		for it := n.Key(); it.Next(); {
			if at == "" {
				at = fmt.Sprintf("%s:%d", file, p.Shape(it.Node().Raw).Start.Line)
			}
			key = strings.TrimPrefix(key+"."+string(it.Node().Data), ".")
		}
		switch n.Kind { //nolint:exhaustive // the rest are no expressions
		case unstable.Table:
			ours = key == f.verb()
			if own = ours; !own && !slices.Contains(f.Verbs, key) {
				return nil, Usagef("%s: [%s]: %s", at, key, f.tables())
			}
		case unstable.KeyValue:
			if !own {
				continue
			}
			values, ok := valuesOf(n.Value())
			if !ok {
				return nil, Usagef("%s: %s: want a text, a number, true or false, or an array of these", at, key)
			}
			if err := f.known(at, key); err != nil {
				return nil, err
			}
			s := setting{key, values, at}
			if i := slices.IndexFunc(all, func(o setting) bool { return o.name == key }); i < 0 {
				all = append(all, s)
			} else if ours {
				all[i] = s
			}
		default:
			return nil, Usagef("%s: [[%s]]: want options, NAME = VALUE", at, key)
		}
	}
	return all, nil
}

func (f *Flags) tables() string {
	if len(f.Verbs) == 0 {
		return "this program's options stand in no table"
	}
	return "want options in no table, or in one of [" + strings.Join(f.Verbs, "], [") + "]"
}

// known reports a key that is no option.
func (f *Flags) known(at, key string) error {
	switch {
	case key == "config" || key == "print-config":
		return Usagef("%s: %s stands on the command line alone", at, key)
	case f.Lookup(key) != nil:
		return nil
	case f.Elsewhere[key] != "":
		verb := strings.TrimPrefix(f.Elsewhere[key], strings.TrimSuffix(f.Name(), f.verb()))
		return Usagef("%s: %s is an option of '%s': put it under [%s]", at, key, f.Elsewhere[key], verb)
	}
	if near := f.nearest(key); near != "" {
		return Usagef("%s: %s is no option; did you mean %s?", at, key, near)
	}
	return Usagef("%s: %s is no option; '%s --help' lists them", at, key, f.Name())
}

// valuesOf are the values as the command line would have them.
func valuesOf(n *unstable.Node) (all []string, ok bool) {
	switch n.Kind { //nolint:exhaustive // the rest can be no option
	case unstable.String, unstable.Bool, unstable.Float:
		return []string{string(n.Data)}, true
	case unstable.Integer:
		return []string{strings.ReplaceAll(string(n.Data), "_", "")}, true
	case unstable.Array:
		for it := n.Children(); it.Next(); {
			v, ok := valuesOf(it.Node())
			if !ok || len(v) != 1 {
				return nil, false
			}
			all = append(all, v...)
		}
		return all, true
	}
	return nil, false
}

// PrintConfig ends the program with the options as a TOML file, if --print-config asks for it: those that were given, and
// the others as comments.
func (f *Flags) PrintConfig() error {
	if !f.print {
		return nil
	}
	var b strings.Builder
	f.VisitAll(func(flag *pflag.Flag) {
		if flag.Name == "config" || flag.Name == "print-config" {
			return
		}
		mark := ""
		if !flag.Changed {
			mark = "# "
		}
		fmt.Fprintf(&b, "%s%s = %s\n", mark, flag.Name, tomlValue(flag))
	})
	return &Printed{b.String()}
}

func tomlValue(flag *pflag.Flag) string {
	if many, ok := flag.Value.(interface{ Items() []string }); ok {
		var all []string
		for _, s := range many.Items() {
			all = append(all, strconv.Quote(s))
		}
		return "[" + strings.Join(all, ", ") + "]"
	}
	s := flag.Value.String()
	if _, err := strconv.ParseFloat(s, 64); err == nil || s == "true" || s == "false" {
		return s
	}
	return strconv.Quote(s)
}
