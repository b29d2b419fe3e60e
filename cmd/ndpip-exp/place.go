package main

import (
	"strings"
)

// place is where a program runs: here, in a network namespace of this machine, or on another host.
type place struct {
	ns   string   // a namespace; "" for that of this program
	ssh  []string // the command that takes a destination and a command line, as ssh(1) does; nil: this machine
	host string   // the destination
}

func (p place) remote() bool { return p.ssh != nil }

// String is for people.
func (p place) String() string {
	switch {
	case p.remote():
		return p.host
	case p.ns != "":
		return "namespace " + p.ns
	}
	return "here"
}

// command is the command that starts a program there. A remote one ends with its standard input: a signal does not pass
// through ssh, and what runs there is to end when this program, or the network, is gone.
func (p place) command(argv []string) []string {
	switch {
	case p.remote():
		const script = "exec 3<&0; %s </dev/null 3<&- & p=$!; { read x <&3; kill $p; } 2>/dev/null & w=$!; wait $p; s=$?; kill $w 2>/dev/null; exit $s"
		return p.shell(strings.Replace(script, "%s", quoteAll(argv), 1))
	case p.ns != "":
		return append([]string{"ip", "netns", "exec", p.ns}, argv...)
	}
	return argv
}

// shell is the command that runs a script of sh(1) on another host.
func (p place) shell(script string) []string {
	return append(append([]string(nil), p.ssh...), p.host, "exec sh -c "+quote(script))
}

func quoteAll(argv []string) string {
	var out []string
	for _, a := range argv {
		out = append(out, quote(a))
	}
	return strings.Join(out, " ")
}

// quote makes a word of the shell of s.
func quote(s string) string {
	plain := func(r rune) bool {
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || strings.ContainsRune("-_./:=,@%+", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
